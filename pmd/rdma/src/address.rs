//! What two ends tell each other to connect.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use pollux_pmd::net::MacAddr;

/// Number of a queue pair, 24 bits. 0 and 1 are those of management.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QpNumber(u32);

impl QpNumber {
    /// The number, if it has 24 bits at most.
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        if number < 1 << 24 {
            Some(Self(number))
        } else {
            None
        }
    }

    /// The number, if a queue pair of it can be connected: not one of management (0 and 1), nor that of
    /// multicast (InfiniBand, 3.5.10).
    #[must_use]
    pub const fn connectable(number: u32) -> Option<Self> {
        match Self::new(number) {
            Some(number) if number.0 > 1 && number.0 < 0xff_ffff => Some(number),
            _ => None,
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// Six hexadecimal digits.
impl fmt::Display for QpNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06x}", self.0)
    }
}

/// Packet sequence number: 24 bits, which wrap (InfiniBand, 9.7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Psn(u32);

impl Psn {
    const MASK: u32 = (1 << 24) - 1;

    /// The low 24 bits of a number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number & Self::MASK)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number of so many packets later.
    #[must_use]
    pub const fn after(self, packets: u32) -> Self {
        Self::new(self.0.wrapping_add(packets))
    }

    /// How many packets this one is behind `earlier`: negative for one that is before it. Numbers are
    /// compared over half of their range.
    #[must_use]
    pub const fn since(self, earlier: Self) -> i32 {
        (self.0.wrapping_sub(earlier.0) << 8) as i32 >> 8
    }
}

/// Service of a queue pair (InfiniBand, 9.7 and 9.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QpKind {
    /// Reliable connection: every request is acknowledged, and repeated until it is.
    #[default]
    Reliable,
    /// Unreliable connection: SEND and PUT without acknowledgement; a message that lacks a packet is
    /// discarded.
    Unreliable,
}

/// Most bytes of data in a packet (path MTU).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mtu {
    /// 256 bytes.
    B256,
    /// 512 bytes.
    B512,
    /// 1024 bytes.
    #[default]
    B1024,
    /// 2048 bytes.
    B2048,
    /// 4096 bytes.
    B4096,
}

impl Mtu {
    /// All, ascending.
    pub const ALL: [Self; 5] = [
        Self::B256,
        Self::B512,
        Self::B1024,
        Self::B2048,
        Self::B4096,
    ];

    /// The MTU of so many bytes.
    #[must_use]
    pub fn from_bytes(bytes: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|mtu| mtu.bytes() == bytes)
    }

    /// Bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        256 << self as usize
    }

    /// The MTU of a number in messages of connection management (InfiniBand, table 106).
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|mtu| mtu.code() == code)
    }

    /// Its number in messages of connection management: 1 for 256 B to 5 for 4096 B.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8 + 1
    }

    /// Packets of a message: an empty one has one too.
    #[must_use]
    pub const fn packets(self, bytes: u32) -> u32 {
        if bytes == 0 {
            1
        } else {
            bytes.div_ceil(self.bytes() as u32)
        }
    }
}

/// An end of a connection, as the other end has to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpAddress {
    /// Number of its queue pair.
    pub number: QpNumber,
    /// Number of the first packet that it sends.
    pub psn: Psn,
    /// Its address; unspecified where the back end has no network.
    pub ip: Ipv4Addr,
    /// The MAC address to which packets for it go; looked up by ARP if there is none.
    pub mac: Option<MacAddr>,
}

/// GID of an IPv4 address (InfiniBand, annex A17.4.5.2): the IPv6 address that maps it.
pub(crate) const fn gid_of(ip: Ipv4Addr) -> [u8; 16] {
    ip.to_ipv6_mapped().octets()
}

/// Whether a single host can have the address.
pub(crate) const fn is_host(ip: Ipv4Addr) -> bool {
    !(ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast())
}

/// The IPv4 address of a GID; `None` for one of another kind, or that no single host has.
pub(crate) fn ip_of(gid: [u8; 16]) -> Option<Ipv4Addr> {
    Ipv6Addr::from(gid)
        .to_ipv4_mapped()
        .filter(|&ip| is_host(ip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_compare_across_their_end() {
        let last = Psn::new(u32::MAX);
        assert_eq!(last.get(), 0xff_ffff);
        assert_eq!(last.after(1), Psn::new(0));
        assert_eq!(Psn::new(5).since(last), 6);
        assert_eq!(last.since(Psn::new(5)), -6);
        assert_eq!(Psn::new(0x80_0000).since(Psn::new(0)), -0x80_0000);
        assert_eq!(QpNumber::new(1 << 24), None);
        assert_eq!([0, 1, 0xff_ffff].map(QpNumber::connectable), [None; 3]);
    }

    #[test]
    fn messages_have_a_packet_at_least() {
        let packets = [0, 1, 256, 257, 1 << 31].map(|bytes| Mtu::B256.packets(bytes));
        assert_eq!(packets, [1, 1, 1, 2, 1 << 23]);
        assert_eq!(Mtu::from_bytes(4096), Some(Mtu::B4096));
        assert_eq!(Mtu::from_bytes(1500), None);
        assert_eq!(Mtu::ALL.map(Mtu::code), [1, 2, 3, 4, 5]);
        assert_eq!(
            [0, 3, 6].map(Mtu::from_code),
            [None, Some(Mtu::B1024), None]
        );
    }
}
