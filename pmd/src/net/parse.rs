//! The parser of the hot path: extracts the header fields of a frame that a poll loop needs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use super::Reject;
use super::checksum::{Checksum, ipv4_header_is_valid};
use super::headers::{
    ETHERTYPE_ARP, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_QINQ, ETHERTYPE_VLAN, EthernetHeader,
    ICMP_ECHO_REQUEST, IcmpEchoHeader, Ipv4Header, Ipv6Header, PROTOCOL_ICMP, PROTOCOL_UDP,
    UdpHeader, VlanTag,
};

/// Checks that [`parse`] performs. The default verifies all checksums and accepts any address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseOptions {
    /// Verify the IPv4 header checksum. Clear it where hardware did, or where frames were never on
    /// a wire: the kernel leaves partial checksums for a NIC to complete, and frames captured on
    /// the sending host, or on a veth pair, are taken before that.
    pub ip_checksum: bool,
    /// Verify the UDP checksum where it is present and the datagram lies in the first segment;
    /// [`Udp::verify`] does so for chained segments. Clear it where hardware did, or where frames
    /// were never on a wire.
    pub udp_checksum: bool,
    /// Accept only IPv4 datagrams for this address, for multicast and for broadcast
    /// 255.255.255.255; without it, any.
    pub local: Option<Ipv4Addr>,
}

impl ParseOptions {
    /// Verifies no checksum and accepts any address.
    pub const TRUSTED: Self = Self {
        ip_checksum: false,
        udp_checksum: false,
        local: None,
    };
}

impl Default for ParseOptions {
    fn default() -> Self {
        Self {
            ip_checksum: true,
            udp_checksum: true,
            local: None,
        }
    }
}

/// The type of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed {
    /// A whole UDP datagram.
    Udp(Udp),
    /// ARP, not parsed further: for the [`Responder`](super::Responder).
    Arp,
    /// An ICMP echo request over IPv4, not parsed further: for the [`Responder`](super::Responder).
    IcmpEcho,
    /// Any other protocol.
    Other,
}

/// Source and destination of a datagram, both of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addresses {
    /// IPv4.
    V4 {
        /// Source.
        src: Ipv4Addr,
        /// Destination.
        dst: Ipv4Addr,
    },
    /// IPv6.
    V6 {
        /// Source.
        src: Ipv6Addr,
        /// Destination.
        dst: Ipv6Addr,
    },
}

impl Addresses {
    /// The source, of either family.
    #[must_use]
    pub fn src(&self) -> IpAddr {
        match *self {
            Self::V4 { src, .. } => src.into(),
            Self::V6 { src, .. } => src.into(),
        }
    }

    /// The destination, of either family.
    #[must_use]
    pub fn dst(&self) -> IpAddr {
        match *self {
            Self::V4 { dst, .. } => dst.into(),
            Self::V6 { dst, .. } => dst.into(),
        }
    }
}

/// A UDP datagram and the location of its payload in the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Udp {
    /// Source and destination address.
    pub addresses: Addresses,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Bytes from the start of the frame to the payload; always within the first segment.
    pub payload_offset: u16,
    /// Bytes of payload; offset plus length lies within the frame.
    pub payload_len: u16,
    /// The checksum field; zero: no checksum.
    pub checksum: u16,
}

impl Udp {
    /// The part of the payload in `frame`, the first segment: all of it if the frame has one
    /// segment.
    #[must_use]
    #[inline]
    pub fn payload<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let rest = frame
            .get(usize::from(self.payload_offset)..)
            .unwrap_or_default();
        rest.get(..usize::from(self.payload_len)).unwrap_or(rest)
    }

    /// Verifies the checksum over all `segments` of the frame, the first one included. A datagram
    /// over IPv4 without a checksum is accepted (RFC 768).
    ///
    /// # Errors
    /// [`Reject::BadChecksum`], also where a datagram over IPv6 has none (RFC 8200 section 8.1).
    #[inline]
    pub fn verify<'a>(&self, segments: impl IntoIterator<Item = &'a [u8]>) -> Result<(), Reject> {
        let mut skip = usize::from(self.payload_offset).saturating_sub(size_of::<UdpHeader>());
        let mut left = usize::from(self.payload_len) + size_of::<UdpHeader>();
        let mut sum = match self.addresses {
            Addresses::V4 { .. } if self.checksum == 0 => return Ok(()),
            Addresses::V6 { .. } if self.checksum == 0 => return Err(Reject::BadChecksum),
            Addresses::V4 { src, dst } => Checksum::pseudo_v4(src, dst, PROTOCOL_UDP, left as u16),
            Addresses::V6 { src, dst } => Checksum::pseudo_v6(src, dst, PROTOCOL_UDP, left as u16),
        };
        for segment in segments {
            let part = segment.get(skip..).unwrap_or_default();
            let part = part.get(..left).unwrap_or(part);
            skip = skip.saturating_sub(segment.len());
            left -= part.len();
            sum.add(part);
        }
        if left != 0 || !sum.is_valid() {
            return Err(Reject::BadChecksum);
        }
        Ok(())
    }
}

/// Parses Ethernet, up to two VLAN tags, IPv4 or IPv6, and UDP.
///
/// `frame` is the first segment and holds all the headers; `total_len` is the length of the whole
/// frame over all its segments, in bytes. Each length is bounded by the enclosing one: UDP by IP,
/// IP by the frame; bytes behind the IP datagram are Ethernet padding. No byte is read behind a
/// length that was not checked.
///
/// # Errors
/// The cause for which the frame must be counted and dropped.
// Inlined: a caller's options are mostly constants, and the result has 40 bytes, of which a caller
// needs a few; returned in memory, all would be written. Rare paths are out of line.
#[inline(always)]
pub fn parse(frame: &[u8], total_len: usize, options: &ParseOptions) -> Result<Parsed, Reject> {
    let frame = frame.get(..total_len).unwrap_or(frame);
    match plain_udp(frame, total_len) {
        Some(ip) => {
            if options.ip_checksum && !ipv4_header_is_valid(ip, &[]) {
                return Err(Reject::BadChecksum);
            }
            ipv4_body(frame, size_of::<EthernetHeader>(), ip, *options)
        }
        None => by_headers(frame, total_len, *options),
    }
}

/// The IPv4 header on the fast path, which nearly every frame takes: Ethernet without a tag, IPv4
/// without options and unfragmented, UDP, and a datagram that lies within `total_len`. Two
/// comparisons check all of that; other or malformed frames take the general path.
#[inline(always)]
fn plain_udp(frame: &[u8], total_len: usize) -> Option<&Ipv4Header> {
    const IP: usize = size_of::<EthernetHeader>();
    const UDP: usize = IP + size_of::<Ipv4Header>();
    const HEADERS: usize = UDP + size_of::<UdpHeader>();
    let headers: &[u8; HEADERS] = frame.first_chunk()?;
    let word = |at: usize| {
        u32::from_be_bytes([
            headers[at],
            headers[at + 1],
            headers[at + 2],
            headers[at + 3],
        ])
    };
    // EtherType, version and header length; "more fragments", fragment offset and protocol.
    let link = (word(IP - 2) ^ 0x0800_4500) & 0xffff_ff00;
    let whole = (word(IP + 6) ^ u32::from(PROTOCOL_UDP)) & 0x3fff_00ff;
    let (ip, _) = Ipv4Header::ref_from_prefix(&headers[IP..]).ok()?;
    // A total length below the header's wraps around and is then too long as well.
    let body = usize::from(ip.total_len.get()).wrapping_sub(size_of::<Ipv4Header>());
    (link | whole == 0 && body <= total_len - UDP).then_some(ip)
}

/// The general path, header by header.
#[inline(never)]
fn by_headers(frame: &[u8], total_len: usize, opts: ParseOptions) -> Result<Parsed, Reject> {
    let (ethertype, at) = link_layer(frame)?;
    match ethertype {
        ETHERTYPE_IPV4 => {
            let (ip, _) = any_ipv4_header(frame, at, total_len, opts.ip_checksum)?;
            if ip.is_fragment() {
                // Another host's fragments shall take no room of our own.
                let cause = if is_for_us(ip, opts) {
                    Reject::IpFragment
                } else {
                    Reject::NotForUs
                };
                return Err(cause);
            }
            ipv4_body(frame, at, ip, opts)
        }
        ETHERTYPE_IPV6 => ipv6(frame, at, total_len, opts),
        ETHERTYPE_ARP => Ok(Parsed::Arp),
        _ => Ok(Parsed::Other),
    }
}

/// A header at an offset, if all of it lies in the slice.
#[inline(always)]
pub(super) fn view<T>(frame: &[u8], at: usize) -> Result<&T, Reject>
where
    T: FromBytes + KnownLayout + Immutable + Unaligned,
{
    let bytes = frame.get(at..).ok_or(Reject::Malformed)?;
    let (header, _) = T::ref_from_prefix(bytes).map_err(|_| Reject::Malformed)?;
    Ok(header)
}

/// The EtherType behind at most two VLAN tags, and the offset of its payload.
#[inline(always)]
pub(super) fn link_layer(frame: &[u8]) -> Result<(u16, usize), Reject> {
    let mut at = size_of::<EthernetHeader>();
    let mut ethertype = view::<EthernetHeader>(frame, 0)?.ethertype.get();
    let mut tags = 0;
    while matches!(ethertype, ETHERTYPE_VLAN | ETHERTYPE_QINQ) {
        if tags == 2 {
            return Err(Reject::Unsupported);
        }
        ethertype = view::<VlanTag>(frame, at)?.ethertype.get();
        at += size_of::<VlanTag>();
        tags += 1;
    }
    Ok((ethertype, at))
}

/// The IPv4 header of a whole datagram at an offset, as [`any_ipv4_header`].
#[inline(always)]
pub(super) fn ipv4_header(
    frame: &[u8],
    at: usize,
    total_len: usize,
    verify: bool,
) -> Result<(&Ipv4Header, usize), Reject> {
    let (ip, header_len) = any_ipv4_header(frame, at, total_len, verify)?;
    if ip.is_fragment() {
        return Err(Reject::IpFragment);
    }
    Ok((ip, header_len))
}

/// The IPv4 header at an offset, of a datagram or a fragment, and its length with options, after
/// all checks of RFC 1122 section 3.2.1 that need no address. The datagram or fragment lies within
/// `total_len`.
#[inline(always)]
pub(super) fn any_ipv4_header(
    frame: &[u8],
    at: usize,
    total_len: usize,
    verify: bool,
) -> Result<(&Ipv4Header, usize), Reject> {
    let ip: &Ipv4Header = view(frame, at)?;
    let header_len = ip.header_len();
    let datagram_len = usize::from(ip.total_len.get());
    if ip.version_ihl >> 4 != 4
        || header_len < size_of::<Ipv4Header>()
        || datagram_len < header_len
        || at + datagram_len > total_len
    {
        return Err(Reject::Malformed);
    }
    let options = at + size_of::<Ipv4Header>()..at + header_len;
    let options = frame.get(options).ok_or(Reject::Malformed)?;
    if verify && !ipv4_header_is_valid(ip, options) {
        return Err(Reject::BadChecksum);
    }
    Ok((ip, header_len))
}

/// Whether the destination is the local address, if there is one, or a group or broadcast.
#[inline(always)]
fn is_for_us(ip: &Ipv4Header, opts: ParseOptions) -> bool {
    let dst = Ipv4Addr::from(ip.dst);
    opts.local.is_none_or(|local| dst == local) || dst.is_multicast() || dst.is_broadcast()
}

/// Parses the payload of a valid IPv4 header at an offset.
#[inline(always)]
fn ipv4_body(
    frame: &[u8],
    at: usize,
    ip: &Ipv4Header,
    opts: ParseOptions,
) -> Result<Parsed, Reject> {
    if !is_for_us(ip, opts) {
        return Err(Reject::NotForUs);
    }
    let header_len = ip.header_len();
    let dst = Ipv4Addr::from(ip.dst);
    let body = at + header_len;
    let body_len = usize::from(ip.total_len.get()) - header_len;
    match ip.protocol {
        PROTOCOL_UDP => udp(
            frame,
            body,
            body_len,
            Addresses::V4 {
                src: ip.src.into(),
                dst,
            },
            opts,
        ),
        PROTOCOL_ICMP => icmp(frame, body, body_len),
        _ => Ok(Parsed::Other),
    }
}

fn ipv6(frame: &[u8], at: usize, total_len: usize, opts: ParseOptions) -> Result<Parsed, Reject> {
    let ip: &Ipv6Header = view(frame, at)?;
    let body = at + size_of::<Ipv6Header>();
    let body_len = usize::from(ip.payload_len.get());
    if ip.version_class_flow.get() >> 28 != 6 || body + body_len > total_len {
        return Err(Reject::Malformed);
    }
    let addresses = Addresses::V6 {
        src: ip.src.into(),
        dst: ip.dst.into(),
    };
    match ip.next_header {
        PROTOCOL_UDP => udp(frame, body, body_len, addresses, opts),
        44 => Err(Reject::IpFragment),
        // The other extension headers of RFC 7045 section 4: hop-by-hop, routing, ESP,
        // authentication, destination options, mobility, HIP, shim6.
        0 | 43 | 50 | 51 | 60 | 135 | 139 | 140 => Err(Reject::Unsupported),
        _ => Ok(Parsed::Other),
    }
}

#[inline(always)]
fn udp(
    frame: &[u8],
    at: usize,
    body_len: usize,
    addresses: Addresses,
    opts: ParseOptions,
) -> Result<Parsed, Reject> {
    let header: &UdpHeader = view(frame, at)?;
    let len = usize::from(header.len.get());
    if len < size_of::<UdpHeader>() || len > body_len {
        return Err(Reject::Malformed);
    }
    let udp = Udp {
        addresses,
        src_port: header.src_port.get(),
        dst_port: header.dst_port.get(),
        payload_offset: (at + size_of::<UdpHeader>()) as u16,
        payload_len: (len - size_of::<UdpHeader>()) as u16,
        checksum: header.checksum.get(),
    };
    if opts.udp_checksum && at + len <= frame.len() {
        // Verified through a copy: if its address were taken, `udp` would be built on the stack and
        // moved from there, also for frames that are not verified.
        let copy = udp;
        copy.verify([frame])?;
    }
    Ok(Parsed::Udp(udp))
}

#[inline(always)]
fn icmp(frame: &[u8], at: usize, body_len: usize) -> Result<Parsed, Reject> {
    let header: &IcmpEchoHeader = view(frame, at)?;
    if body_len < size_of::<IcmpEchoHeader>() {
        return Err(Reject::Malformed);
    }
    Ok(match header.kind {
        ICMP_ECHO_REQUEST => Parsed::IcmpEcho,
        _ => Parsed::Other,
    })
}

#[cfg(test)]
mod tests;
