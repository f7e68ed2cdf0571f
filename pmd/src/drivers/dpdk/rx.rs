//! Receive side.

use std::mem;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use pollux_dpdk_sys as dpdk;
use pollux_mempool::time::Tsc;
use pollux_mempool::{Arrivals, BurstMut, Mbuf, PoolCache};

use super::counters::Counters;
use super::device::Device;
use super::operations::known_to_dpdk;
use super::shadow::{BURST, ELSEWHERE, Owner};
use super::stamps::Stamps;
use crate::arrival::{ArrivalTime, Line};
use crate::clock::{Clock, TscClock};
use crate::driver::{Link, Origin, RxDriver};
use crate::ledger::{Cause, Tally};
use crate::port::RxState;

/// With so many free buffers every allocation of a driver succeeds: DPDK allocates all requested
/// buffers or none.
const ENOUGH: usize = 4 * BURST;

/// Longest frame that is assembled from foreign buffers.
const LONGEST: usize = 1 << 16;

/// Frames that were received and not yet returned by a poll. Many drivers receive nothing if fewer
/// frames are requested, since they process vectors of descriptors (nb_pkts of rte_eth_rx_burst).
struct Stash {
    frames: [*mut dpdk::rte_mbuf; BURST],
    from: usize,
    to: usize,
    /// Arrival time of the frames.
    arrival: Tsc,
}

#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Rx {
    // Dropped before the shadows.
    device: Arc<Device>,
    shadows: Arc<Owner>,
    queue: u16,
    stash: Stash,
    clock: TscClock,
    stamps: Option<Stamps>,
    /// Converts time stamps to the loop's clock.
    line: Line,
    /// Buffer in which frames in foreign buffers are assembled.
    scratch: Box<[u8]>,
    /// For the queue that adds the device's counters to the ledger.
    counters: Option<Counters>,
    /// Number of buffers that DPDK has passed to this queue.
    taken: i64,
    /// Maximum number of frames that remain when the port stops: none if the device generates them
    /// as it is polled.
    left: usize,
    state: RxState,
}

// SAFETY: this queue alone owns the frames in the stash.
unsafe impl Send for Rx {}

impl Rx {
    pub(super) fn new(
        device: Arc<Device>,
        shadows: Arc<Owner>,
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
            line: Line::of_device(clock),
            scratch: vec![0; LONGEST].into(),
            taken: 0,
            counters: (queue == 0).then(|| Counters::new(&device)),
            left: if device.driver() == "net_null" {
                0
            } else {
                ring
            },
            state,
            device,
            shadows,
        }
    }

    /// Receives frames from the device, if the stash is empty.
    #[inline(always)]
    fn fill(&mut self, cache: &mut PoolCache) {
        if self.stash.from < self.stash.to {
            return;
        }
        let mut n = self.burst();
        if n == 0 {
            n = self.burst_after_flush(cache);
        }
        (self.stash.from, self.stash.to) = (0, n);
        if n > 0 {
            self.stash.arrival = self.clock.now();
            if self.stamps.is_some() {
                self.line.begin_now();
            }
        }
    }

    /// Retries the reception if the free buffers are in the loop's cache, which DPDK does not use.
    #[cold]
    fn burst_after_flush(&mut self, cache: &mut PoolCache) -> usize {
        if cache.is_empty() || self.shadows.pool().has(ENOUGH) {
            return 0;
        }
        cache.flush();
        self.burst()
    }

    #[inline(always)]
    fn burst(&mut self) -> usize {
        let (id, queue, frames) = (self.device.id(), self.queue, self.stash.frames.as_mut_ptr());
        // SAFETY: a started device and a queue of it that only this value polls; DPDK writes at
        // most as many pointers as the array has.
        let n = unsafe { dpdk::rte_eth_rx_burst(id, queue, frames, BURST as u16) };
        usize::from(n).min(BURST)
    }

    /// Takes frames out of the stash, up to `end`, as long as each is in one buffer of the pool;
    /// returns their bytes.
    #[inline(always)]
    fn take_plain(&mut self, end: usize, out: &mut BurstMut<'_>, origin: &mut Origin) -> u64 {
        let from = Arrivals {
            port: origin.port,
            queue: origin.queue,
            first: origin.next,
            at: self.stash.arrival,
        };
        let frames = &self.stash.frames[self.stash.from..end];
        // SAFETY: a received frame belongs to the receiver, and the stash returns it once. An
        // address among the shadows is a shadow mbuf; a plain one has no other owner, and no
        // segment behind it.
        let (n, bytes) = unsafe { self.shadows.map().receive(frames, out, from) };
        origin.next = origin.next.wrapping_add(n as u32);
        self.stash.from += n;
        self.taken += n as i64;
        bytes
    }

    /// Takes one frame of any kind out of the stash; returns its bytes.
    #[inline(never)]
    fn take_one(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> u64 {
        let frame = self.stash.frames[self.stash.from];
        self.stash.from += 1;
        // SAFETY: a received frame belongs to the receiver; its fields are read before it is taken.
        let mbuf = unsafe { &*frame };
        let bytes = u64::from(mbuf.pkt_len);
        let stamp = self.stamps.as_ref().and_then(|stamps| stamps.of(mbuf));
        let ours = segments(frame).all(|part| {
            // SAFETY: the segments of a frame belong to the frame's owner.
            let part = unsafe { &*part };
            part.pool == self.shadows.mempool()
                && part.refcnt == 1
                && part.ol_flags & ELSEWHERE == 0
        });
        let taken = if ours {
            self.chain(cache, frame)
        } else {
            self.copy(cache, frame)
        };
        match taken {
            Ok(mut mbuf) => {
                origin.stamp(&mut mbuf, self.stash.arrival);
                if let Some(stamp) = stamp {
                    mbuf.set_arrival(self.line.arrival(stamp));
                    mbuf.set_wire_time(stamp);
                }
                // There is room for all frames that are taken out of the stash.
                drop(out.push(mbuf));
            }
            Err(cause) => tally.count_dropped(cause, 1),
        }
        bytes
    }

    /// The buffer of one segment that DPDK has filled, with its data range set.
    ///
    /// # Safety
    /// A received segment of the port's mempool, alone in a buffer without another owner, and taken
    /// once.
    unsafe fn segment(
        &mut self,
        cache: &mut PoolCache,
        shadow: NonNull<dpdk::rte_mbuf>,
    ) -> Result<Mbuf, Cause> {
        // SAFETY: by the caller's promise; every `rte_mbuf` of that mempool is a shadow mbuf.
        let (mut mbuf, offset, len) = unsafe {
            let (offset, len) = (shadow.as_ref().data_off, shadow.as_ref().data_len);
            (self.shadows.take(shadow.cast()), offset, len)
        };
        self.taken += 1;
        if mbuf.set_data(offset, len.into()) {
            Ok(mbuf)
        } else {
            cache.free(mbuf);
            Err(Cause::DeviceError)
        }
    }

    /// A frame of one or several pool buffers. All of them are taken, even after an error.
    fn chain(&mut self, cache: &mut PoolCache, frame: *mut dpdk::rte_mbuf) -> Result<Mbuf, Cause> {
        let mut whole = Err(Cause::DeviceError);
        let mut next = NonNull::new(frame);
        while let Some(mut at) = next {
            let is_head = at.as_ptr() == frame;
            // SAFETY: this queue owns the frame; DPDK expects free buffers to be single ones.
            next = unsafe {
                at.as_mut().nb_segs = 1;
                NonNull::new(mem::replace(&mut at.as_mut().next, ptr::null_mut()))
            };
            // SAFETY: a segment of a received frame of the pool, as `take_one` has checked.
            whole = match (unsafe { self.segment(cache, at) }, whole) {
                (Ok(part), _) if is_head => Ok(part),
                (Ok(part), Ok(mut front)) => front
                    .chain(part)
                    .map_or(Err(Cause::Oversize), |()| Ok(front)),
                (Err(cause), _) => Err(cause),
                (_, lost) => lost,
            };
        }
        whole
    }

    /// Copies a frame into buffers of the pool, and frees it.
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
        // SAFETY: this queue owns the frame, and does not use it after this.
        unsafe { dpdk::rte_pktmbuf_free(frame) };
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

/// Frees a frame that no poll will return.
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
        known_to_dpdk();
        let old = out.len();
        let mut frames = 0;
        let mut bytes = 0;
        while out.free() > 0 {
            self.fill(cache);
            let n = out.free().min(self.stash.to - self.stash.from);
            if n == 0 {
                break;
            }
            let end = self.stash.from + n;
            while self.stash.from < end {
                if self.stamps.is_none() {
                    bytes += self.take_plain(end, out, origin);
                }
                if self.stash.from < end {
                    bytes += self.take_one(cache, out, origin, tally);
                }
            }
            frames += n as u64;
            // A device that returned fewer frames than requested has no more now.
            if self.stash.to < BURST {
                break;
            }
        }
        tally.count_from_wire(frames, bytes);
        out.len() - old
    }

    fn state(&self) -> RxState {
        self.state
    }

    fn arrival_time(&self) -> ArrivalTime {
        match self.stamps {
            Some(_) => ArrivalTime::Hardware,
            // The device generates frames as it is polled.
            None if self.left == 0 => ArrivalTime::Read,
            None => ArrivalTime::Poll,
        }
    }

    fn sync_counters(&mut self, tally: &mut Tally) {
        // If another thread queries the device, the next call updates the counters.
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
        let mut left = self.left;
        while left > 0 {
            let n = self.burst();
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

impl Drop for Rx {
    fn drop(&mut self) {
        for &frame in &self.stash.frames[self.stash.from..self.stash.to] {
            // SAFETY: received frames that no poll has returned, and that are not used after this.
            unsafe { dpdk::rte_pktmbuf_free(frame) };
        }
        self.shadows.count_given(-self.taken);
    }
}
