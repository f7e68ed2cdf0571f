//! Receive side: the kernel writes frames into posted buffers.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{Burst, BurstMut, Mbuf, MbufFlags, PoolCache};

use super::attachment::Attachment;
use super::ring::{Consumer, Producer};
use super::socket::Statistics;
use super::umem::Posted;
use crate::clock::{Clock, TscClock};
use crate::driver::{Origin, RxDriver};
use crate::drivers::interface::Watch;
use crate::ledger::{Cause, Tally};
use crate::port::RxState;

/// Interval at which an idle queue checks its link.
const WATCH: Ns = Ns(10_000_000);

/// Maximum number of buffers that are posted at once.
const BATCH: usize = 32;

/// Maximum number of fragments of a frame: no kernel makes more than MAX_SKB_FRAGS, at most 45,
/// plus one.
const MAX_PIECES: u32 = 64;

/// Mode of a receive queue.
#[derive(Clone, Copy)]
pub(super) struct Mode {
    /// Enter the kernel on each poll that finds no frame; it then polls the NIC.
    pub(super) busy_poll: bool,
    /// Mark all frames as trusted: their checksums are not verified.
    pub(super) trust_checksums: bool,
    /// Frames may arrive in fragments.
    pub(super) pieces: bool,
}

#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Rx {
    ring: Consumer<libc::xdp_desc>,
    fill: Producer<u64>,
    posted: Posted,
    /// Number of buffers that the kernel should have.
    target: usize,
    /// The start of a frame whose end has not arrived yet.
    partial: Option<Partial>,
    mode: Mode,
    shared: Arc<Attachment>,
    queue: usize,
    counted: Statistics,
    link: Arc<Watch>,
    state: RxState,
    clock: TscClock,
    watch_at: Tsc,
}

/// A frame in fragments.
struct Partial {
    frame: Result<Mbuf, Cause>,
    pieces: u32,
    bytes: u64,
}

impl Rx {
    /// A queue whose buffers are already posted.
    pub(super) fn new(
        (ring, fill): (Consumer<libc::xdp_desc>, Producer<u64>),
        (posted, target): (Posted, usize),
        mode: Mode,
        (shared, queue): (Arc<Attachment>, usize),
        link: Arc<Watch>,
    ) -> Self {
        let clock = TscClock::get();
        let mut rx = Self {
            ring,
            fill,
            posted,
            target,
            partial: None,
            mode,
            shared,
            queue,
            counted: Statistics::default(),
            link,
            state: RxState::Live,
            clock,
            watch_at: clock.now(),
        };
        rx.watch_link(clock.now());
        rx.refill(None);
        rx
    }

    /// Posts buffers until the kernel has the target number, a batch at a time.
    #[inline]
    fn refill(&mut self, mut cache: Option<&mut PoolCache>) {
        // If it has few buffers, the kernel must not run out before the next batch.
        let batch = (self.target / 4).clamp(1, BATCH);
        let mut burst = Burst::<BATCH>::new();
        let mut short = self.target.saturating_sub(self.posted.count());
        while short >= batch && self.fill.free(batch as u32) >= batch as u32 {
            let umem = self.posted.umem();
            umem.alloc(cache.as_deref_mut(), &mut burst, batch);
            let got = burst.len();
            burst.take_all(|mbuf| {
                // All have room: their buffers belong to the UMEM, and the free space of the ring
                // was checked.
                if let Some(address) = self.posted.post(mbuf) {
                    let _ = self.fill.push(address);
                }
            });
            if got < batch {
                break;
            }
            short -= got;
        }
        self.fill.submit();
    }

    /// Appends a fragment to its frame; returns the frame if that was the last.
    #[cold]
    fn join(
        &mut self,
        piece: Result<Mbuf, Cause>,
        desc: &libc::xdp_desc,
    ) -> Option<(Result<Mbuf, Cause>, u64)> {
        let len = u64::from(desc.len);
        let whole = match self.partial.take() {
            None => Partial {
                frame: piece,
                pieces: 1,
                bytes: len,
            },
            Some(partial) => Partial {
                frame: partial.frame.and_then(|mut head| {
                    if partial.pieces == MAX_PIECES {
                        return Err(Cause::DeviceError);
                    }
                    head.chain(piece?).map_err(|_| Cause::Oversize)?;
                    Ok(head)
                }),
                pieces: (partial.pieces + 1).min(MAX_PIECES),
                bytes: partial.bytes.saturating_add(len),
            },
        };
        if desc.options & libc::XDP_PKT_CONTD == 0 {
            return Some((whole.frame, whole.bytes));
        }
        self.partial = Some(whole);
        None
    }

    /// The next complete frame in the ring.
    #[inline]
    fn next(&mut self) -> Option<(Result<Mbuf, Cause>, u64)> {
        loop {
            let desc = self.ring.pop()?;
            let piece = self.posted.received(desc.addr, desc.len);
            if desc.options & libc::XDP_PKT_CONTD == 0 && self.partial.is_none() {
                return Some((piece, u64::from(desc.len)));
            }
            if let Some(frame) = self.join(piece, &desc) {
                return Some(frame);
            }
        }
    }

    /// Counts impossible indices: each represents a frame that the kernel reports and cannot have.
    fn count_lies(&mut self, tally: &mut Tally) {
        let lies = self.ring.take_lies() + self.fill.take_lies();
        if lies > 0 {
            tally.count_from_wire(lies, 0);
            tally.count_dropped(Cause::DeviceError, lies);
        }
    }

    #[inline]
    fn idle(&mut self, now: Tsc, tally: &mut Tally) {
        if self.mode.busy_poll || self.fill.needs_wakeup() {
            self.shared.socket(self.queue).kick_rx();
        }
        if now >= self.watch_at {
            self.watch_link(now);
            self.count_lies(tally);
        }
    }

    #[cold]
    fn watch_link(&mut self, now: Tsc) {
        self.watch_at = Tsc(now.0.wrapping_add(self.clock.to_cycles(WATCH)));
        self.state = self.link.look();
    }
}

impl RxDriver for Rx {
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        let before = out.len();
        let now = self.clock.now();
        self.refill(Some(cache));
        let (mut frames, mut bytes) = (0, 0);
        // One pass over the ring at most, so that a flood of dropped frames also ends.
        for _ in 0..self.ring.size() {
            if out.free() == 0 {
                break;
            }
            let Some((received, len)) = self.next() else {
                break;
            };
            frames += 1;
            bytes += len;
            match received {
                Ok(mut mbuf) => {
                    origin.stamp(&mut mbuf, now);
                    if self.mode.trust_checksums {
                        mbuf.add_flags(MbufFlags::CHECKSUM_TRUSTED);
                    }
                    // The frame fits: the capacity was checked at the start of the loop.
                    drop(out.push(mbuf));
                }
                Err(cause) => tally.count_dropped(cause, 1),
            }
        }
        self.ring.release();
        if frames == 0 {
            self.idle(now, tally);
            return 0;
        }
        tally.count_from_wire(frames, bytes);
        out.len() - before
    }

    fn state(&self) -> RxState {
        self.state
    }

    fn event(&self) -> Option<BorrowedFd<'_>> {
        Some(self.shared.socket(self.queue).as_fd())
    }

    fn sync_counters(&mut self, tally: &mut Tally) {
        // The program's drops belong to no queue: the first one counts them.
        let filtered = if self.queue == 0 {
            self.shared.take_dropped_by_program()
        } else {
            0
        };
        let before = self.counted;
        if let Some(now) = self.shared.socket(self.queue).statistics() {
            self.counted = now;
        }
        let now = &self.counted;
        let dropped = now.dropped.saturating_sub(before.dropped);
        let ring_full = now.ring_full.saturating_sub(before.ring_full);
        // The kernel counts a frame as dropped if FILL is empty, which it counts as well, or if the
        // frame is longer than a buffer and fragments are disabled.
        let no_mbuf = if self.mode.pieces {
            dropped
        } else {
            dropped.min(now.fill_empty.saturating_sub(before.fill_empty))
        };
        tally.count_from_wire(filtered + dropped + ring_full, 0);
        tally.count_dropped(Cause::NotForUs, filtered);
        tally.count_dropped(Cause::NoMbuf, no_mbuf);
        tally.count_dropped(Cause::Oversize, dropped - no_mbuf);
        tally.count_dropped(Cause::RingFull, ring_full);
        self.count_lies(tally);
    }

    fn finish(&mut self, tally: &mut Tally) {
        self.shared.detach();
        for _ in 0..self.ring.size() {
            let Some((frame, bytes)) = self.next() else {
                break;
            };
            drop(frame);
            tally.count_from_wire(1, bytes);
            tally.count_dropped(Cause::Aborted, 1);
        }
        if let Some(partial) = self.partial.take() {
            tally.count_from_wire(1, partial.bytes);
            tally.count_dropped(Cause::Aborted, 1);
        }
        self.ring.release();
        self.sync_counters(tally);
    }
}

impl Drop for Rx {
    fn drop(&mut self) {
        self.shared.retire(&mut self.posted);
    }
}
