//! Receives whole frames. Frames of no stream arrive in the default list of a port, several to a
//! buffer, and are copied into buffers of the pool. A buffer of the list holds frames only until
//! they are announced and copied, so a frame that a consumer keeps does not block those behind it.
//! For payloads without a copy there are [streams](super::stream).

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pollux_mempool::{BurstMut, Mbuf, Mempool, PoolCache};

use super::arrivals::Arrivals;
use super::control::Control;
use super::counters::Losses;
use super::events::Events;
use super::layouts::TlbFault;
use super::list::List;
use super::tlb::Tlb;
use crate::arrival::ArrivalTime;
use crate::bus::Device;
use crate::clock::Clock;
use crate::driver::{Origin, RxDriver};
use crate::drivers::dma::{Assembly, alloc};
use crate::event::ClopBuffer;
use crate::ledger::{Cause, Tally};
use crate::net::MacAddr;
use crate::port::RxState;

/// An Ethernet header.
const SHORTEST: usize = 14;

/// Parts of a receive queue.
pub(super) struct RxParts<D: Device> {
    pub(super) control: Control<D>,
    /// Arrival times of frames, if the card stamps them.
    pub(super) arrivals: Option<Arrivals<D::Clock>>,
    pub(super) events: Events<D>,
    pub(super) list: List<D>,
    /// The pages of all lists, for the queue that receives TLB faults.
    pub(super) tlb: Option<Tlb<D>>,
    pub(super) losses: Losses<D>,
    pub(super) pool: Mempool,
    /// Length of the longest frame in bytes.
    pub(super) longest: usize,
    /// Address to filter by, where the card passes on frames for all hosts.
    pub(super) filter_address: Option<MacAddr>,
    /// Events with an impossible announcement.
    pub(super) refused: Arc<AtomicU64>,
}

/// The frames of one port.
#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Rx<D: Device> {
    parts: RxParts<D>,
    /// The buffer that is being read.
    current: Option<Current>,
    assembly: Assembly,
}

/// A buffer, and the read position in it.
struct Current {
    buffer: ClopBuffer,
    offset: usize,
    /// Remaining frames in it, as announced.
    left: u32,
}

impl<D: Device> Rx<D> {
    pub(super) fn new(parts: RxParts<D>) -> Self {
        Self {
            current: None,
            assembly: Assembly::new(),
            parts,
        }
    }

    /// Takes the next announced buffer; `false` if there is none.
    fn next_buffer(&mut self) -> bool {
        while let Some(event) = self.parts.events.poll() {
            if event.kind == TlbFault::KIND
                && let Some(tlb) = &self.parts.tlb
                && tlb.answer(&event)
            {
                continue;
            }
            // Every other event of this queue must announce the next buffer of this list. Frames in
            // a buffer that was not announced are counted at the end, with all other frames that
            // were not read.
            let Ok(buffer) = self.parts.list.accept(&event) else {
                self.parts.refused.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            let event = buffer.event();
            self.current = Some(Current {
                // A frame takes at least its record.
                left: event.payloads.min(event.bytes / 16),
                buffer,
                offset: 0,
            });
            return true;
        }
        false
    }

    /// Adds the arrived frames to `out`, and counts them, including lost ones.
    #[inline]
    fn collect(&mut self, cache: &mut PoolCache, out: &mut BurstMut<'_>, tally: &mut Tally) {
        while out.free() > 0 && (self.current.is_some() || self.next_buffer()) {
            let Some(mut current) = self.current.take() else {
                break;
            };
            let mut payloads = current.buffer.payloads_from(current.offset);
            let (mut frames, mut bytes) = (0, 0);
            let is_over = loop {
                if out.free() == 0 {
                    break false;
                }
                let Some(Ok(payload)) = payloads.next() else {
                    break true;
                };
                frames += 1;
                bytes += payload.data.len() as u64;
                match self.copied(payload.data, cache) {
                    Ok(mut frame) => {
                        if let Some(wire) = payload.record.and_then(|record| record.wire) {
                            frame.set_wire_time(wire);
                        }
                        drop(out.push(frame));
                    }
                    Err(cause) => tally.count_dropped(cause, 1),
                }
            };
            tally.count_from_wire(frames, bytes);
            let offset = payloads.offset();
            current.left = current.left.saturating_sub(frames as u32);
            if is_over {
                // Announced but not present.
                let missing = u64::from(current.left);
                tally.count_from_wire(missing, 0);
                tally.count_dropped(Cause::DeviceError, missing);
            } else {
                self.current = Some(Current { offset, ..current });
            }
        }
        self.parts.list.release();
    }

    /// Copies a frame into buffers of the pool.
    #[inline]
    fn copied(&mut self, data: &[u8], cache: &mut PoolCache) -> Result<Mbuf, Cause> {
        let len = data.len();
        if !(SHORTEST..=self.parts.longest).contains(&len) {
            return Err(Cause::DeviceError);
        }
        if !self.is_for_us(data) {
            return Err(Cause::NotForUs);
        }
        let mut mbuf = alloc(&self.parts.pool, cache).ok_or(Cause::NoMbuf)?;
        if let Some(room) = mbuf.append(len) {
            room.copy_from_slice(data);
            return Ok(mbuf);
        }
        self.copied_to_chain(mbuf, data, cache)
    }

    #[cold]
    fn copied_to_chain(
        &mut self,
        first: Mbuf,
        data: &[u8],
        cache: &mut PoolCache,
    ) -> Result<Mbuf, Cause> {
        let Self {
            assembly, parts, ..
        } = self;
        let from = NonNull::from(data).cast();
        let begun = assembly.push(first).is_ok();
        // SAFETY: the bytes are borrowed from the list's region, which belongs to no pool: no
        // buffer of a frame is there.
        let done =
            begun && unsafe { assembly.append(from, data.len(), || alloc(&parts.pool, cache)) };
        if !done {
            assembly.abandon(cache);
        }
        assembly.finish().ok_or(Cause::NoMbuf)
    }

    /// Whether a frame is for this host or for a group, where the card does not filter.
    #[inline(always)]
    fn is_for_us(&self, data: &[u8]) -> bool {
        match (self.parts.filter_address, data.first_chunk()) {
            (Some(station), Some(&to)) => station == MacAddr(to) || to[0] & 1 == 1,
            _ => true,
        }
    }

    /// Counts announced frames as lost after the port was stopped.
    fn abandon(&mut self, tally: &mut Tally) {
        while self.current.is_some() || self.next_buffer() {
            if let Some(current) = self.current.take() {
                let (mut frames, mut bytes) = (0, 0);
                for payload in current.buffer.payloads_from(current.offset).flatten() {
                    frames += 1;
                    bytes += payload.data.len() as u64;
                }
                tally.count_from_wire(frames, bytes);
                tally.count_dropped(Cause::Aborted, frames);
            }
        }
        self.parts.list.release();
    }
}

impl<D: Device> RxDriver for Rx<D> {
    #[inline]
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        let (before, asked) = (out.len(), out.free());
        let clock = &self.parts.control.nic.clock;
        let begun = self.parts.arrivals.as_ref().map(|_| clock.now());
        self.collect(cache, out, tally);
        let now = self.parts.control.nic.clock.now();
        let frames = out.as_mut_slice().get_mut(before..).unwrap_or_default();
        for mbuf in &mut *frames {
            origin.stamp(mbuf, now);
        }
        let n = frames.len();
        if let (Some(arrivals), Some(begun)) = (&mut self.parts.arrivals, begun) {
            arrivals.stamp(begun, now, asked, frames);
        }
        n
    }

    fn state(&self) -> RxState {
        self.parts.control.state()
    }

    fn arrival_time(&self) -> ArrivalTime {
        match self.parts.arrivals {
            Some(_) => ArrivalTime::Hardware,
            None => ArrivalTime::Poll,
        }
    }

    fn sync_counters(&mut self, tally: &mut Tally) {
        self.parts.losses.count(tally);
    }

    fn event(&self) -> Option<BorrowedFd<'_>> {
        self.parts.events.event()
    }

    fn arm(&mut self) {
        self.parts.events.arm();
    }

    fn finish(&mut self, tally: &mut Tally) {
        self.parts.control.end_receiving();
        self.parts.list.flush();
        let nic = self.parts.control.nic.clone();
        // A flush needs free records in the event queue, so the events must be taken.
        nic.wait(|| {
            self.abandon(tally);
            !self.parts.list.is_flushing() || nic.is_gone()
        });
        self.abandon(tally);
        self.sync_counters(tally);
        self.parts.losses.count_left(tally);
    }
}

impl<D: Device> Drop for Rx<D> {
    /// The list stays the card's until the card is at rest; it is part of the port's quarantine.
    /// The other lists continue.
    fn drop(&mut self) {
        self.parts.control.end_receiving();
        self.parts.list.disable();
    }
}
