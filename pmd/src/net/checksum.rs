//! The Internet checksum (RFC 1071), fast and over any number of slices.

use std::net::{Ipv4Addr, Ipv6Addr};

use zerocopy::IntoBytes;

use super::headers::Ipv4Header;

/// A ones' complement sum in progress.
///
/// Words are summed in little-endian order and swapped once at the end: the sum does not depend on
/// byte order (RFC 1071 section 2, part B), and on little-endian machines the load needs no swap.
#[derive(Debug, Clone, Copy, Default)]
pub struct Checksum {
    sum: u64,
    /// An odd number of bytes has been added: the next byte is the low half of its word.
    odd: bool,
}

impl Checksum {
    /// An empty sum.
    #[must_use]
    pub const fn new() -> Self {
        Self { sum: 0, odd: false }
    }

    /// The sum of the IPv4 pseudo header (RFC 768); `len` is in bytes, of the UDP header and
    /// payload.
    #[must_use]
    #[inline]
    pub fn pseudo_v4(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, len: u16) -> Self {
        let sum = sum_le(&src.octets()) + sum_le(&dst.octets());
        Self {
            sum: sum + word(u16::from(protocol)) + word(len),
            odd: false,
        }
    }

    /// The sum of the IPv6 pseudo header (RFC 8200 section 8.1); `len` is in bytes, of the UDP
    /// header and payload.
    #[must_use]
    #[inline]
    pub fn pseudo_v6(src: Ipv6Addr, dst: Ipv6Addr, protocol: u8, len: u16) -> Self {
        let sum = sum_le(&src.octets()) + sum_le(&dst.octets());
        Self {
            sum: sum + word(u16::from(protocol)) + word(len),
            odd: false,
        }
    }

    /// Adds the bytes that follow those added so far. Slices of odd length may be followed by
    /// others.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        let part = fold(sum_le(bytes));
        // A slice at an odd offset has its bytes in the other halves of the words. Swapping the
        // bytes of its sum corrects that (RFC 1071 section 2, part B).
        self.sum += u64::from(if self.odd { part.swap_bytes() } else { part });
        self.odd ^= bytes.len() % 2 == 1;
    }

    /// Adds one 16-bit field, given in host order, at an even offset.
    #[inline]
    pub fn add_field(&mut self, value: u16) {
        debug_assert!(!self.odd, "a field lies at an even offset");
        self.sum += word(value);
    }

    /// The value for the checksum field, in host order, where that field was zero in the sum.
    #[must_use]
    #[inline]
    pub fn finish(self) -> u16 {
        !fold(self.sum).swap_bytes()
    }

    /// The value for the UDP checksum field: a computed zero is sent as all ones, since zero means
    /// no checksum (RFC 768).
    #[must_use]
    #[inline]
    pub fn finish_udp(self) -> u16 {
        match self.finish() {
            0 => 0xffff,
            sum => sum,
        }
    }

    /// The partial checksum in host order: the field's content while a device computes the rest.
    #[must_use]
    #[inline]
    pub fn partial(self) -> u16 {
        fold(self.sum).swap_bytes()
    }

    /// True where the sum included a correct checksum field.
    #[must_use]
    #[inline]
    pub fn is_valid(self) -> bool {
        fold(self.sum) == 0xffff
    }
}

/// True if the header's own checksum is correct. `options` are the bytes between the fixed header
/// and the payload, a multiple of four.
#[must_use]
#[inline(always)]
pub fn ipv4_header_is_valid(header: &Ipv4Header, options: &[u8]) -> bool {
    // The fixed header has a constant length: its sum is five adds without a loop.
    let mut sum = sum_le(header.as_bytes());
    if !options.is_empty() {
        sum += sum_options(options);
    }
    fold(sum) == 0xffff
}

/// Out of line: options are rare.
#[cold]
fn sum_options(options: &[u8]) -> u64 {
    sum_le(options)
}

/// A 16-bit field as `sum_le` would read it from the wire.
#[inline]
const fn word(value: u16) -> u64 {
    value.swap_bytes() as u64
}

/// The sum of the little-endian 32-bit words, the last one padded with zeros. It cannot
/// overflow below 2^34 bytes.
///
/// Each half of the 8 bytes has its own sum. No carry passes between them, so the compiler
/// vectorises the loop.
#[inline(always)]
fn sum_le(bytes: &[u8]) -> u64 {
    let (chunks, rest) = bytes.as_chunks::<8>();
    let (mut low, mut high) = (0u64, 0u64);
    for chunk in chunks {
        let chunk = u64::from_le_bytes(*chunk);
        low += chunk & 0xffff_ffff;
        high += chunk >> 32;
    }
    let (words, rest) = rest.as_chunks::<4>();
    for word in words {
        low += u64::from(u32::from_le_bytes(*word));
    }
    for (i, &byte) in rest.iter().enumerate() {
        high += u64::from(byte) << (8 * i);
    }
    low + high
}

/// Folds the carries back in, down to 16 bits.
#[inline]
const fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32); // < 2^33
    let sum = (sum & 0xffff) + (sum >> 16); // < 0x3_0000
    let sum = (sum & 0xffff) + (sum >> 16); // <= 0x1_0001
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use pollux_pmd_testkit::frames::naive_checksum;
    use proptest::prelude::*;
    use zerocopy::FromBytes;

    #[test]
    fn example_of_rfc_1071() {
        // section 3: 0001 f203 f4f5 f6f7 sums to ddf2
        let mut sum = Checksum::new();
        sum.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.finish(), !0xddf2);
    }

    #[test]
    fn all_ones_and_nothing() {
        assert_eq!(Checksum::new().finish(), 0xffff);
        let mut ones = Checksum::new();
        ones.add(&vec![0xff; 65_536]);
        assert_eq!(ones.finish(), 0);
        assert_eq!(ones.finish_udp(), 0xffff);
    }

    fn is_valid(header: &[u8]) -> bool {
        let (fixed, options) = Ipv4Header::ref_from_prefix(header).unwrap();
        ipv4_header_is_valid(fixed, options)
    }

    #[test]
    fn known_ipv4_header() {
        let mut header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8,
            0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert!(is_valid(&header));
        let options = [&header[..], &[0xff; 4]].concat();
        assert!(is_valid(&options), "all ones are zero");
        header[8] -= 1;
        assert!(!is_valid(&header));
        let options = [&header[..], &[0, 0, 1, 0]].concat();
        assert!(is_valid(&options), "what one word lost, another has");
    }

    #[test]
    fn zeros_are_not_valid() {
        assert!(!is_valid(&[0; 20]));
    }

    proptest! {
        #[test]
        fn equals_the_naive_sum(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut sum = Checksum::new();
            sum.add(&bytes);
            prop_assert_eq!(sum.finish(), naive_checksum(&bytes));
        }

        #[test]
        fn any_cut_into_slices_gives_one_sum(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            cuts in proptest::collection::vec(0usize..300, 0..6),
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let mut sum = Checksum::new();
            let mut from = 0;
            for cut in cuts {
                sum.add(&bytes[from..cut]);
                from = cut;
            }
            prop_assert_eq!(sum.finish(), naive_checksum(&bytes));
        }

        #[test]
        fn pseudo_headers_equal_their_bytes(
            src in any::<[u8; 16]>(), dst in any::<[u8; 16]>(), protocol: u8, len: u16,
        ) {
            let mut bytes = [&src[..], &dst, &[0, 0], &len.to_be_bytes(), &[0, 0, 0, protocol]].concat();
            let sum = Checksum::pseudo_v6(src.into(), dst.into(), protocol, len);
            prop_assert_eq!(sum.finish(), naive_checksum(&bytes));

            let src: [u8; 4] = src[..4].try_into().unwrap();
            let dst: [u8; 4] = dst[..4].try_into().unwrap();
            bytes = [&src[..], &dst, &[0, protocol], &len.to_be_bytes()].concat();
            let sum = Checksum::pseudo_v4(src.into(), dst.into(), protocol, len);
            prop_assert_eq!(sum.finish(), naive_checksum(&bytes));
        }

        #[test]
        fn a_field_equals_its_bytes(bytes in any::<[u8; 6]>(), field: u16) {
            let mut sum = Checksum::new();
            sum.add(&bytes);
            sum.add_field(field);
            prop_assert_eq!(sum.finish(), naive_checksum(&[&bytes[..], &field.to_be_bytes()].concat()));
        }
    }
}
