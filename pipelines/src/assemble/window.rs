//! Which frame numbers are taken: those near the newest, and not behind what was delivered.
//!
//! A frame number becomes a serial number that no restart of the sender takes back: above the
//! number is a count of restarts. Serial numbers wrap, and compare by their distance.
//!
//! A number that is ahead of the newest by more than the horizon, or that far behind, is refused:
//! a wrong number must not move the window. So is one with more bits than a serial number has room for
//! (38 with 64 buffers). [`RESYNC`] such packets in a row, near each other and
//! without any that fits, are a restart of the sender, or a gap longer than the horizon: the window
//! begins anew there. A number that is a little behind is late, however often it comes: a sender that
//! repeats its last frames does not have them delivered twice.

use std::sync::atomic::Ordering::Relaxed;

use pollux_pmd::Cause;

use super::memory::{NONE, Shared};
use super::turns::LAP_BITS;

/// Refused packets in a row that begin the window anew.
pub(super) const RESYNC: u32 = 32;
/// Bits of the count of restarts.
const RESTART_BITS: u32 = 8;

/// What is in a serial number: restarts above frame number, or lap above buffer.
#[derive(Clone, Copy)]
pub(super) struct Serials {
    /// Bits of the number of a buffer: shifts and masks, since divisions are slow.
    buffer_bits: u32,
    /// The bits of a serial number that are of the frame number.
    key_mask: u64,
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

    /// How far `a` is ahead of `b`.
    #[inline]
    pub(super) fn distance(&self, a: u64, b: u64) -> i64 {
        let unused = 64 - LAP_BITS - self.buffer_bits;
        (a.wrapping_sub(b) << unused) as i64 >> unused
    }
}

impl Shared {
    /// The serial number of a frame number.
    ///
    /// # Errors
    /// The cause for which its packet is refused.
    #[inline]
    pub(super) fn admit(&self, key: u64) -> Result<u64, Cause> {
        let (mask, serials) = (self.serials.key_mask, &self.serials);
        if key & !mask != 0 {
            return Err(Cause::OutOfWindow);
        }
        let newest = self.newest.load(Relaxed);
        if newest == NONE {
            return self.begin(newest, key);
        }
        let serial = newest & !mask | key & mask;
        let ahead = serials.distance(serial, newest);
        let refused = if ahead > self.config.horizon as i64 {
            Cause::OutOfWindow
        } else if serials.distance(serial, self.floor.load(Relaxed)) < 0 {
            Cause::Late
        } else {
            if ahead > 0 && !self.advance(newest, serial) {
                return self.admit_again(key);
            }
            if self.strays.load(Relaxed) != 0 {
                self.strays.store(0, Relaxed);
            }
            return Ok(serial);
        };
        if ahead.unsigned_abs() > self.config.horizon && self.is_restart(key) {
            return self.begin(newest, key);
        }
        Err(refused)
    }

    /// Makes a serial number the newest, unless another loop was faster: the window may have moved
    /// far then. Out of line, since only one packet of a frame needs it.
    #[inline]
    fn advance(&self, newest: u64, serial: u64) -> bool {
        self.newest
            .compare_exchange(newest, serial, Relaxed, Relaxed)
            .is_ok()
    }

    /// [`admit`](Self::admit) where another loop was faster: a function that calls itself is not
    /// inlined.
    #[cold]
    #[inline(never)]
    fn admit_again(&self, key: u64) -> Result<u64, Cause> {
        self.admit(key)
    }

    /// Notes a refused number; whether there have been enough.
    #[cold]
    fn is_restart(&self, key: u64) -> bool {
        let last = self.stray.swap(key, Relaxed);
        if key.abs_diff(last) > self.config.horizon {
            self.strays.store(0, Relaxed);
        }
        self.strays.fetch_add(1, Relaxed) + 1 >= RESYNC
    }

    /// Begins the window anew at a frame number; its serial number.
    ///
    /// # Errors
    /// The cause for which its packet is refused, where another loop began elsewhere.
    #[cold]
    fn begin(&self, newest: u64, key: u64) -> Result<u64, Cause> {
        let mask = self.serials.key_mask;
        let all = mask << RESTART_BITS | ((1 << RESTART_BITS) - 1);
        let restarts = if newest == NONE {
            0
        } else {
            (newest & !mask).wrapping_add(mask + 1)
        };
        let serial = (restarts | key & mask) & all;
        match self
            .newest
            .compare_exchange(newest, serial, Relaxed, Relaxed)
        {
            Ok(_) => {
                // Somewhat older frames may still come, from another sender.
                let older = self.config.horizon.min(serial & mask);
                self.floor.store(serial - older, Relaxed);
                self.strays.store(0, Relaxed);
                Ok(serial)
            }
            Err(_) => self.admit_again(key),
        }
    }
}
