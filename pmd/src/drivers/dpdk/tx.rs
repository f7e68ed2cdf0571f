//! The transmit side.

use std::mem;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use pollux_dpdk_sys as dpdk;
use pollux_mempool::{BurstMut, Mbuf, PoolCache};

use super::device::Device;
use super::operations::known_to_dpdk;
use super::twins::{BURST, Owner, Twin};
use crate::driver::TxDriver;
use crate::ledger::Sent;

pub(super) struct Tx {
    // Dropped before the twins.
    device: Arc<Device>,
    twins: Arc<Owner>,
    queue: u16,
    /// Most segments of a frame that the device sends; 1 if it sends no chains.
    most_segments: usize,
    /// Taken from the caller, but a chain or a copy that there was no room for.
    waiting: Option<Mbuf>,
    /// Buffers for frames that have to be copied.
    copies: PoolCache,
    /// Buffers that this queue has handed to DPDK.
    given: i64,
    /// Their bytes, on the way.
    scratch: Vec<u8>,
    /// What DPDK is given.
    frames: [*mut dpdk::rte_mbuf; BURST],
}

// SAFETY: the pointers are written before each use, and are no one's between.
unsafe impl Send for Tx {}

impl Tx {
    pub(super) fn new(
        device: Arc<Device>,
        twins: Arc<Owner>,
        queue: u16,
        most_segments: usize,
    ) -> Result<Self, String> {
        let size = twins.pool().buffers().min(BURST);
        let copies = twins
            .pool()
            .cache(size)
            .map_err(|error| error.to_string())?;
        let scratch = Vec::with_capacity(usize::from(u16::MAX));
        Ok(Self {
            device,
            twins,
            queue,
            most_segments,
            waiting: None,
            copies,
            given: 0,
            scratch,
            frames: [ptr::null_mut(); BURST],
        })
    }

    /// Sends what stands at the front of the burst as it is: frames in one buffer of our pool each.
    /// Returns how many there were, and how many of them went.
    #[inline]
    fn send_plain(&mut self, burst: &mut BurstMut<'_>, sent: &mut Sent) -> (usize, usize) {
        let beside = self.twins.beside();
        // SAFETY: the twins live as long as this value. That of a buffer that has a handle is in
        // the state of a free one, with which nobody else has to do.
        let (n, mut bytes) = unsafe { beside.send(burst.as_mut_slice(), &mut self.frames) };
        if n == 0 {
            return (0, 0);
        }
        let (id, queue, frames) = (self.device.id(), self.queue, self.frames.as_mut_ptr());
        // SAFETY: a started device and a queue of it that only this value uses; `n` frames, of which
        // those that it takes are DPDK's: their handles are forgotten below, and nothing panics
        // between.
        let went = unsafe { dpdk::rte_eth_tx_burst(id, queue, frames, n as u16) };
        let went = usize::from(went).min(n);
        if went < n {
            let left = burst.as_slice().iter().take(n).skip(went);
            bytes -= left.map(|mbuf| mbuf.len() as u64).sum::<u64>();
        }
        burst.take_front(went, mem::forget);
        self.given += went as i64;
        sent.count(went as u64, bytes);
        (n, went)
    }

    /// Sends the frame that waits: a chain, or what has to be copied first. Tells whether there is
    /// none any more.
    #[cold]
    fn send_waiting(&mut self, cache: &mut PoolCache, sent: &mut Sent) -> bool {
        let Some(frame) = self.waiting.take() else {
            return true;
        };
        let bytes = frame.total_len();
        let fits = frame.segment_count() <= self.most_segments;
        let ready = if fits && self.is_ours(&frame) {
            frame
        } else {
            let longest = self.twins.pool().data_room() * self.most_segments;
            if bytes > longest.min(usize::from(u16::MAX)) {
                cache.free(frame);
                sent.count_errors(1);
                return true;
            }
            self.scratch.clear();
            frame
                .segments()
                .for_each(|part| self.scratch.extend_from_slice(part));
            let Some(copy) = self.copies.alloc_from(&self.scratch) else {
                self.waiting = Some(frame);
                return false;
            };
            cache.free(frame);
            copy
        };
        match self.send_chain(ready) {
            Ok(()) => sent.count(1, bytes as u64),
            Err(frame) => self.waiting = Some(frame),
        }
        self.waiting.is_none()
    }

    /// Whether all segments are in buffers of our pool, and short enough for DPDK to name.
    fn is_ours(&self, frame: &Mbuf) -> bool {
        let region = self.twins.pool().region();
        let within = |part: &[u8]| {
            part.as_ptr()
                .addr()
                .wrapping_sub(region.as_ptr().addr().get())
                < region.len()
        };
        // A region belongs to one pool.
        frame
            .segments()
            .all(|part| within(part) && u16::try_from(part.len()).is_ok())
    }

    /// Sends a frame of our own buffers, one or several.
    fn send_chain(&mut self, frame: Mbuf) -> Result<(), Mbuf> {
        let (count, total) = (frame.segment_count(), frame.total_len());
        let mut head: Option<NonNull<Twin>> = None;
        let mut last: Option<NonNull<Twin>> = None;
        let mut next = Some(frame);
        while let Some(mut part) = next {
            next = part.split_off();
            let mut twin = [ptr::null_mut()];
            // SAFETY: as in `send_plain`.
            unsafe {
                self.twins
                    .beside()
                    .send(slice::from_mut(&mut part), &mut twin)
            };
            // All are ours, as `is_ours` has found, or copied into such.
            let Some(twin) = NonNull::new(twin[0]) else {
                continue;
            };
            if let Some(last) = last.replace(twin) {
                // SAFETY: the twin of a part whose handle was forgotten below.
                unsafe { (*last.as_ptr()).mbuf.next = twin.as_ptr().cast() };
            }
            head.get_or_insert(twin);
            mem::forget(part);
        }
        let Some(head) = head else { return Ok(()) };
        let mut first: *mut dpdk::rte_mbuf = head.as_ptr().cast();
        let (id, queue) = (self.device.id(), self.queue);
        // SAFETY: the head of a chain that nobody else knows, whose handles were forgotten; a queue
        // that only this value uses.
        let went = unsafe {
            (*first).nb_segs = count as u16;
            (*first).pkt_len = total as u32;
            dpdk::rte_eth_tx_burst(id, queue, &raw mut first, 1)
        };
        if went == 1 {
            self.given += count as i64;
            return Ok(());
        }
        // SAFETY: DPDK has not taken the frame.
        unsafe { self.unchain(head) }.map_or(Ok(()), Err)
    }

    /// Takes a frame back that `send_chain` has made and DPDK has refused.
    ///
    /// # Safety
    /// All the frame's twins are the caller's, and their handles forgotten.
    unsafe fn unchain(&self, head: NonNull<Twin>) -> Option<Mbuf> {
        let mut whole: Option<Mbuf> = None;
        let mut next = Some(head);
        while let Some(at) = next {
            // SAFETY: by the caller's promise. DPDK expects free buffers to be single ones.
            let part = unsafe {
                let mbuf = &mut (*at.as_ptr()).mbuf;
                mbuf.nb_segs = 1;
                next =
                    NonNull::new(mem::replace(&mut mbuf.next, ptr::null_mut())).map(NonNull::cast);
                self.twins.take(at)
            };
            match &mut whole {
                None => whole = Some(part),
                // It was one frame before, so it fits.
                Some(front) => drop(front.chain(part)),
            }
        }
        whole
    }
}

impl TxDriver for Tx {
    #[inline]
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        known_to_dpdk();
        let given = burst.len();
        while self.waiting.is_none() || self.send_waiting(cache, sent) {
            if burst.is_empty() {
                break;
            }
            match self.send_plain(burst, sent) {
                (0, _) => burst.take_front(1, |frame| self.waiting = Some(frame)),
                (n, went) if went < n => break,
                _ => {}
            }
        }
        given - burst.len()
    }

    fn finish(&mut self, sent: &mut Sent) {
        if self.waiting.take().is_some() {
            sent.count_errors(1);
        }
        self.copies.flush();
        // SAFETY: a started device. Not all can; the rest comes back when the device is closed.
        unsafe { dpdk::rte_eth_tx_done_cleanup(self.device.id(), self.queue, 0) };
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        self.twins.count_given(self.given);
    }
}
