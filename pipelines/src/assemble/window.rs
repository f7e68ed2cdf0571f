//! Which frame numbers are taken: those near the newest, and not behind what was delivered.
//!
//! A frame number becomes a [serial number](super::serials) that no restart of the sender takes back.
//!
//! A number is near if it is no further from the newest than [`jump`](super::AssembleConfig::jump).
//! One that is far, ahead or behind, is refused: a wrong number must not move the window. So is one
//! with more bits than a serial number has room for (38 with 64 buffers). [`RESYNC`] such packets in a
//! row, near each other and without any that is taken, are believed: the window goes on there, if it is
//! ahead within the horizon, and the frames between are lost; otherwise the sender began anew, and so
//! does the window. A reader may announce that, which the first packet then makes.
//!
//! A near number that is behind what was delivered is late, however often it comes: a sender that
//! repeats its last frames does not have them delivered twice. Only when no frame has begun for
//! [`SILENCE`] is it refused as a far one is; the newest number, and the last one that was delivered, not
//! even then: a sender that pauses in a frame goes on with packets of it.
//!
//! A window that moves closes the frames whose buffers are needed soon, whether their time is over or not.
//! If a frame were closed only by a packet that needs its buffer, that packet would be lost to the reader,
//! which has yet to take the old frame: the new frame would lack it and stay open as long, and so would the
//! frame of each further lap.

use std::sync::atomic::Ordering::Relaxed;

use pollux_mempool::time::Ns;
use pollux_pmd::Cause;

use super::memory::{ANEW, NONE, Shared};
use super::serials::RESTART_BITS;
use super::turns::State;
use crate::stage::Moment;

/// Refused packets in a row that are believed.
const RESYNC: u32 = 32;

/// How long after the begin of the last frame a sender may have begun anew near its last number.
const SILENCE: Ns = Ns(1_000_000_000);

impl Shared {
    /// The serial number of the frame of a packet that came at `at`.
    ///
    /// # Errors
    /// The cause for which the packet is refused.
    #[inline]
    pub(super) fn admit(&self, key: u64, at: Moment) -> Result<u64, Cause> {
        let (mask, serials) = (self.serials.key_mask, &self.serials);
        if key & !mask != 0 {
            return Err(Cause::OutOfWindow);
        }
        let newest = self.newest.load(Relaxed);
        if newest & ANEW != 0 {
            return self.begin(newest, key, at);
        }
        let serial = newest & !mask | key & mask;
        let ahead = serials.distance(serial, newest);
        let is_far = ahead.unsigned_abs() > self.config.jump;
        if is_far || serials.distance(serial, self.floor.load(Relaxed)) < 0 {
            return self.refuse(newest, key, at);
        }
        if ahead > 0 && !self.advance(newest, serial) {
            return self.admit_again(key, at);
        }
        if self.strays.load(Relaxed) != 0 {
            self.strays.store(0, Relaxed);
        }
        Ok(serial)
    }

    /// A number that is far, or behind what was delivered.
    ///
    /// # Errors
    /// The cause for which its packet is refused, unless there have been enough of them.
    #[cold]
    #[inline(never)]
    fn refuse(&self, newest: u64, key: u64, at: Moment) -> Result<u64, Cause> {
        let mask = self.serials.key_mask;
        let serial = newest & !mask | key & mask;
        let ahead = self.serials.distance(serial, newest);
        let is_far = ahead.unsigned_abs() > self.config.jump;
        let is_silent = at > Moment(self.begun.load(Relaxed)).after(SILENCE);
        let is_last = ahead == 0 || self.serials.distance(serial, self.floor.load(Relaxed)) == -1;
        if (is_far || is_silent && !is_last) && self.is_believed(key) {
            if !(1..=self.config.horizon as i64).contains(&ahead) {
                return self.begin(newest, key, at);
            }
            return if self.advance(newest, serial) {
                self.strays.store(0, Relaxed);
                Ok(serial)
            } else {
                self.admit_again(key, at)
            };
        }
        Err(if ahead > 0 {
            Cause::OutOfWindow
        } else {
            Cause::Late
        })
    }

    /// Has the next packet begin the window anew.
    pub(super) fn begin_anew(&self) {
        self.newest.fetch_or(ANEW, Relaxed);
    }

    /// Makes a serial number the newest, unless another loop was faster: the window may have moved
    /// far then. Out of line, since only one packet of a frame needs it.
    #[cold]
    #[inline(never)]
    fn advance(&self, newest: u64, serial: u64) -> bool {
        let moved = self
            .newest
            .compare_exchange(newest, serial, Relaxed, Relaxed)
            .is_ok();
        if moved {
            self.make_room(serial, self.serials.distance(serial, newest) as u64);
        }
        moved
    }

    /// Closes the older frames in the buffers of the last `frames` of those that end at the margin ahead of a
    /// serial number.
    fn make_room(&self, serial: u64, frames: u64) {
        let (buffers, margin) = (self.config.buffers as u64, self.config.margin() as u64);
        let last = serial.wrapping_add(margin).wrapping_sub(buffers);
        for back in (0..frames.min(buffers)).rev() {
            let due = last.wrapping_sub(back);
            let (buffer, _) = self.serials.split(due);
            let (state, lap) = self.turns.state(buffer);
            let open = self.serials.join(buffer, lap);
            // Another loop may be further, and a frame of another lap may be in the buffer.
            if state == State::Filling && self.serials.distance(open, due) <= 0 {
                self.close_early(buffer, lap);
            }
        }
    }

    /// [`admit`](Self::admit) where another loop was faster: a function that calls itself is not
    /// inlined.
    #[cold]
    #[inline(never)]
    fn admit_again(&self, key: u64, at: Moment) -> Result<u64, Cause> {
        self.admit(key, at)
    }

    /// Notes a refused number; whether there have been enough.
    fn is_believed(&self, key: u64) -> bool {
        let last = self.stray.swap(key, Relaxed);
        if key.abs_diff(last) > self.config.jump {
            self.strays.store(0, Relaxed);
        }
        self.strays.fetch_add(1, Relaxed) + 1 >= RESYNC
    }

    /// Begins the window anew at a frame number; its serial number.
    ///
    /// # Errors
    /// The cause for which its packet is refused, where another loop began elsewhere.
    #[cold]
    fn begin(&self, newest: u64, key: u64, at: Moment) -> Result<u64, Cause> {
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
                let older = self.config.jump.min(serial & mask);
                self.floor.store(serial - older, Relaxed);
                self.strays.store(0, Relaxed);
                // Frames of before may be open in the buffers of the next ones.
                self.make_room(serial, self.config.margin() as u64 + 1);
                Ok(serial)
            }
            Err(_) => self.admit_again(key, at),
        }
    }
}
