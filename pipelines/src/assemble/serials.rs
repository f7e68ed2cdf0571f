//! Serial numbers of frames: above the frame number is a count of the sender's restarts.
//!
//! They wrap, and compare by their distance. Read from the other end, a serial number is the buffer of
//! the frame and, above it, the lap: how often the buffers have been filled in turn.

use super::turns::LAP_BITS;

/// Bits of the count of restarts.
pub(super) const RESTART_BITS: u32 = 8;

/// What is in a serial number: restarts above frame number, or lap above buffer.
#[derive(Clone, Copy)]
pub(super) struct Serials {
    /// Bits of the number of a buffer: shifts and masks, since divisions are slow.
    buffer_bits: u32,
    /// The bits of a serial number that are of the frame number.
    pub(super) key_mask: u64,
}

impl Serials {
    pub(super) fn new(buffers: usize) -> Self {
        debug_assert!(buffers.is_power_of_two());
        let buffer_bits = buffers.trailing_zeros();
        Self {
            buffer_bits,
            key_mask: (1 << (LAP_BITS + buffer_bits - RESTART_BITS)) - 1,
        }
    }

    /// Buffer and lap.
    #[inline]
    pub(super) fn split(&self, serial: u64) -> (usize, u64) {
        let buffer = serial & ((1 << self.buffer_bits) - 1);
        (buffer as usize, serial >> self.buffer_bits)
    }

    #[inline]
    pub(super) fn join(&self, buffer: usize, lap: u64) -> u64 {
        lap << self.buffer_bits | buffer as u64
    }

    /// The count of restarts in a serial number.
    pub(super) fn restarts(self, serial: u64) -> u8 {
        (serial >> (LAP_BITS + self.buffer_bits - RESTART_BITS)) as u8
    }

    /// How far `a` is ahead of `b`.
    #[inline]
    pub(super) fn distance(&self, a: u64, b: u64) -> i64 {
        let unused = 64 - LAP_BITS - self.buffer_bits;
        (a.wrapping_sub(b) << unused) as i64 >> unused
    }
}
