//! Sends frames, or payloads, from the buffers that they are in. One doorbell announces a burst to
//! the card, and one event reports that all of it has been read.

use std::mem;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pollux_mempool::{Burst, BurstMut, Mbuf, Mempool, PoolCache};
use zerocopy::FromBytes;

use super::control::Control;
use super::events::Events;
use super::layouts::{TxDescriptor, TxSent};
use super::nic::PATIENCE;
use super::ring::Ring;
use crate::bus::Device;
use crate::clock::{Clock, Timeout};
use crate::driver::TxDriver;
use crate::drivers::dma::{Assembly, DeviceAddresses, alloc};
use crate::event::EventRecord;
use crate::ledger::Sent;
use crate::quarantine::Quarantine;

/// Number of buffers that are freed at once.
const FREE: usize = 32;

/// Minimum length of a frame that the card accepts: a header.
const SHORTEST: usize = 14;

/// Bytes of a slot of the ring, and maximum length of a packet that is put into slots behind its
/// descriptor. The card has it without another read of memory.
const SLOT: usize = size_of::<TxDescriptor>();
const INLINE: usize = 2 * SLOT;

/// Common properties of the packets of a burst.
#[derive(Clone, Copy)]
pub(super) struct Packets {
    /// Their descriptor without address and length.
    pub(super) header: TxDescriptor,
    /// Minimum and maximum length in bytes.
    pub(super) shortest: usize,
    pub(super) longest: usize,
}

impl Packets {
    /// Frames, to which the card adds no headers.
    #[inline(always)]
    fn whole(longest: usize) -> Self {
        let header = TxDescriptor {
            flags: TxDescriptor::RAW.into(),
            ..TxDescriptor::default()
        };
        Self {
            header,
            shortest: SHORTEST,
            longest,
        }
    }
}

/// Status of an event: the last packet's descriptors are inconsistent, or it could not be read.
const BAD: u32 = 1;
const UNREADABLE: u32 = 2;
/// The ring has stopped, since its descriptors could not be read.
const STOPPED: u32 = 3;
/// Earlier packets were lost, since no neighbour has their address.
const UNRESOLVED: u32 = 4;

/// Maximum number of packets that one event reports as lost so.
const MOST_UNRESOLVED: u32 = u16::MAX as u32;

/// Parts of a transmit queue.
pub(super) struct TxParts<D: Device> {
    pub(super) control: Control<D>,
    pub(super) ring: Ring<D>,
    pub(super) events: Events<D>,
    pub(super) queue: usize,
    pub(super) addresses: DeviceAddresses,
    /// Pool for frames that the card cannot read in place.
    pub(super) pool: Mempool,
    /// Length of the longest frame in bytes.
    pub(super) longest: usize,
    /// Number of invalid events.
    pub(super) refused: Arc<AtomicU64>,
    /// Receives the frames in flight at the end.
    pub(super) quarantine: Quarantine,
}

/// The ring of one port.
#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Tx<D: Device> {
    parts: TxParts<D>,
    /// By slot: a frame is at its last segment.
    posted: Box<[Option<Mbuf>]>,
    /// Numbers of the oldest descriptor in flight, and of the next one to write.
    oldest: u32,
    next: u32,
    /// A descriptor that is not written yet, since it may need the event request, and its number.
    held: Option<(u32, TxDescriptor)>,
    copy: Assembly,
}

impl<D: Device> Tx<D> {
    pub(super) fn new(parts: TxParts<D>) -> Self {
        Self {
            posted: (0..parts.ring.size()).map(|_| None).collect(),
            oldest: 0,
            next: 0,
            held: None,
            copy: Assembly::new(),
            parts,
        }
    }

    #[inline(always)]
    fn in_flight(&self) -> u32 {
        self.next.wrapping_sub(self.oldest)
    }

    #[inline(always)]
    fn free(&self) -> usize {
        self.parts.ring.size() - self.in_flight() as usize
    }

    /// Maximum number of descriptors of a frame.
    #[inline(always)]
    fn needed(&self, mbuf: &Mbuf) -> usize {
        let len = mbuf.total_len();
        if len <= INLINE {
            1 + len.div_ceil(SLOT)
        } else if mbuf.segment_count() == 1 && self.reaches(mbuf) {
            1
        } else {
            self.needed_at_most(mbuf)
        }
    }

    /// As above, for a chain, or a frame that must be copied. A frame that exceeds the ring is
    /// refused in its turn.
    #[cold]
    fn needed_at_most(&self, mbuf: &Mbuf) -> usize {
        let copied = mbuf.total_len().div_ceil(self.parts.pool.data_room());
        copied.max(mbuf.segment_count()).min(self.parts.ring.size())
    }

    #[inline(always)]
    fn address(&self, segment: &[u8]) -> Option<u64> {
        let data = NonNull::from(segment).cast();
        self.parts.addresses.of(data, segment.len())
    }

    /// Whether the card can read a frame in place.
    #[inline(always)]
    fn reaches(&self, mbuf: &Mbuf) -> bool {
        mbuf.segments()
            .all(|segment| self.address(segment).is_some())
    }

    #[inline(always)]
    fn post(&mut self, mut mbuf: Mbuf, packets: &Packets, cache: &mut PoolCache, sent: &mut Sent) {
        let total = mbuf.total_len();
        if !(packets.shortest..=packets.longest).contains(&total) {
            sent.count_errors(1);
            cache.free(mbuf);
            return;
        }
        if total <= INLINE {
            return self.post_inline(mbuf, total, packets, cache, sent);
        }
        if !self.reaches(&mbuf) {
            match self.copied(mbuf, cache) {
                Some(copied) => mbuf = copied,
                None => return sent.count_errors(1),
            }
        }
        let is_used = |segment: &&[u8]| !segment.is_empty();
        let mut left = mbuf.segments().filter(is_used).count();
        if left > self.free() {
            sent.count_errors(1);
            cache.free(mbuf);
            return;
        }
        let kind = packets.header.flags.get();
        let mut flags = TxDescriptor::FIRST | kind;
        for segment in mbuf.segments().filter(is_used) {
            left -= 1;
            if left == 0 {
                flags |= TxDescriptor::LAST;
            }
            // Each has an address, as checked by `reaches`.
            let address = self.address(segment).unwrap_or(0);
            self.defer(TxDescriptor {
                address: address.into(),
                length: (segment.len() as u32).into(),
                flags: flags.into(),
                total: (total as u16).into(),
                ..packets.header
            });
            flags = kind;
        }
        self.keep(mbuf);
    }

    /// A short packet: its bytes follow its descriptor in the ring. One without payload is a descriptor
    /// of no bytes.
    #[inline(always)]
    fn post_inline(
        &mut self,
        mbuf: Mbuf,
        total: usize,
        packets: &Packets,
        cache: &mut PoolCache,
        sent: &mut Sent,
    ) {
        let slots = total.div_ceil(SLOT);
        if 1 + slots > self.free() {
            sent.count_errors(1);
            cache.free(mbuf);
            return;
        }
        let flags = packets.header.flags.get() | TxDescriptor::FIRST | TxDescriptor::LAST;
        let inline = if total > 0 { TxDescriptor::INLINE } else { 0 };
        self.defer(TxDescriptor {
            length: (total as u32).into(),
            flags: (flags | inline).into(),
            total: (total as u16).into(),
            ..packets.header
        });
        let mut bytes = [0; INLINE];
        let places = bytes.iter_mut();
        for (to, from) in places.zip(mbuf.segments().flatten()) {
            *to = *from;
        }
        let (data, _) = bytes.as_chunks();
        for slot in &data[..slots] {
            self.parts.ring.write_slot(self.next, slot);
            self.next = self.next.wrapping_add(1);
        }
        self.keep(mbuf);
    }

    /// Stores the packet at the slot of its last descriptor.
    #[inline(always)]
    fn keep(&mut self, mbuf: Mbuf) {
        let slot = self.parts.ring.slot(self.next.wrapping_sub(1));
        if let Some(posted) = self.posted.get_mut(slot) {
            *posted = Some(mbuf);
        }
    }

    /// Writes the deferred descriptor, and defers this one.
    #[inline(always)]
    fn defer(&mut self, descriptor: TxDescriptor) {
        if let Some((at, held)) = self.held.replace((self.next, descriptor)) {
            self.parts.ring.write(at, &held);
        }
        self.next = self.next.wrapping_add(1);
    }

    /// Copies a frame into buffers that the card can access.
    #[cold]
    fn copied(&mut self, mbuf: Mbuf, cache: &mut PoolCache) -> Option<Mbuf> {
        let Self { copy, parts, .. } = self;
        let copied = mbuf.segments().all(|segment| {
            let from = NonNull::from(segment).cast();
            // SAFETY: the bytes are borrowed from the frame, which has its buffers for itself until
            // it is freed below: none of them was pushed, or is given out.
            unsafe { copy.append(from, segment.len(), || alloc(&parts.pool, cache)) }
        });
        cache.free(mbuf);
        if !copied {
            self.copy.abandon(cache);
        }
        self.copy.finish()
    }

    /// Processes completion events, and counts the packets that were read.
    fn complete(&mut self, sent: &mut Sent, mut done: impl FnMut(Mbuf)) {
        while let Some(event) = self.parts.events.poll() {
            let Some((status, packets)) = self.status(&event) else {
                self.parts.refused.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            let (mut frames, mut bytes, mut last) = (0, 0, 0);
            self.take_back(event.index, |mbuf| {
                frames += 1;
                last = mbuf.total_len() as u64;
                bytes += last;
                done(mbuf);
            });
            match status {
                // All packets but the last are good.
                BAD | UNREADABLE if frames > 0 => {
                    sent.count(frames - 1, bytes - last);
                    sent.count_errors(1);
                }
                _ => sent.count(frames, bytes),
            }
            match status {
                STOPPED => self.restart(sent, &mut done),
                UNRESOLVED => sent.count_unresolved(packets.into()),
                _ => {}
            }
        }
    }

    /// Status of an event, and its number of packets, if it is one of this ring and does not claim
    /// more than was posted.
    #[inline]
    fn status(&self, event: &EventRecord) -> Option<(u32, u32)> {
        let done = event.index.wrapping_sub(self.oldest);
        let is_ours = event.kind == TxSent::KIND
            && usize::from(event.stream) == self.parts.control.nic.ring(self.parts.control.port)
            && done <= self.in_flight();
        let sent = TxSent::read_from_bytes(&event.payload).ok()?;
        let (status, packets) = (sent.status.get(), sent.packets.get());
        let is_valid = status < UNRESOLVED || status == UNRESOLVED && packets <= MOST_UNRESOLVED;
        (is_ours && is_valid).then_some((status, packets))
    }

    /// Takes the frames before descriptor number `end`.
    #[inline]
    fn take_back(&mut self, end: u32, mut take: impl FnMut(Mbuf)) {
        while self.oldest != end {
            let slot = self.parts.ring.slot(self.oldest);
            if let Some(mbuf) = self.posted.get_mut(slot).and_then(Option::take) {
                take(mbuf);
            }
            self.oldest = self.oldest.wrapping_add(1);
        }
    }

    /// Restarts a stopped ring: the remaining frames were not sent. Later ones can be, if the card
    /// confirms that the ring is at rest.
    #[cold]
    fn restart(&mut self, sent: &mut Sent, done: &mut impl FnMut(Mbuf)) {
        if !self.parts.ring.stop() {
            return self.abandon_posted(sent);
        }
        let mut lost = 0;
        self.take_back(self.next, |mbuf| {
            lost += 1;
            done(mbuf);
        });
        sent.count_errors(lost);
        (self.oldest, self.next) = (0, 0);
        self.parts.ring.enable(self.parts.queue);
    }

    /// Counts the frames in flight as errors. The card may still read them.
    fn abandon_posted(&mut self, sent: &mut Sent) {
        let mut lost = Vec::new();
        self.take_back(self.next, |mbuf| lost.push(mbuf));
        sent.count_errors(lost.len() as u64);
        self.parts.quarantine.park(lost);
    }

    fn free_sent(&mut self, cache: &mut PoolCache, sent: &mut Sent) {
        let mut done = Burst::<FREE>::new();
        self.complete(sent, |mbuf| {
            if let Err(mbuf) = done.push(mbuf) {
                cache.free_burst(&mut done);
                drop(done.push(mbuf));
            }
        });
        cache.free_burst(&mut done);
    }

    /// Takes packets from the front of a burst, as many as there are descriptors, and returns their
    /// number. A packet counts as sent when the card has read it; a call with an empty burst
    /// updates the count.
    #[inline(always)]
    pub(super) fn send(
        &mut self,
        cache: &mut PoolCache,
        burst: &mut BurstMut<'_>,
        packets: &Packets,
        sent: &mut Sent,
    ) -> usize {
        let frames = burst.as_slice().iter();
        let wanted = frames.map(|mbuf| self.needed(mbuf)).sum::<usize>();
        // Late, and many at once.
        if self.free() < wanted.max(self.parts.ring.size() / 4) || burst.is_empty() {
            self.free_sent(cache, sent);
        }
        let mut free = self.free();
        let mut taken = burst.len();
        if wanted > free {
            let fits = |mbuf: &&Mbuf| {
                let left = free.checked_sub(self.needed(mbuf));
                free = left.unwrap_or(free);
                left.is_some()
            };
            taken = burst.as_slice().iter().take_while(fits).count();
        }
        if taken == 0 {
            return 0;
        }
        burst.take_front(taken, |mbuf| self.post(mbuf, packets, cache, sent));
        if let Some((at, mut last)) = self.held.take() {
            last.flags = (last.flags.get() | TxDescriptor::EVENT).into();
            self.parts.ring.write(at, &last);
            self.parts.ring.ring_doorbell(self.next);
        }
        taken
    }
}

impl<D: Device> TxDriver for Tx<D> {
    #[inline]
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        let packets = Packets::whole(self.parts.longest);
        self.send(cache, burst, &packets, sent)
    }

    fn finish(&mut self, sent: &mut Sent) {
        let clock = self.parts.control.nic.clock.clone();
        let mut timeout = Timeout::new(&clock, PATIENCE);
        loop {
            self.complete(sent, drop);
            if self.in_flight() == 0 || timeout.is_over(&clock) {
                break;
            }
            clock.relax();
        }
        self.parts.ring.stop();
        self.complete(sent, drop);
        self.abandon_posted(sent);
    }
}

impl<D: Device> Drop for Tx<D> {
    fn drop(&mut self) {
        self.parts.ring.stop();
        self.parts.control.send(false);
        let posted = mem::take(&mut self.posted);
        self.parts.quarantine.park(posted.into_iter().flatten());
    }
}
