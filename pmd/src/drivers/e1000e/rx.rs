//! Receives frames into buffers of the pool, without a copy: section 7.1 of the datasheet.
//!
//! The device fills the buffers in the order in which they were posted, so that the next one is
//! the only one that is looked at: a word of its descriptor says that it is done. What was posted
//! is known from a shadow; of what the device writes, a length is believed if it was posted.

use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;

use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{Burst, BurstMut, Mbuf, MbufFlags, Mempool, PoolCache};

use super::counters::{Counters, Losses};
use super::descriptors::{Format, Received, Ring};
use super::nic::{is_up, switch_off};
use super::registers::{IMC, IMS, IMS_RXQ0, IMS_RXQ1, RCTL, RDFPC, RDT, STATUS};
use crate::bus::{Bus, Device, Interrupts};
use crate::clock::Clock;
use crate::driver::{Origin, RxDriver};
use crate::drivers::virtio::{Assembly, DeviceAddresses};
use crate::ledger::{Cause, Tally};
use crate::port::RxState;

/// Buffers are posted by so many: one look at the pool and one write to the tail for all of them.
const REFILL: usize = 32;

/// How often the link is looked at while nothing comes.
const WATCH: Ns = Ns(10_000_000);

/// More frames than the packet buffer of 40 KiB holds: the register of a device that is gone.
const MOST_WAITING: u32 = 640;

/// What a receive queue is made of.
pub(super) struct RxParts<D: Device> {
    pub(super) bus: D::Bus,
    pub(super) clock: D::Clock,
    pub(super) queue: usize,
    pub(super) ring: Ring,
    pub(super) addresses: DeviceAddresses,
    pub(super) pool: Mempool,
    /// Bytes of a buffer that the device fills.
    pub(super) room: usize,
    /// Bytes of the longest frame.
    pub(super) longest: usize,
    pub(super) counters: Arc<Counters>,
    /// The vector of this queue has its number.
    pub(super) interrupts: Option<Arc<Interrupts>>,
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

/// A receive queue.
pub(super) struct Rx<D: Device, F> {
    parts: RxParts<D>,
    /// By slot.
    posted: Box<[Option<Mbuf>]>,
    /// Numbers of the buffer that the device fills next, and of the next to be posted: they count
    /// on over the laps. The ring is never filled whole, as that would look like an empty one.
    next: u32,
    filled: u32,
    part: Part,
    gathered: Assembly,
    losses: Losses,
    state: RxState,
    watch_at: Tsc,
    format: PhantomData<F>,
}

impl<D: Device, F: Format> Rx<D, F> {
    /// A queue whose ring is empty.
    pub(super) fn new(parts: RxParts<D>) -> Self {
        Self {
            posted: (0..parts.ring.size()).map(|_| None).collect(),
            next: 0,
            filled: 0,
            part: Part::First,
            gathered: Assembly::new(),
            losses: Losses::default(),
            state: RxState::Live,
            watch_at: parts.clock.now(),
            parts,
            format: PhantomData,
        }
    }

    /// Posts the first buffers, once the device receives.
    pub(super) fn fill(&mut self) {
        let pool = self.parts.pool.clone();
        self.post(|burst, n| pool.alloc_burst(burst, n));
    }

    /// Adds the frames that have come to `out`, and counts them, those that are lost too.
    #[inline(always)]
    fn collect(&mut self, out: &mut BurstMut<'_>, tally: &mut Tally) {
        let (mut frames, mut bytes) = (0, 0);
        // Of a whole frame in one buffer.
        let most = self.parts.room.min(self.parts.longest);
        while out.free() > 0 && self.next != self.filled {
            let done = F::received(self.parts.ring.read(self.next));
            if !done.is_done() {
                break;
            }
            let slot = self.parts.ring.slot(self.next);
            let Some(mut mbuf) = self.posted.get_mut(slot).and_then(Option::take) else {
                break;
            };
            self.next = self.next.wrapping_add(1);
            let len = done.len();
            if done.is_good() && self.part == Part::First && (1..=most).contains(&len) {
                let fits = mbuf.append(len).is_some();
                debug_assert!(fits, "no more than was posted");
            } else {
                mbuf = match self.gather(mbuf, done) {
                    None => continue,
                    Some(Ok(frame)) => frame,
                    Some(Err(cause)) => {
                        frames += 1;
                        tally.count_dropped(cause, 1);
                        continue;
                    }
                };
            }
            if done.is_verified() {
                mbuf.add_flags(MbufFlags::CHECKSUM_TRUSTED);
            }
            frames += 1;
            bytes += mbuf.total_len() as u64;
            drop(out.push(mbuf));
        }
        if frames > 0 {
            tally.count_from_wire(frames, bytes);
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
        let before = self.filled;
        let mut fresh = Burst::<REFILL>::new();
        loop {
            let free = self.free();
            if free == 0 || alloc(&mut fresh, free.min(REFILL)) == 0 {
                break;
            }
            let mut unreachable = false;
            fresh.take_all(|mbuf| {
                let data = NonNull::new(mbuf.data_ptr().cast_mut());
                let at = data.and_then(|data| self.parts.addresses.of(data, self.parts.room));
                let slot = self.parts.ring.slot(self.filled);
                let (Some(address), Some(posted)) = (at, self.posted.get_mut(slot)) else {
                    // Of a region that the device was not given: it goes back.
                    unreachable = true;
                    return;
                };
                *posted = Some(mbuf);
                self.parts
                    .ring
                    .write(self.filled, [address, Received::POSTED]);
                self.filled = self.filled.wrapping_add(1);
            });
            if unreachable {
                break;
            }
        }
        if self.filled != before {
            let tail = self.parts.ring.slot(self.filled) as u32;
            self.parts.bus.write32(RDT.of(self.parts.queue), tail);
        }
    }

    #[inline(always)]
    fn free(&self) -> usize {
        (self.parts.ring.size() - 1 - self.filled.wrapping_sub(self.next)) as usize
    }

    #[cold]
    fn watch_link(&mut self, now: Tsc) {
        let period = self.parts.clock.to_cycles(WATCH);
        self.watch_at = Tsc(now.0.wrapping_add(period));
        self.state = if is_up(self.parts.bus.read32(STATUS.at)) {
            RxState::Live
        } else {
            RxState::Down
        };
    }

    fn cause(&self) -> u32 {
        [IMS_RXQ0, IMS_RXQ1][self.parts.queue.min(1)]
    }
}

impl<D: Device, F: Format> RxDriver for Rx<D, F> {
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
        if self.free() >= REFILL {
            if cache.pool().id() == self.parts.pool.id() {
                self.post(|burst, n| cache.alloc_burst(burst, n));
            } else {
                self.fill();
            }
        }
        let n = out.len() - before;
        if n == 0 && now >= self.watch_at {
            self.watch_link(now);
        }
        n
    }

    fn state(&self) -> RxState {
        self.state
    }

    fn sync_counters(&mut self, tally: &mut Tally) {
        // The device counts for both queues.
        if self.parts.queue == 0 {
            let RxParts { counters, bus, .. } = &self.parts;
            self.losses.tell(counters, bus, tally);
        }
    }

    fn event(&self) -> Option<BorrowedFd<'_>> {
        let interrupts = self.parts.interrupts.as_ref()?;
        interrupts.event(self.parts.queue as u16)
    }

    fn arm(&mut self) {
        // A cause that came while it was masked signals at once (section 7.4).
        self.parts.bus.write32(IMS.at, self.cause());
    }

    fn disarm(&mut self) {
        self.parts.bus.write32(IMC.at, self.cause());
    }

    fn finish(&mut self, tally: &mut Tally) {
        // For both queues: they come back together.
        switch_off(&self.parts.bus, &self.parts.clock, RCTL);
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
        if self.parts.queue == 0 {
            // Those that found no descriptor are left where they are.
            let left = self.parts.bus.read32(RDFPC.at);
            let left = u64::from(if left > MOST_WAITING { 0 } else { left });
            tally.count_from_wire(left, 0);
            tally.count_dropped(Cause::Aborted, left);
        }
        self.sync_counters(tally);
    }
}

impl<D: Device, F> Drop for Rx<D, F> {
    /// The device lets go of the buffers before they go back to the pool.
    fn drop(&mut self) {
        switch_off(&self.parts.bus, &self.parts.clock, RCTL);
    }
}
