//! Sends out of the buffers that frames, or payloads, are in. The card is told of a burst by one
//! doorbell, and tells by one event that all of it has been read.

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

/// Buffers are freed by so many.
const FREE: usize = 32;

/// Shortest frame that the card takes whole: a header.
const SHORTEST: usize = 14;

/// What the packets of a burst have in common.
#[derive(Clone, Copy)]
pub(super) struct Packets {
    /// What their descriptors say, but for where they are and how long.
    pub(super) header: TxDescriptor,
    /// Bytes of the shortest and of the longest.
    pub(super) shortest: usize,
    pub(super) longest: usize,
}

impl Packets {
    /// Frames that the card puts nothing in front of.
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

/// Status of an event: the last packet contradicts itself, or could not be read.
const BAD: u32 = 1;
const UNREADABLE: u32 = 2;
/// The ring has stopped, as its descriptors could not be read.
const STOPPED: u32 = 3;

/// What a transmit queue is made of.
pub(super) struct TxParts<D: Device> {
    pub(super) control: Control<D>,
    pub(super) ring: Ring<D>,
    pub(super) events: Events<D>,
    pub(super) queue: usize,
    pub(super) addresses: DeviceAddresses,
    /// For frames that the card cannot reach where they are.
    pub(super) pool: Mempool,
    /// Bytes of the longest frame.
    pub(super) longest: usize,
    /// Events that told nothing that can be.
    pub(super) refused: Arc<AtomicU64>,
    /// Where frames go that are on their way at the end.
    pub(super) quarantine: Quarantine,
}

/// The ring of one port.
pub(super) struct Tx<D: Device> {
    parts: TxParts<D>,
    /// By slot: a frame is at the last of its pieces.
    posted: Box<[Option<Mbuf>]>,
    /// Numbers of the oldest descriptor on its way, and of the next to be written.
    oldest: u32,
    next: u32,
    /// A descriptor that is not written yet: it may be the one that is reported.
    held: Option<TxDescriptor>,
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
    fn on_their_way(&self) -> u32 {
        self.next.wrapping_sub(self.oldest)
    }

    #[inline(always)]
    fn free(&self) -> usize {
        self.parts.ring.size() - self.on_their_way() as usize
    }

    /// Descriptors that a frame takes, at most.
    #[inline(always)]
    fn needed(&self, mbuf: &Mbuf) -> usize {
        if mbuf.segment_count() == 1 && self.reaches(mbuf) {
            1
        } else {
            self.needed_at_most(mbuf)
        }
    }

    /// The same for a chain, or a frame that has to be copied. One that takes more than a ring has
    /// is refused when it is its turn.
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

    /// Whether the card can read a frame where it is.
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
        if total == 0 {
            return self.post_nothing(mbuf, packets);
        }
        if !self.reaches(&mbuf) {
            match self.copied(mbuf, cache) {
                Some(copied) => mbuf = copied,
                None => return sent.count_errors(1),
            }
        }
        let is_piece = |segment: &&[u8]| !segment.is_empty();
        let mut left = mbuf.segments().filter(is_piece).count();
        if left > self.free() {
            sent.count_errors(1);
            cache.free(mbuf);
            return;
        }
        let kind = packets.header.flags.get();
        let mut flags = TxDescriptor::FIRST | kind;
        for segment in mbuf.segments().filter(is_piece) {
            left -= 1;
            if left == 0 {
                flags |= TxDescriptor::LAST;
            }
            // Each has an address, as `reaches` has found.
            let address = self.address(segment).unwrap_or(0);
            self.put(TxDescriptor {
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

    /// A packet without payload: one descriptor, of no bytes.
    #[cold]
    fn post_nothing(&mut self, mbuf: Mbuf, packets: &Packets) {
        let flags = packets.header.flags.get() | TxDescriptor::FIRST | TxDescriptor::LAST;
        self.put(TxDescriptor {
            flags: flags.into(),
            ..packets.header
        });
        self.keep(mbuf);
    }

    /// Remembers the packet whose last descriptor was the last one.
    #[inline(always)]
    fn keep(&mut self, mbuf: Mbuf) {
        let slot = self.parts.ring.slot(self.next.wrapping_sub(1));
        if let Some(posted) = self.posted.get_mut(slot) {
            *posted = Some(mbuf);
        }
    }

    /// Writes the descriptor that was held back, and holds this one back.
    #[inline(always)]
    fn put(&mut self, descriptor: TxDescriptor) {
        if let Some(held) = self.held.replace(descriptor) {
            self.parts.ring.write(self.next.wrapping_sub(1), &held);
        }
        self.next = self.next.wrapping_add(1);
    }

    /// The same frame in buffers that the card was given.
    #[cold]
    fn copied(&mut self, mbuf: Mbuf, cache: &mut PoolCache) -> Option<Mbuf> {
        let Self { copy, parts, .. } = self;
        let copied = mbuf.segments().all(|segment| {
            let from = NonNull::from(segment).cast();
            // SAFETY: the bytes are borrowed from the frame, which has its buffers for itself
            // until it is freed below: none of them was pushed, or is given out.
            unsafe { copy.append(from, segment.len(), || alloc(&parts.pool, cache)) }
        });
        cache.free(mbuf);
        if !copied {
            self.copy.abandon(cache);
        }
        self.copy.finish()
    }

    /// Takes back what has been read, event by event, and counts it.
    fn complete(&mut self, sent: &mut Sent, mut done: impl FnMut(Mbuf)) {
        while let Some(event) = self.parts.events.poll() {
            let Some(status) = self.status(&event) else {
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
                // Of all others that it tells of, all is well.
                BAD | UNREADABLE if frames > 0 => {
                    sent.count(frames - 1, bytes - last);
                    sent.count_errors(1);
                }
                _ => sent.count(frames, bytes),
            }
            if status == STOPPED {
                self.begin_anew(sent, &mut done);
            }
        }
    }

    /// The status that an event tells, if it is one of this ring, and no more is done than was
    /// posted.
    #[inline]
    fn status(&self, event: &EventRecord) -> Option<u32> {
        let done = event.index.wrapping_sub(self.oldest);
        let is_ours = event.kind == TxSent::KIND
            && usize::from(event.stream) == self.parts.control.port
            && done <= self.on_their_way();
        let told = TxSent::read_from_bytes(&event.payload).ok()?;
        let status = told.status.get();
        (is_ours && status <= STOPPED).then_some(status)
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

    /// The ring has stopped: what is left in it was not sent, and what comes next can be, if the
    /// card says that it is at rest.
    #[cold]
    fn begin_anew(&mut self, sent: &mut Sent, done: &mut impl FnMut(Mbuf)) {
        if !self.parts.ring.stop() {
            return self.give_up(sent);
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

    /// The frames that are on their way are errors. The card may still read them.
    fn give_up(&mut self, sent: &mut Sent) {
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

    /// Takes packets out of the front of a burst, as many as there is room for, and returns how
    /// many. A packet counts as sent when the card has read it; an empty burst has its use: it
    /// counts them.
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
        // Late and many at once.
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
        if let Some(mut last) = self.held.take() {
            last.flags = (last.flags.get() | TxDescriptor::EVENT).into();
            self.parts.ring.write(self.next.wrapping_sub(1), &last);
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
            if self.on_their_way() == 0 || timeout.is_over(&clock) {
                break;
            }
            clock.relax();
        }
        self.parts.ring.stop();
        self.complete(sent, drop);
        self.give_up(sent);
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
