//! Receives whole frames: those that are no stream's come by the catch-all list of a port, several
//! to a buffer, and are copied out of it into buffers of the pool. A buffer of the list holds
//! frames for as long as it takes to announce and to copy them, so that a frame which somebody
//! keeps does not hold back those behind it. Who wants payloads without a copy has
//! [streams](super::stream).

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{BurstMut, Mbuf, Mempool, PoolCache};

use super::arrivals::Arrivals;
use super::control::Control;
use super::counters::Losses;
use super::events::Events;
use super::layouts::TlbFault;
use super::list::List;
use super::memory::Tlb;
use crate::arrival::ArrivalTime;
use crate::bus::Device;
use crate::clock::Clock;
use crate::driver::{Origin, RxDriver};
use crate::drivers::dma::{Assembly, alloc};
use crate::event::ClopBuffer;
use crate::ledger::{Cause, Tally};
use crate::net::MacAddr;
use crate::port::RxState;

/// How often the link is looked at while nothing comes.
const WATCH: Ns = Ns(10_000_000);

/// An Ethernet header.
const SHORTEST: usize = 14;

/// What a receive queue is made of.
pub(super) struct RxParts<D: Device> {
    pub(super) control: Control<D>,
    /// When frames came, if the card stamps them.
    pub(super) arrivals: Option<Arrivals<D::Clock>>,
    pub(super) events: Events<D>,
    pub(super) list: List<D>,
    /// The pages of all lists, with the queue that is told of faults.
    pub(super) tlb: Option<Tlb<D>>,
    pub(super) losses: Losses<D>,
    pub(super) pool: Mempool,
    /// Bytes of the longest frame.
    pub(super) longest: usize,
    /// Whose frames are received, where the card takes those of all.
    pub(super) station: Option<MacAddr>,
    /// Events that announced nothing that can be.
    pub(super) refused: Arc<AtomicU64>,
}

/// The frames of one port.
pub(super) struct Rx<D: Device> {
    parts: RxParts<D>,
    /// The buffer whose frames are being taken.
    current: Option<Current>,
    assembly: Assembly,
    state: RxState,
    watch_at: Tsc,
}

/// A buffer, and how much of it has been taken.
struct Current {
    buffer: ClopBuffer,
    offset: usize,
    /// Frames that are left in it, as it was announced.
    left: u32,
}

impl<D: Device> Rx<D> {
    pub(super) fn new(parts: RxParts<D>) -> Self {
        Self {
            current: None,
            assembly: Assembly::new(),
            state: RxState::Live,
            watch_at: parts.control.nic.clock.now(),
            parts,
        }
    }

    /// Takes the next buffer that is announced; `false` if there is none.
    fn next_buffer(&mut self) -> bool {
        while let Some(event) = self.parts.events.poll() {
            if event.kind == TlbFault::KIND
                && let Some(tlb) = &mut self.parts.tlb
                && tlb.answer(&event)
            {
                continue;
            }
            // Every other event of this queue announces a buffer of this list, the next in turn.
            // What a buffer holds that was not is counted at the end, as are all frames that nobody
            // saw.
            let Ok(buffer) = self.parts.list.accept(&event) else {
                self.parts.refused.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            let told = buffer.event();
            self.current = Some(Current {
                // Of a frame there is a record at least.
                left: told.payloads.min(told.bytes / 16),
                buffer,
                offset: 0,
            });
            return true;
        }
        false
    }

    /// Adds the frames that have come to `out`, and counts them, those that are lost too.
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
                // Announced, and not there.
                let missing = u64::from(current.left);
                tally.count_from_wire(missing, 0);
                tally.count_dropped(Cause::DeviceError, missing);
            } else {
                self.current = Some(Current { offset, ..current });
            }
        }
        self.parts.list.release();
    }

    /// A frame in buffers of the pool.
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
        // SAFETY: the bytes are borrowed from the list's region, which is no pool's: no buffer of a
        // frame lies there.
        let done =
            begun && unsafe { assembly.append(from, data.len(), || alloc(&parts.pool, cache)) };
        if !done {
            assembly.abandon(cache);
        }
        assembly.finish().ok_or(Cause::NoMbuf)
    }

    /// Whether a frame is for this station, or for a group, where the card does not look.
    #[inline(always)]
    fn is_for_us(&self, data: &[u8]) -> bool {
        match (self.parts.station, data.first_chunk()) {
            (Some(station), Some(&to)) => station == MacAddr(to) || to[0] & 1 == 1,
            _ => true,
        }
    }

    /// Counts the frames that have been announced as lost, since the port has been stopped.
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

    #[cold]
    fn watch_link(&mut self, now: Tsc) {
        let clock = &self.parts.control.nic.clock;
        self.watch_at = Tsc(now.0.wrapping_add(clock.to_cycles(WATCH)));
        self.state = self.parts.control.state();
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
        if n == 0 && now >= self.watch_at {
            self.watch_link(now);
        }
        n
    }

    fn state(&self) -> RxState {
        self.state
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
        // A flush needs room in the event queue, and so somebody who takes what is there.
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
    /// The list stays the card's until it is at rest: the port has lent it. The others go on.
    fn drop(&mut self) {
        self.parts.control.end_receiving();
        self.parts.list.disable();
    }
}
