//! What a frame leaves to the device that sends it.

use core::fmt;
use core::num::NonZeroU16;

/// A checksum that a frame still lacks: the ones' complement sum (RFC 1071) of its bytes from
/// [`start`](Self::start) to its end, complemented, belongs into the two bytes at
/// [`field`](Self::field). Until then the field holds the sum of what is not in these bytes, the
/// pseudo header.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct ChecksumRequest(
    /// `field` and `start`, a byte each: so that no request is a zero, and is written as one.
    NonZeroU16,
);

const _: () = assert!(size_of::<Option<ChecksumRequest>>() == 2);

impl ChecksumRequest {
    /// A request by offsets in the frame, in bytes. `None` for offsets that no device supports:
    /// beyond byte 255, or a field before the bytes that are summed.
    #[must_use]
    pub const fn new(start: usize, field: usize) -> Option<Self> {
        if start == 0 || start > 255 || field > 255 || field < start {
            return None;
        }
        match NonZeroU16::new((field << 8 | start) as u16) {
            Some(places) => Some(Self(places)),
            None => None,
        }
    }

    /// Where the sum begins.
    #[must_use]
    #[inline]
    pub const fn start(self) -> usize {
        (self.0.get() & 0xff) as usize
    }

    /// Where the checksum belongs.
    #[must_use]
    #[inline]
    pub const fn field(self) -> usize {
        (self.0.get() >> 8) as usize
    }

    /// Whether a frame of `len` bytes has such a field.
    #[must_use]
    #[inline]
    pub const fn fits(self, len: usize) -> bool {
        self.field() + 2 <= len
    }
}

impl fmt::Debug for ChecksumRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sum from {} to byte {}", self.start(), self.field())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_asked_is() {
        let udp = ChecksumRequest::new(34, 40);
        assert!(udp.is_some_and(|udp| (udp.start(), udp.field()) == (34, 40)));
        assert!(udp.is_some_and(|udp| udp.fits(42) && !udp.fits(41)));
        for (start, field) in [(0, 6), (256, 260), (250, 256), (34, 33)] {
            assert_eq!(ChecksumRequest::new(start, field), None);
        }
    }
}
