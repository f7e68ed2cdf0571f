//! The receive side.

use std::ptr::{self, NonNull};
use std::sync::Arc;

use dpdk_sys as dpdk;
use pollux_mempool::time::Tsc;
use pollux_mempool::{BurstMut, Mbuf, PoolCache};

use super::counters::Counters;
use super::device::Device;
use super::operations::during;
use super::stamps::Stamps;
use super::twins::{BURST, Owner, Twins};
use crate::clock::{Clock, TscClock};
use crate::driver::{Link, Origin, RxDriver};
use crate::ledger::{Cause, Tally};
use crate::port::RxState;

/// Frames whose bytes are not in a buffer of the mempool that they are of.
const ELSEWHERE: u64 = dpdk::RTE_MBUF_F_EXTERNAL | dpdk::RTE_MBUF_F_INDIRECT;

/// Longest frame that is put together from buffers that are not ours.
const LONGEST: usize = 1 << 16;

/// Received and not yet asked for. Many drivers receive nothing when they are asked for a few
/// frames only, since they work on vectors of descriptors (nb_pkts of rte_eth_rx_burst).
struct Stash {
    frames: [*mut dpdk::rte_mbuf; BURST],
    from: usize,
    to: usize,
    /// When they were received.
    arrival: Tsc,
}

pub(super) struct Rx {
    // Dropped before the twins.
    device: Arc<Device>,
    twins: Arc<Owner>,
    queue: u16,
    stash: Stash,
    clock: TscClock,
    stamps: Option<Stamps>,
    /// Frames that are in buffers of somebody else are put together here.
    scratch: Box<[u8]>,
    /// For the queue that brings the device's counters to the ledger.
    counters: Option<Counters>,
    /// Frames that can be left when the port stops: none if the device makes them up as it is
    /// polled.
    left: usize,
    state: RxState,
}

// SAFETY: the frames in the stash are this queue's alone.
unsafe impl Send for Rx {}

impl Rx {
    pub(super) fn new(
        device: Arc<Device>,
        twins: Arc<Owner>,
        queue: u16,
        ring: usize,
        stamps: Option<Stamps>,
    ) -> Self {
        let clock = TscClock::get();
        let state = state_of(device.control().link());
        Self {
            queue,
            stash: Stash {
                frames: [ptr::null_mut(); BURST],
                from: 0,
                to: 0,
                arrival: clock.now(),
            },
            clock,
            stamps,
            scratch: vec![0; LONGEST].into(),
            counters: (queue == 0).then(|| Counters::new(&device)),
            left: if device.driver() == "net_null" {
                0
            } else {
                ring
            },
            state,
            device,
            twins,
        }
    }

    /// Asks the device for frames, if there are none left in the stash.
    #[inline]
    fn fill(&mut self, cache: &mut PoolCache) {
        if self.stash.from < self.stash.to {
            return;
        }
        let (id, queue, frames) = (self.device.id(), self.queue, self.stash.frames.as_mut_ptr());
        // SAFETY: a started device and a queue of it that only this value polls; DPDK writes as
        // many pointers as there is room for.
        let n = during(&self.twins, cache, || unsafe {
            dpdk::rte_eth_rx_burst(id, queue, frames, BURST as u16)
        });
        (self.stash.from, self.stash.to) = (0, usize::from(n).min(BURST));
        if n > 0 {
            self.stash.arrival = self.clock.now();
        }
    }

    /// Whether a frame is in one buffer of ours, and nobody else's.
    #[inline]
    fn is_plain(&self, mbuf: &dpdk::rte_mbuf) -> bool {
        mbuf.pool == self.twins.mempool()
            && mbuf.refcnt == 1
            && mbuf.nb_segs == 1
            && mbuf.ol_flags & ELSEWHERE == 0
    }

    /// A frame of several buffers, or in buffers of somebody else.
    #[cold]
    fn take_odd(
        &mut self,
        cache: &mut PoolCache,
        frame: *mut dpdk::rte_mbuf,
    ) -> Result<Mbuf, Cause> {
        let ours = segments(frame).all(|part| {
            // SAFETY: the segments of a frame belong to whom the frame belongs to.
            let part = unsafe { &*part };
            part.pool == self.twins.mempool() && part.refcnt == 1 && part.ol_flags & ELSEWHERE == 0
        });
        if ours {
            chain(frame)
        } else {
            self.copy(cache, frame)
        }
    }

    /// Copies a frame into buffers of ours, and frees it.
    fn copy(&mut self, cache: &mut PoolCache, frame: *mut dpdk::rte_mbuf) -> Result<Mbuf, Cause> {
        let mut len = 0;
        let mut fits = true;
        for part in segments(frame) {
            // SAFETY: a segment of a received frame: `data_len` bytes at `data_off` of its memory.
            let bytes = unsafe {
                let part = &*part;
                let start = part.buf_addr.cast::<u8>().add(usize::from(part.data_off));
                std::slice::from_raw_parts(start, usize::from(part.data_len))
            };
            match self.scratch.get_mut(len..len + bytes.len()) {
                Some(room) => room.copy_from_slice(bytes),
                None => fits = false,
            }
            len += bytes.len();
        }
        // SAFETY: the frame is ours, and not used after this.
        during(&self.twins, cache, || unsafe {
            dpdk::rte_pktmbuf_free(frame);
        });
        if !fits {
            return Err(Cause::Oversize);
        }
        crate::drivers::chain::alloc_frame(cache, &self.scratch[..len])
    }
}

/// The segments of a frame.
fn segments(frame: *mut dpdk::rte_mbuf) -> impl Iterator<Item = *mut dpdk::rte_mbuf> {
    std::iter::successors(NonNull::new(frame), |at| {
        // SAFETY: the frame belongs to the caller, and so do its segments.
        NonNull::new(unsafe { at.as_ref() }.next)
    })
    .map(NonNull::as_ptr)
}

/// The buffer of one segment that DPDK has filled, with its data marked; `None` if the segment is
/// not what DPDK may hand out: not held, or data outside of its room.
#[inline(always)]
fn segment(twin: *mut dpdk::rte_mbuf) -> Option<Mbuf> {
    // SAFETY: a received segment of our mempool; there every `rte_mbuf` is a twin.
    let (offset, len, held) = unsafe {
        let (offset, len) = ((*twin).data_off, (*twin).data_len);
        (
            usize::from(offset),
            usize::from(len),
            Twins::take(NonNull::new_unchecked(twin).cast()),
        )
    };
    let mut mbuf = held?;
    let placed = if mbuf.headroom() == offset && mbuf.is_empty() {
        mbuf.append(len).is_some()
    } else {
        place(&mut mbuf, offset, len)
    };
    placed.then_some(mbuf)
}

/// Marks `len` bytes at `offset` of the room as the buffer's data, whatever is marked now: where
/// our headroom is not DPDK's, or where the frame was sent by a port of ours and has not been freed
/// since (a wire in this process).
#[cold]
fn place(mbuf: &mut Mbuf, offset: usize, len: usize) -> bool {
    mbuf.truncate(0);
    let headroom = mbuf.headroom();
    if offset >= headroom {
        let front = offset - headroom;
        return mbuf.append(front + len).is_some() && mbuf.advance(front);
    }
    let front = headroom - offset;
    mbuf.prepend(front).is_some() && {
        mbuf.truncate(len);
        mbuf.append(len.saturating_sub(front)).is_some()
    }
}

/// A frame of several of our buffers. All of them are taken, whatever is found.
fn chain(frame: *mut dpdk::rte_mbuf) -> Result<Mbuf, Cause> {
    let mut whole = Err(Cause::DeviceError);
    let mut next = NonNull::new(frame);
    while let Some(mut at) = next {
        let is_head = at.as_ptr() == frame;
        // SAFETY: the frame is ours; DPDK expects free buffers to be single ones.
        next = unsafe {
            at.as_mut().nb_segs = 1;
            NonNull::new(std::mem::replace(&mut at.as_mut().next, ptr::null_mut()))
        };
        whole = match (segment(at.as_ptr()), whole) {
            (Some(part), _) if is_head => Ok(part),
            (Some(part), Ok(mut front)) => front
                .chain(part)
                .map_or(Err(Cause::Oversize), |()| Ok(front)),
            (None, _) => Err(Cause::DeviceError),
            (_, lost) => lost,
        };
    }
    whole
}

/// Frees a frame that nobody will ask for any more.
fn abort(frame: *mut dpdk::rte_mbuf, tally: &mut Tally) {
    // SAFETY: a received frame, which is not used after this.
    let bytes = unsafe {
        let bytes = (*frame).pkt_len;
        dpdk::rte_pktmbuf_free(frame);
        bytes
    };
    tally.count_from_wire(1, u64::from(bytes));
    tally.count_dropped(Cause::Aborted, 1);
}

fn state_of(link: Link) -> RxState {
    if link.up {
        RxState::Live
    } else {
        RxState::Down
    }
}

impl RxDriver for Rx {
    #[inline]
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        let old = out.len();
        // In registers, not in memory, from frame to frame.
        let mut next = *origin;
        let mut total = 0;
        let mut frames = 0;
        while out.free() > 0 {
            self.fill(cache);
            let n = out.free().min(self.stash.to - self.stash.from);
            if n == 0 {
                break;
            }
            for i in self.stash.from..self.stash.from + n {
                let frame = self.stash.frames[i];
                // SAFETY: a received frame belongs to whoever received it; its fields are read
                // before it is taken apart.
                let mbuf = unsafe { &*frame };
                total += u64::from(mbuf.pkt_len);
                let stamp = self.stamps.as_ref().and_then(|stamps| stamps.of(mbuf));
                let taken = if self.is_plain(mbuf) {
                    segment(frame).ok_or(Cause::DeviceError)
                } else {
                    self.take_odd(cache, frame)
                };
                match taken {
                    Ok(mut mbuf) => {
                        next.stamp(&mut mbuf, self.stash.arrival);
                        if let Some(stamp) = stamp {
                            mbuf.set_wire_time(stamp);
                        }
                        // There is room: n <= out.free().
                        let _ = out.push(mbuf);
                    }
                    Err(cause) => tally.count_dropped(cause, 1),
                }
            }
            frames += n as u64;
            self.stash.from += n;
            // A device that had less than it was asked for has no more now.
            if self.stash.to < BURST {
                break;
            }
        }
        *origin = next;
        tally.count_from_wire(frames, total);
        out.len() - old
    }

    fn state(&self) -> RxState {
        self.state
    }

    fn sync_counters(&mut self, tally: &mut Tally) {
        // Where another thread asks the device, the next time is as good.
        let Some(mut control) = self.device.try_control() else {
            return;
        };
        self.state = state_of(control.link());
        if let Some(stamps) = &mut self.stamps {
            stamps.follow(&control);
        }
        if let Some(counters) = &mut self.counters {
            counters.sync(&control, tally);
        }
    }

    fn finish(&mut self, tally: &mut Tally) {
        for i in self.stash.from..self.stash.to {
            abort(self.stash.frames[i], tally);
        }
        self.stash.from = self.stash.to;
        let (id, queue, frames) = (self.device.id(), self.queue, self.stash.frames.as_mut_ptr());
        let mut left = self.left;
        while left > 0 {
            // SAFETY: as in `fill`; buffers come from and go to the depot.
            let n = unsafe { dpdk::rte_eth_rx_burst(id, queue, frames, BURST as u16) };
            let n = usize::from(n).min(BURST);
            self.stash.frames[..n]
                .iter()
                .for_each(|&frame| abort(frame, tally));
            left = if n == 0 { 0 } else { left.saturating_sub(n) };
        }
        if let Some(counters) = &mut self.counters {
            counters.sync(&self.device.control(), tally);
        }
    }
}
