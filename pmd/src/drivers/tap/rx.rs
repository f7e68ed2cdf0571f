//! Receive side: reads frames of the kernel into prepared buffers.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{BurstMut, Mbuf, Mempool, PoolCache};
use rustix::io::Errno;

use super::limits::MAX_SEGMENTS;
use super::queue::Queue;
use crate::clock::{Clock, TscClock};
use crate::driver::{Origin, RxDriver};
use crate::drivers::interface::{Interface, View, Watch};
use crate::ledger::{Cause, Tally};
use crate::port::RxState;

/// Interval at which an idle queue checks its link.
const WATCH: Ns = Ns(10_000_000);

/// Maximum number of frames that one poll reads, so that a flood of dropped frames also ends.
const LOOK: usize = 256;

/// Maximum number of frames of a queue: the largest that a port can be configured with.
const LONGEST_QUEUE: usize = 1 << 20;

/// Frames that the kernel dropped since a queue was full; the interface counts them for all queues
/// together.
pub(super) struct Drops {
    view: View,
    /// Drops that have been counted in the ledger.
    counted: u64,
}

impl Drops {
    pub(super) fn new(interface: &Interface) -> io::Result<Self> {
        let view = View::new(interface)?;
        let counted = view.counter("tx_dropped").unwrap_or_default();
        Ok(Self { view, counted })
    }

    /// Drops since the last call.
    fn take(&mut self) -> u64 {
        let all = self.view.counter("tx_dropped").unwrap_or(self.counted);
        let new = all.saturating_sub(self.counted);
        self.counted = all;
        new
    }
}

#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Rx {
    queue: Arc<Queue>,
    watch: Arc<Watch>,
    drops: Option<Drops>,
    /// Buffers for the next frame, with their whole data room appended; a frame begins in the last.
    spare: Vec<Mbuf>,
    /// Number of buffers of the longest frame.
    wanted: usize,
    /// Overflow area behind the buffers: one byte more than the longest frame, so that a frame that
    /// does not fit is detected by its length.
    overflow: Box<[u8]>,
    room: usize,
    state: RxState,
    gone: bool,
    clock: TscClock,
    watch_at: Tsc,
}

impl Rx {
    pub(super) fn new(
        queue: Arc<Queue>,
        watch: Arc<Watch>,
        pool: &Mempool,
        longest: usize,
        drops: Option<Drops>,
    ) -> Self {
        let room = pool.data_room();
        let most = (MAX_SEGMENTS - 1).min(pool.longest_frame() / room);
        let wanted = longest.div_ceil(room).min(most);
        let clock = TscClock::get();
        let state = watch.look();
        Self {
            queue,
            watch,
            drops,
            spare: Vec::with_capacity(wanted),
            wanted,
            overflow: vec![0; longest + 1].into(),
            room,
            state,
            gone: false,
            clock,
            watch_at: clock.now(),
        }
    }

    /// Prepares as many buffers as the pool can give.
    #[inline]
    fn refill(&mut self, cache: &mut PoolCache) {
        while self.spare.len() < self.wanted
            && let Some(mut mbuf) = cache.alloc()
        {
            // A fresh buffer has its whole data room.
            let _ = mbuf.append(self.room);
            self.spare.push(mbuf);
        }
    }

    /// Reads a frame; returns its length, or the length of all buffers, overflow area included, if
    /// it does not fit.
    #[inline]
    fn read(&mut self) -> Result<usize, Errno> {
        let mut spare = self.spare.iter_mut().rev();
        let mut overflow = Some(&mut self.overflow[..]);
        let next = |_| {
            let buffer = spare.next().map(Mbuf::data_mut);
            IoSliceMut::new(buffer.or_else(|| overflow.take()).unwrap_or_default())
        };
        let mut buffers: [IoSliceMut<'_>; MAX_SEGMENTS] = std::array::from_fn(next);
        self.queue.read(&mut buffers[..=self.wanted])
    }

    /// Makes a frame of the buffers that it was read into.
    #[inline]
    fn take(&mut self, len: usize) -> Result<Mbuf, Cause> {
        if len > self.spare.len() * self.room {
            let full = self.spare.len() == self.wanted;
            return Err(if full { Cause::Oversize } else { Cause::NoMbuf });
        }
        let mut frame = self.spare.pop().ok_or(Cause::NoMbuf)?;
        while frame.total_len() < len
            && let Some(next) = self.spare.pop()
        {
            // The frame has fewer segments than the maximum of a chain.
            drop(frame.chain(next));
        }
        frame.truncate(len);
        Ok(frame)
    }

    #[inline]
    fn idle(&mut self, now: Tsc) {
        if now >= self.watch_at {
            self.watch_link(now);
        }
    }

    #[cold]
    fn watch_link(&mut self, now: Tsc) {
        self.watch_at = Tsc(now.0.wrapping_add(self.clock.to_cycles(WATCH)));
        self.state = self.watch.look();
    }

    /// The interface was deleted together with the frames in its queue, whose number is unknown.
    /// One frame represents them in the ledger.
    #[cold]
    fn give_up(&mut self, now: Tsc, tally: &mut Tally) {
        tally.count_from_wire(1, 0);
        tally.count_dropped(Cause::DeviceError, 1);
        self.watch_link(now);
        (self.gone, self.state) = (true, RxState::Gone);
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
        if self.gone {
            return 0;
        }
        let before = out.len();
        let now = self.clock.now();
        let (mut frames, mut bytes) = (0, 0);
        for _ in 0..LOOK {
            if out.free() == 0 {
                break;
            }
            self.refill(cache);
            let len = match self.read() {
                Ok(len) => len,
                Err(Errno::AGAIN | Errno::INTR) => break,
                Err(_) => {
                    self.give_up(now, tally);
                    break;
                }
            };
            frames += 1;
            bytes += len as u64;
            match self.take(len) {
                Ok(mut mbuf) => {
                    origin.stamp(&mut mbuf, now);
                    // The frame fits: the capacity was checked at the start of the loop.
                    drop(out.push(mbuf));
                }
                Err(cause) => tally.count_dropped(cause, 1),
            }
        }
        if frames == 0 {
            self.idle(now);
            return 0;
        }
        tally.count_from_wire(frames, bytes);
        out.len() - before
    }

    fn state(&self) -> RxState {
        self.state
    }

    fn event(&self) -> Option<BorrowedFd<'_>> {
        Some(self.queue.as_fd())
    }

    fn sync_counters(&mut self, tally: &mut Tally) {
        if let Some(drops) = &mut self.drops {
            let new = drops.take();
            tally.count_from_wire(new, 0);
            tally.count_dropped(Cause::KernelDrop, new);
        }
    }

    fn finish(&mut self, tally: &mut Tally) {
        // Another core may be putting a frame into the queue concurrently.
        if self.queue.shut().is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..LONGEST_QUEUE {
            let Ok(len) = self.read() else { break };
            tally.count_from_wire(1, len as u64);
            tally.count_dropped(Cause::Aborted, 1);
        }
        self.sync_counters(tally);
    }
}
