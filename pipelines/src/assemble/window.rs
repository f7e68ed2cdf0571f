//! Which frame numbers are taken: those near the newest, and not behind what was delivered.
//!
//! A frame number becomes a [serial number](super::serials) that no restart of the sender takes back.
//!
//! A number that is ahead of the newest by more than the horizon, or that far behind, is refused:
//! a wrong number must not move the window. So is one with more bits than a serial number has room for
//! (38 with 64 buffers). [`RESYNC`] such packets in a row, near each other and
//! without any that fits, are a restart of the sender, or a gap longer than the horizon: the window
//! begins anew there. A reader may announce a restart, which the first packet then makes. A number that is a little behind is late, however often it comes: a sender that
//! repeats its last frames does not have them delivered twice.

use std::sync::atomic::Ordering::Relaxed;

use pollux_pmd::Cause;

use super::memory::{ANEW, NONE, Shared};
use super::serials::RESTART_BITS;

/// Refused packets in a row that begin the window anew.
pub(super) const RESYNC: u32 = 32;

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
        if newest & ANEW != 0 {
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

    /// Has the next packet begin the window anew.
    pub(super) fn begin_anew(&self) {
        self.newest.fetch_or(ANEW, Relaxed);
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
