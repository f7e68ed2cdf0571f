//! Ethernet addresses.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// An IEEE 802 MAC address, in the order of the wire.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(transparent)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// The broadcast address.
    pub const BROADCAST: Self = Self([0xff; 6]);
    /// The unknown target of an ARP request (RFC 826).
    pub const ZERO: Self = Self([0; 6]);

    /// A locally administered address derived from a name and a number: the same at each start, and
    /// distinct for users of one name with different numbers.
    #[must_use]
    pub fn made_of(name: &[u8], number: u64) -> Self {
        // FNV-1a
        let seed = 0xcbf2_9ce4_8422_2325 ^ number;
        let hash = name.iter().fold(seed, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let [a, b, c, d, e, ..] = hash.to_be_bytes();
        // Bit 1: locally administered.
        Self([0x02, a, b, c, d, e])
    }

    /// The Ethernet address of an IPv4 multicast group (RFC 1112 section 6.4); 32 groups share one.
    #[must_use]
    pub const fn of_group(group: Ipv4Addr) -> Self {
        let [_, b, c, d] = group.octets();
        Self([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }

    /// Whether this is the address of one host: the group bit is clear and the address is not zero.
    /// Only such an address is a valid source of a frame, or can be answered.
    #[must_use]
    pub fn is_unicast(self) -> bool {
        self.0[0] & 1 == 0 && self != Self::ZERO
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not six pairs of hexadecimal digits separated by colons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a MAC address: write it as 02:00:00:00:00:01")]
pub struct MacError;

impl FromStr for MacAddr {
    type Err = MacError;

    fn from_str(text: &str) -> Result<Self, MacError> {
        let mut octets = [0; 6];
        let mut pairs = text.split(':');
        for octet in &mut octets {
            let pair = pairs.next().ok_or(MacError)?;
            // from_str_radix alone would accept "+1"
            if pair.len() != 2 || !pair.bytes().all(|c| c.is_ascii_hexdigit()) {
                return Err(MacError);
            }
            *octet = u8::from_str_radix(pair, 16).map_err(|_| MacError)?;
        }
        pairs
            .next()
            .is_none()
            .then_some(Self(octets))
            .ok_or(MacError)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn text_round_trips() {
        let mac = MacAddr([2, 0, 0xab, 0, 0x1f, 0xff]);
        assert_eq!(mac.to_string(), "02:00:ab:00:1f:ff");
        assert_eq!(mac.to_string().parse(), Ok(mac));
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "02",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "02:00:00:00:00:1",
        ] {
            assert_eq!(text.parse::<MacAddr>(), Err(MacError), "{text}");
        }
        for text in [
            "02:00:00:00:00:+1",
            "02:00:00:00:00:0g",
            "02-00-00-00-00-01",
        ] {
            assert_eq!(text.parse::<MacAddr>(), Err(MacError), "{text}");
        }
    }

    #[test]
    fn unicast() {
        assert!(MacAddr([2, 0, 0, 0, 0, 1]).is_unicast());
        assert!(!MacAddr([1, 0, 0x5e, 0, 0, 1]).is_unicast());
        assert!(!MacAddr::BROADCAST.is_unicast());
        assert!(!MacAddr::ZERO.is_unicast());
    }
}
