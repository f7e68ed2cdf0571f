//! Receives frames into buffers of the pool, without a copy: section 7.1 of either datasheet.
//!
//! The device fills the buffers in the order in which they were posted, so that the next one is
//! the only one that is looked at: a word of its descriptor says that it is done. What was posted
//! is known from a shadow; of what the device writes, a length is believed if it was posted.

use std::marker::PhantomData;
use std::mem;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use pollux_mempool::{Burst, BurstMut, Mbuf, MbufFlags, Mempool, PoolCache};

#[cfg(doc)]
use super::descriptors::MIN_RING;
use super::descriptors::{Format, Received, Ring};
use crate::clock::Clock;
use crate::driver::{Origin, RxDriver};
use crate::drivers::dma::{Assembly, DeviceAddresses};
use crate::ledger::{Cause, Tally};
use crate::port::RxState;
use crate::quarantine::Quarantine;

/// Buffers are posted by so many: one look at the pool and one write to the tail for all of them.
const REFILL: usize = 32;

/// What a receive queue asks of its device, beside the ring.
pub(crate) trait RxControl: Send + 'static {
    /// Whether descriptors name the protocols of their frames, as the 82576's do.
    const HAS_PROTOCOLS: bool = false;

    /// Moves the queue's tail to that slot.
    fn set_tail(&self, slot: u32);

    /// Whether frames can arrive, as of the last [`Driver::link`](crate::driver::Driver::link).
    /// Called by poll loops: reads no register.
    fn state(&self) -> RxState;

    /// Has this queue receive nothing more, as far as the device can do that for one queue: the
    /// others go on. Its buffers may still be written.
    fn disable(&self);

    /// Counts the frames that the device has lost before any descriptor, since it was asked last.
    fn count_losses(&mut self, tally: &mut Tally);

    /// Counts the lost frames that housekeeping has read from the device since the last call. Called
    /// by poll loops: reads no register.
    fn count_known_losses(&self, _tally: &mut Tally) {}

    /// Counts the frames that are left in the device when it has been stopped.
    fn count_left(&self, _tally: &mut Tally) {}

    /// What becomes readable when frames come and the queue is [armed](Self::arm).
    fn event(&self) -> Option<BorrowedFd<'_>>;

    /// Has the device signal the event once.
    fn arm(&self);

    /// Has the device leave the event alone.
    fn disarm(&self);
}

/// What a receive queue is made of.
pub(crate) struct RxParts<Q, C> {
    pub(crate) control: Q,
    pub(crate) clock: C,
    pub(crate) ring: Ring,
    pub(crate) addresses: DeviceAddresses,
    pub(crate) pool: Mempool,
    /// Bytes of a buffer that the device fills.
    pub(crate) room: usize,
    /// Bytes of the longest frame.
    pub(crate) longest: usize,
    /// Where buffers go that are posted at the end.
    pub(crate) quarantine: Quarantine,
}

/// Where the next buffer belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// To a new frame.
    First,
    /// To the frame of so many bytes whose buffers have been gathered.
    Of(usize),
    /// To a frame that has been counted as lost.
    Skipped,
}

/// Statistics of one poll of the ring.
#[derive(Default)]
struct BatchStats {
    frames: u64,
    bytes: u64,
}

impl BatchStats {
    /// Adds a frame to `out`, which has room for it.
    #[inline(always)]
    fn add(&mut self, len: usize, done: Received, mut frame: Mbuf, out: &mut BurstMut<'_>) {
        if done.is_verified() {
            frame.add_flags(MbufFlags::CHECKSUM_TRUSTED);
        }
        self.frames += 1;
        self.bytes += len as u64;
        drop(out.push(frame));
    }
}

/// A receive queue.
#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(crate) struct Rx<Q: RxControl, C, F> {
    parts: RxParts<Q, C>,
    /// By slot.
    posted: Box<[Option<Mbuf>]>,
    /// Numbers of the buffer that the device fills next, and of the next to be posted: they count
    /// on over the laps. The ring is never filled whole, as that would look like an empty one.
    next: u32,
    filled: u32,
    part: Part,
    gathered: Assembly,
    /// Whether frames get metadata.
    describes: bool,
    format: PhantomData<F>,
}

impl<Q: RxControl, C: Clock, F: Format> Rx<Q, C, F> {
    /// A queue whose ring is empty.
    pub(crate) fn new(parts: RxParts<Q, C>) -> Self {
        Self {
            posted: (0..parts.ring.size()).map(|_| None).collect(),
            next: 0,
            filled: 0,
            part: Part::First,
            gathered: Assembly::new(),
            // A legacy descriptor has the address of its buffer in its place.
            describes: F::EXTENDED && parts.pool.has_metadata(),
            parts,
            format: PhantomData,
        }
    }

    /// Posts the first buffers, once the device receives.
    pub(crate) fn fill(&mut self) {
        let pool = self.parts.pool.clone();
        self.post(|burst, n| pool.alloc_burst(burst, n));
    }

    /// Adds the frames that have come to `out`, and counts them, those that are lost too.
    #[inline(always)]
    fn collect(&mut self, out: &mut BurstMut<'_>, tally: &mut Tally) {
        let mut stats = BatchStats::default();
        while let Some((mbuf, done)) = self.collect_plain(out, &mut stats) {
            match self.gather(mbuf, done) {
                None => {}
                Some(Ok(mut frame)) => {
                    self.describe(&mut frame, self.next.wrapping_sub(1));
                    stats.add(frame.total_len(), done, frame, out);
                }
                Some(Err(cause)) => {
                    stats.frames += 1;
                    tally.count_dropped(cause, 1);
                }
            }
        }
        if stats.frames > 0 {
            tally.count_from_wire(stats.frames, stats.bytes);
        }
    }

    /// Adds frames that are each in one buffer, and right. Ends with a buffer that is anything else.
    #[inline(always)]
    fn collect_plain(
        &mut self,
        out: &mut BurstMut<'_>,
        stats: &mut BatchStats,
    ) -> Option<(Mbuf, Received)> {
        let slots = self.parts.ring.slots();
        let (mut next, filled) = (self.next, self.filled);
        // Of a whole frame in one buffer.
        let most = match self.part {
            Part::First => self.parts.room.min(self.parts.longest),
            Part::Of(_) | Part::Skipped => 0,
        };
        let mut other = None;
        while out.free() > 0 && next != filled {
            let done = F::received(slots.read(next));
            if !done.is_done() {
                break;
            }
            let posted = self.posted.get_mut(slots.of(next));
            let Some(mut mbuf) = posted.and_then(Option::take) else {
                break;
            };
            next = next.wrapping_add(1);
            let len = done.len();
            if !done.is_good() || len.wrapping_sub(1) >= most || mbuf.append(len).is_none() {
                other = Some((mbuf, done));
                break;
            }
            if self.describes {
                self.describe(&mut mbuf, next.wrapping_sub(1));
            }
            stats.add(len, done, mbuf, out);
        }
        self.next = next;
        other
    }

    /// Writes metadata of a frame whose last descriptor has this number, if the pool has any.
    #[cold]
    fn describe(&self, frame: &mut Mbuf, number: u32) {
        if !self.describes {
            return;
        }
        let said = self.parts.ring.slots().described(number);
        if let Some(metadata) = frame.metadata_mut() {
            said.write(metadata, Q::HAS_PROTOCOLS);
        }
    }

    /// Adds a buffer to a frame of several, or finds out what is wrong with it. `None` if there is
    /// nothing to be said yet, or any more.
    #[cold]
    fn gather(&mut self, mut mbuf: Mbuf, done: Received) -> Option<Result<Mbuf, Cause>> {
        let before = match self.part {
            Part::First => 0,
            Part::Of(before) => before,
            Part::Skipped => {
                if done.is_last() {
                    self.part = Part::First;
                }
                return None;
            }
        };
        let (len, room) = (done.len(), self.parts.room);
        // Each buffer but the last is filled whole (section 7.1.2); the last one may hold nothing
        // but the CRC, which is cut off.
        let is_sound = if done.is_last() {
            len <= room && before + len > 0
        } else {
            len == room
        };
        let verdict = if !is_sound || done.is_broken() {
            Err(Cause::DeviceError)
        } else if before + len > self.parts.longest {
            Err(Cause::Oversize)
        } else if mbuf.append(len).is_none() || self.gathered.push(mbuf).is_err() {
            Err(Cause::DeviceError)
        } else if !done.is_last() {
            self.part = Part::Of(before + len);
            return None;
        } else if done.is_good() {
            self.gathered.finish().ok_or(Cause::DeviceError)
        } else {
            Err(Cause::BadChecksum)
        };
        if verdict.is_err() {
            drop(self.gathered.finish());
        }
        self.part = if done.is_last() {
            Part::First
        } else {
            Part::Skipped
        };
        Some(verdict)
    }

    /// Posts as many buffers as there is room for, and as can be had.
    #[inline(always)]
    fn post(&mut self, mut alloc: impl FnMut(&mut Burst<REFILL>, usize) -> usize) {
        let RxParts {
            ring,
            addresses,
            room,
            ..
        } = &self.parts;
        let (slots, mut filled) = (ring.slots(), self.filled);
        let mut fresh = Burst::<REFILL>::new();
        let mut unreachable = false;
        while !unreachable {
            let free = (ring.size() - 1 - filled.wrapping_sub(self.next)) as usize;
            if free == 0 || alloc(&mut fresh, free.min(REFILL)) == 0 {
                break;
            }
            fresh.take_all(|mbuf| {
                let data = NonNull::new(mbuf.data_ptr().cast_mut());
                let at = data.and_then(|data| addresses.of(data, *room));
                let posted = self.posted.get_mut(slots.of(filled));
                let (Some(address), Some(posted)) = (at, posted) else {
                    // Of a region that the device was not given: it goes back.
                    unreachable = true;
                    return;
                };
                *posted = Some(mbuf);
                slots.write(filled, [address, Received::POSTED]);
                filled = filled.wrapping_add(1);
            });
        }
        if self.filled != filled {
            let tail = slots.of(filled) as u32;
            self.filled = filled;
            self.parts.control.set_tail(tail);
        }
    }

    /// Buffers are posted once so many are missing: of a small ring a quarter, as the rest has to
    /// hold the longest frame, for which the device waits ([`MIN_RING`]).
    #[inline(always)]
    fn refill_at(&self) -> usize {
        REFILL.min(self.parts.ring.size() as usize / 4)
    }

    #[inline(always)]
    fn free(&self) -> usize {
        (self.parts.ring.size() - 1 - self.filled.wrapping_sub(self.next)) as usize
    }
}

impl<Q: RxControl, C: Clock + 'static, F: Format> RxDriver for Rx<Q, C, F> {
    #[inline]
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        let before = out.len();
        self.collect(out, tally);
        let now = self.parts.clock.now();
        for mbuf in out.as_mut_slice().iter_mut().skip(before) {
            origin.stamp(mbuf, now);
        }
        let received = out.len() - before;
        let refill = self.free() >= self.refill_at();
        // After the last frame too: its poll may have come before the losses were read.
        if refill || received == 0 {
            self.parts.control.count_known_losses(tally);
        }
        if refill {
            if cache.pool().id() == self.parts.pool.id() {
                self.post(|burst, n| cache.alloc_burst(burst, n));
            } else {
                self.fill();
            }
        }
        received
    }

    fn state(&self) -> RxState {
        self.parts.control.state()
    }

    fn sync_counters(&mut self, tally: &mut Tally) {
        self.parts.control.count_losses(tally);
    }

    fn event(&self) -> Option<BorrowedFd<'_>> {
        self.parts.control.event()
    }

    fn arm(&mut self) {
        self.parts.control.arm();
    }

    fn disarm(&mut self) {
        self.parts.control.disarm();
    }

    fn finish(&mut self, tally: &mut Tally) {
        self.parts.control.disable();
        let mut rest = Burst::<REFILL>::new();
        loop {
            self.collect(&mut rest.as_mut(), tally);
            if rest.is_empty() {
                break;
            }
            tally.count_dropped(Cause::Aborted, rest.len() as u64);
            rest.clear();
        }
        if let Part::Of(bytes) = self.part {
            tally.count_from_wire(1, bytes as u64);
            tally.count_dropped(Cause::Aborted, 1);
        }
        self.parts.control.count_left(tally);
        self.sync_counters(tally);
    }
}

impl<Q: RxControl, C, F> Drop for Rx<Q, C, F> {
    /// The device may write what is posted until all of it is at rest.
    fn drop(&mut self) {
        self.parts.control.disable();
        let posted = mem::take(&mut self.posted);
        self.parts.quarantine.park(posted.into_iter().flatten());
    }
}
