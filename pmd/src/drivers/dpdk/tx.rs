//! Transmit side.

use std::mem;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use pollux_dpdk_sys as dpdk;
use pollux_mempool::{BurstMut, Mbuf, PoolCache};

use super::device::Device;
use super::operations::known_to_dpdk;
use super::shadow::{BURST, Owner, ShadowMbuf};
use crate::driver::TxDriver;
use crate::ledger::Sent;

#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Tx {
    // Dropped before the shadows.
    device: Arc<Device>,
    shadows: Arc<Owner>,
    queue: u16,
    /// Maximum number of segments of a frame that the device sends; 1 if it supports no chains.
    most_segments: usize,
    /// A chain or a copy that was taken from the caller, and for which the queue had no space.
    waiting: Option<Mbuf>,
    /// Buffers for frames that must be copied.
    copies: PoolCache,
    /// Number of buffers that this queue has passed to DPDK.
    given: i64,
    /// Buffer for the bytes of such frames.
    scratch: Vec<u8>,
    /// Array of frames for DPDK.
    frames: [*mut dpdk::rte_mbuf; BURST],
}

// SAFETY: the pointers are written before each use, and own nothing in between.
unsafe impl Send for Tx {}

impl Tx {
    pub(super) fn new(
        device: Arc<Device>,
        shadows: Arc<Owner>,
        queue: u16,
        most_segments: usize,
    ) -> Result<Self, String> {
        let size = shadows.pool().buffers().min(BURST);
        let copies = shadows
            .pool()
            .cache(size)
            .map_err(|error| error.to_string())?;
        let scratch = Vec::with_capacity(usize::from(u16::MAX));
        Ok(Self {
            device,
            shadows,
            queue,
            most_segments,
            waiting: None,
            copies,
            given: 0,
            scratch,
            frames: [ptr::null_mut(); BURST],
        })
    }

    /// Sends the frames at the front of the burst that are each in one buffer of the pool. Returns
    /// their number, and how many of them DPDK accepted.
    #[inline]
    fn send_plain(&mut self, burst: &mut BurstMut<'_>, sent: &mut Sent) -> (usize, usize) {
        let map = self.shadows.map();
        // SAFETY: the shadows live as long as this value. The shadow of a buffer with a handle is
        // in the state of a free one, and has no other user.
        let (n, mut bytes) = unsafe { map.send(burst.as_mut_slice(), &mut self.frames) };
        if n == 0 {
            return (0, 0);
        }
        let (id, queue, frames) = (self.device.id(), self.queue, self.frames.as_mut_ptr());
        // SAFETY: a started device and a queue of it that only this value uses; `n` frames, of
        // which DPDK owns those that it accepts: their handles are forgotten below, and nothing
        // panics in between.
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

    /// Sends the waiting frame: a chain, or a frame that must be copied first. Returns whether none
    /// is waiting any more.
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
            let longest = self.shadows.pool().data_room() * self.most_segments;
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

    /// Whether all segments are in buffers of the pool, and short enough for an `rte_mbuf`.
    fn is_ours(&self, frame: &Mbuf) -> bool {
        let region = self.shadows.pool().region();
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

    /// Sends a frame of pool buffers, one or several.
    fn send_chain(&mut self, frame: Mbuf) -> Result<(), Mbuf> {
        let (count, total) = (frame.segment_count(), frame.total_len());
        let mut head: Option<NonNull<ShadowMbuf>> = None;
        let mut last: Option<NonNull<ShadowMbuf>> = None;
        let mut next = Some(frame);
        while let Some(mut part) = next {
            next = part.split_off();
            let mut shadow = [ptr::null_mut()];
            // SAFETY: as in `send_plain`.
            unsafe {
                self.shadows
                    .map()
                    .send(slice::from_mut(&mut part), &mut shadow)
            };
            // All belong to the pool, as `is_ours` has checked, or were copied into it.
            let Some(shadow) = NonNull::new(shadow[0]) else {
                continue;
            };
            if let Some(last) = last.replace(shadow) {
                // SAFETY: the shadow mbuf of a segment whose handle was forgotten below.
                unsafe { (*last.as_ptr()).mbuf.next = shadow.as_ptr().cast() };
            }
            head.get_or_insert(shadow);
            mem::forget(part);
        }
        let Some(head) = head else { return Ok(()) };
        let mut first: *mut dpdk::rte_mbuf = head.as_ptr().cast();
        let (id, queue) = (self.device.id(), self.queue);
        // SAFETY: the head of a chain that no other code knows, whose handles were forgotten; a
        // queue that only this value uses.
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

    /// Takes a frame back that `send_chain` has built and DPDK has refused.
    ///
    /// # Safety
    /// The caller owns all the frame's shadows, whose handles are forgotten.
    unsafe fn unchain(&self, head: NonNull<ShadowMbuf>) -> Option<Mbuf> {
        let mut whole: Option<Mbuf> = None;
        let mut next = Some(head);
        while let Some(at) = next {
            // SAFETY: by the caller's promise. DPDK expects free buffers to be single ones.
            let part = unsafe {
                let mbuf = &mut (*at.as_ptr()).mbuf;
                mbuf.nb_segs = 1;
                next =
                    NonNull::new(mem::replace(&mut mbuf.next, ptr::null_mut())).map(NonNull::cast);
                self.shadows.take(at)
            };
            match &mut whole {
                None => whole = Some(part),
                // It was one frame before, so the chain fits.
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
        // SAFETY: a started device. Not all support it; the remaining buffers return when the
        // device is closed.
        unsafe { dpdk::rte_eth_tx_done_cleanup(self.device.id(), self.queue, 0) };
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        self.shadows.count_given(self.given);
    }
}
