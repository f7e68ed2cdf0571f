//! Receive side: one system call for a burst of frames, which the kernel copies into prepared
//! buffers.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{BurstMut, Mbuf, Mempool, PoolCache};
use rustix::io::Errno;

use super::socket::{BATCH, Socket};
use super::watch::Watch;
use crate::clock::{Clock, TscClock};
use crate::driver::{Origin, RxDriver};
use crate::drivers::chain::alloc_frame;
use crate::ledger::{Cause, Tally};
use crate::port::RxState;

/// Interval at which an idle queue checks its link.
const WATCH: Ns = Ns(10_000_000);

/// Maximum number of system calls of a poll, so that a flood of dropped frames also ends.
const CALLS: usize = 8;

/// Maximum number of system calls for the frames that wait in the socket at the end. The kernel
/// queues at most net.unix.max_dgram_qlen of them.
const LAST_CALLS: usize = 1 << 15;

#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Rx {
    socket: Arc<Socket>,
    watch: Arc<Watch>,
    /// Buffers for the next frames, with their whole data room appended.
    spare: Vec<Mbuf>,
    room: usize,
    /// Where each frame of a call continues behind its buffer.
    overflow: Vec<Box<[u8]>>,
    /// Longest frame, in bytes.
    longest: usize,
    state: RxState,
    clock: TscClock,
    watch_at: Tsc,
}

impl Rx {
    pub(super) fn new(
        socket: Arc<Socket>,
        watch: Arc<Watch>,
        pool: &Mempool,
        longest: usize,
    ) -> Self {
        let (room, clock) = (pool.data_room(), TscClock::get());
        let state = watch.look();
        Self {
            socket,
            watch,
            spare: Vec::with_capacity(BATCH),
            room,
            overflow: vec![vec![0; longest.saturating_sub(room)].into(); BATCH],
            longest,
            state,
            clock,
            watch_at: clock.now(),
        }
    }

    /// Prepares as many buffers as the pool can give.
    #[inline]
    fn refill(&mut self, cache: &mut PoolCache) {
        while self.spare.len() < BATCH
            && let Some(mut mbuf) = cache.alloc()
        {
            // A fresh buffer has its whole data room.
            let _ = mbuf.append(self.room);
            self.spare.push(mbuf);
        }
    }

    /// Receives up to `most` frames into the last of the buffers, in reverse order; without
    /// buffers the frames are discarded.
    #[inline]
    fn receive(&mut self, most: usize, lens: &mut [usize; BATCH]) -> Result<usize, Errno> {
        let most = match self.spare.len() {
            0 => most,
            spare => most.min(spare),
        };
        let mut spare = self.spare.iter_mut().rev();
        let mut overflow = self.overflow.iter_mut();
        let mut buffers: [[IoSliceMut<'_>; 2]; BATCH] = std::array::from_fn(|_| {
            let first = spare.next().map(Mbuf::data_mut).unwrap_or_default();
            let then = overflow.next().map(|then| &mut then[..]);
            [first, then.unwrap_or_default()].map(IoSliceMut::new)
        });
        self.socket.receive(&mut buffers[..most.min(BATCH)], lens)
    }

    /// Makes a frame of the buffer and the overflow area that it was received into.
    #[inline]
    fn take(&mut self, cache: &mut PoolCache, place: usize, len: usize) -> Result<Mbuf, Cause> {
        let mut frame = self.spare.pop().ok_or(Cause::NoMbuf)?;
        let taken = self.complete(cache, &mut frame, place, len);
        if let Err(cause) = taken {
            cache.free(frame);
            return Err(cause);
        }
        Ok(frame)
    }

    #[inline]
    fn complete(
        &self,
        cache: &mut PoolCache,
        frame: &mut Mbuf,
        place: usize,
        len: usize,
    ) -> Result<(), Cause> {
        if len <= self.room {
            frame.truncate(len);
            return if len == 0 {
                Err(Cause::Malformed)
            } else {
                Ok(())
            };
        }
        if len > self.longest.min(cache.pool().longest_frame()) {
            return Err(Cause::Oversize);
        }
        let rest = self.overflow[place].get(..len - self.room);
        let rest = alloc_frame(cache, rest.ok_or(Cause::Oversize)?)?;
        // The frame is not longer than the pool's longest.
        frame.chain(rest).map_err(|_| Cause::Oversize)
    }

    #[inline]
    fn idle(&mut self, now: Tsc) {
        if now >= self.watch_at {
            self.watch_peer(now);
        }
    }

    #[cold]
    fn watch_peer(&mut self, now: Tsc) {
        self.watch_at = Tsc(now.0.wrapping_add(self.clock.to_cycles(WATCH)));
        self.state = self.watch.look();
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
        let mut lens = [0; BATCH];
        let (mut frames, mut bytes) = (0, 0);
        for _ in 0..CALLS {
            let most = out.free().min(BATCH);
            if most == 0 {
                break;
            }
            self.refill(cache);
            // No frame waits, or the call was interrupted before the first.
            let Ok(received) = self.receive(most, &mut lens) else {
                break;
            };
            for (place, &len) in lens[..received].iter().enumerate() {
                frames += 1;
                bytes += len as u64;
                match self.take(cache, place, len) {
                    Ok(mut mbuf) => {
                        origin.stamp(&mut mbuf, now);
                        // The frame fits: no more were received than the burst has room for.
                        drop(out.push(mbuf));
                    }
                    Err(cause) => tally.count_dropped(cause, 1),
                }
            }
            if received < most {
                break;
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
        Some(self.socket.as_fd())
    }

    fn finish(&mut self, tally: &mut Tally) {
        // Without it, each call below could be followed by another frame.
        let _ = self.socket.shut();
        self.spare.clear();
        let mut lens = [0; BATCH];
        for _ in 0..LAST_CALLS {
            let Ok(received) = self.receive(BATCH, &mut lens) else {
                break;
            };
            // After a shutdown, an empty queue reads as empty datagrams.
            let frames = lens[..received].iter().take_while(|&&len| len > 0);
            let (count, bytes) = frames.fold((0, 0), |(n, sum), &len| (n + 1, sum + len as u64));
            tally.count_from_wire(count, bytes);
            tally.count_dropped(Cause::Aborted, count);
            if count < BATCH as u64 {
                break;
            }
        }
    }
}
