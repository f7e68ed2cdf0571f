//! Zerocopy views of the headers, byte for byte as on the wire.
//!
//! Multi-byte fields are big-endian and unaligned; a view costs one length check.

use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::MacAddr;

/// EtherType of IPv4 (RFC 894).
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// EtherType of ARP (RFC 826).
pub const ETHERTYPE_ARP: u16 = 0x0806;
/// EtherType of a customer VLAN tag (IEEE 802.1Q).
pub const ETHERTYPE_VLAN: u16 = 0x8100;
/// EtherType of IPv6 (RFC 2464).
pub const ETHERTYPE_IPV6: u16 = 0x86dd;
/// EtherType of a service VLAN tag, the outer one of QinQ (IEEE 802.1ad).
pub const ETHERTYPE_QINQ: u16 = 0x88a8;

/// IP protocol number of ICMP.
pub const PROTOCOL_ICMP: u8 = 1;
/// IP protocol number of IGMP.
pub const PROTOCOL_IGMP: u8 = 2;
/// IP protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;

/// ICMP type of an echo reply (RFC 792).
pub const ICMP_ECHO_REPLY: u8 = 0;
/// ICMP type of an echo request (RFC 792).
pub const ICMP_ECHO_REQUEST: u8 = 8;

/// ARP opcode of a request (RFC 826).
pub const ARP_REQUEST: u16 = 1;
/// ARP opcode of a reply (RFC 826).
pub const ARP_REPLY: u16 = 2;

/// Ethernet II header: 14 bytes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct EthernetHeader {
    /// Destination.
    pub dst: MacAddr,
    /// Source.
    pub src: MacAddr,
    /// EtherType of the payload; below 1536 it is a length (IEEE 802.3).
    pub ethertype: U16,
}

/// The four bytes that an 802.1Q tag adds behind its own EtherType.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct VlanTag {
    /// Priority \[15:13\], drop eligible \[12\], VLAN identifier \[11:0\].
    pub control: U16,
    /// EtherType of the payload.
    pub ethertype: U16,
}

/// ARP for IPv4 over Ethernet (RFC 826): 28 bytes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct ArpPacket {
    /// Hardware type: 1 for Ethernet.
    pub hardware: U16,
    /// Protocol type: the EtherType of IPv4.
    pub protocol: U16,
    /// Length of a hardware address: 6.
    pub hardware_len: u8,
    /// Length of a protocol address: 4.
    pub protocol_len: u8,
    /// [`ARP_REQUEST`] or [`ARP_REPLY`].
    pub operation: U16,
    /// Hardware address of the sender.
    pub sender_mac: MacAddr,
    /// Protocol address of the sender; zero in a probe (RFC 5227 section 2.1.1).
    pub sender_ip: [u8; 4],
    /// Hardware address of the target; not meaningful in a request.
    pub target_mac: MacAddr,
    /// Protocol address of the target.
    pub target_ip: [u8; 4],
}

impl ArpPacket {
    /// Whether the packet is for IPv4 over Ethernet: other kinds have other lengths behind the
    /// first eight bytes.
    #[must_use]
    pub fn is_ipv4_over_ethernet(&self) -> bool {
        self.hardware.get() == 1
            && self.protocol.get() == ETHERTYPE_IPV4
            && self.hardware_len == 6
            && self.protocol_len == 4
    }
}

/// IPv4 header without options (RFC 791 section 3.1): 20 bytes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Ipv4Header {
    /// Version \[7:4\], header length in 32-bit words \[3:0\].
    pub version_ihl: u8,
    /// Differentiated services and ECN.
    pub service: u8,
    /// Bytes of header and payload.
    pub total_len: U16,
    /// Identification of the datagram among fragments.
    pub id: U16,
    /// Don't fragment \[14\], more fragments \[13\], offset in units of 8 bytes \[12:0\].
    pub flags_offset: U16,
    /// Time to live, in hops.
    pub ttl: u8,
    /// [`PROTOCOL_UDP`] and others.
    pub protocol: u8,
    /// Checksum of the header.
    pub checksum: U16,
    /// Source address.
    pub src: [u8; 4],
    /// Destination address.
    pub dst: [u8; 4],
}

impl Ipv4Header {
    /// Header length in bytes as the field encodes it: 0 to 60, of which below 20 is malformed.
    #[must_use]
    pub fn header_len(&self) -> usize {
        usize::from(self.version_ihl & 0x0f) * 4
    }

    /// Whether more fragments of the datagram follow.
    #[must_use]
    pub fn more_fragments(&self) -> bool {
        self.flags_offset.get() & 0x2000 != 0
    }

    /// Offset of this fragment in the datagram's payload, in bytes.
    #[must_use]
    pub fn fragment_offset(&self) -> usize {
        usize::from(self.flags_offset.get() & 0x1fff) * 8
    }

    /// Whether this is a fragment: more fragments follow, or this is not the first.
    #[must_use]
    pub fn is_fragment(&self) -> bool {
        self.flags_offset.get() & 0x3fff != 0
    }
}

/// IPv6 fixed header (RFC 8200 section 3): 40 bytes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Ipv6Header {
    /// Version \[31:28\], traffic class \[27:20\], flow label \[19:0\].
    pub version_class_flow: U32,
    /// Bytes behind this header.
    pub payload_len: U16,
    /// Protocol, or the first extension header.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source address.
    pub src: [u8; 16],
    /// Destination address.
    pub dst: [u8; 16],
}

/// UDP header (RFC 768): 8 bytes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct UdpHeader {
    /// Source port.
    pub src_port: U16,
    /// Destination port.
    pub dst_port: U16,
    /// Bytes of header and payload.
    pub len: U16,
    /// Checksum over pseudo header, header and payload; zero: no checksum.
    pub checksum: U16,
}

/// ICMP echo request or reply (RFC 792): 8 bytes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct IcmpEchoHeader {
    /// [`ICMP_ECHO_REQUEST`] or [`ICMP_ECHO_REPLY`].
    pub kind: u8,
    /// Zero.
    pub code: u8,
    /// Checksum over header and payload.
    pub checksum: U16,
    /// Identifier, set by the sender of the request.
    pub id: U16,
    /// Sequence number, set by the sender of the request.
    pub sequence: U16,
}

const _: () = {
    assert!(size_of::<EthernetHeader>() == 14);
    assert!(size_of::<VlanTag>() == 4);
    assert!(size_of::<ArpPacket>() == 28);
    assert!(size_of::<Ipv4Header>() == 20);
    assert!(size_of::<Ipv6Header>() == 40);
    assert!(size_of::<UdpHeader>() == 8);
    assert!(size_of::<IcmpEchoHeader>() == 8);
};
