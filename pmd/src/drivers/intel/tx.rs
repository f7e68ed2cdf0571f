//! Sends frames out of the buffers that they are in: section 7.2 of either datasheet.
//!
//! The device is asked to report the last descriptor of each burst, and is done with all of the
//! burst when it has: one look at one word for many frames.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::mem;
use std::ptr::NonNull;

use pollux_mempool::time::Ns;
use pollux_mempool::{Burst, BurstMut, ChecksumRequest, Mbuf, Mempool, PoolCache};

use super::descriptors::{REPORT, Ring, TxFormat, is_sent};
use crate::clock::{Clock, Timeout};
use crate::driver::TxDriver;
use crate::drivers::dma::{Assembly, DeviceAddresses, alloc};
use crate::ledger::Sent;
use crate::net::finish_checksum;
use crate::quarantine::Quarantine;

/// How long the end waits for frames that are on their way.
const LINGER: Ns = Ns(100_000_000);

/// Buffers are freed by so many.
const FREE: usize = 32;

/// The device pads frames, but none that are shorter than this.
const SHORTEST: usize = 17;

/// Most pieces of a frame. One that has more is copied into fewer, if it can be. (QEMU's models take 64.)
const MAX_PIECES: usize = 60;

/// What a transmit queue asks of its device, beside the ring.
pub(crate) trait TxControl: Send + 'static {
    /// Moves the queue's tail to that slot.
    fn set_tail(&self, slot: u32);

    /// Has this queue send nothing more, as far as the device can do that for one queue: the others
    /// go on. Its frames may still be read.
    fn disable(&self);
}

/// What a transmit queue is made of.
pub(crate) struct TxParts<Q, C> {
    pub(crate) control: Q,
    pub(crate) clock: C,
    pub(crate) ring: Ring,
    pub(crate) addresses: DeviceAddresses,
    /// For frames that the device cannot reach where they are.
    pub(crate) pool: Mempool,
    /// Bytes of the longest frame.
    pub(crate) longest: usize,
    /// Where frames go that are on their way at the end.
    pub(crate) quarantine: Quarantine,
}

/// What is sent together.
#[derive(Clone, Copy, Default)]
struct Batch {
    /// The descriptor that is reported: its number, and what is in it.
    last: u32,
    words: [u64; 2],
    frames: u64,
    bytes: u64,
}

/// A transmit queue.
#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(crate) struct Tx<Q: TxControl, C, F> {
    parts: TxParts<Q, C>,
    /// By slot: a frame is at the last of its pieces.
    posted: Box<[Option<Mbuf>]>,
    /// On their way, oldest first; as many as the ring has descriptors, at most.
    batches: VecDeque<Batch>,
    /// Numbers of the oldest descriptor on its way, and of the next to be written.
    oldest: u32,
    next: u32,
    copy: Assembly,
    /// Bytes of a page of the pools, a power of two. No piece crosses one: QEMU's models drop a
    /// frame, and report it as sent, if the pages of a piece do not follow each other behind the
    /// IOMMU.
    page: usize,
    format: PhantomData<F>,
}

impl<Q: TxControl, C: Clock, F: TxFormat> Tx<Q, C, F> {
    /// A queue whose ring is empty.
    pub(crate) fn new(parts: TxParts<Q, C>) -> Self {
        let size = parts.ring.size();
        Self {
            posted: (0..size).map(|_| None).collect(),
            batches: VecDeque::with_capacity(size as usize),
            oldest: 0,
            next: 0,
            copy: Assembly::new(),
            page: parts.addresses.page_size(),
            format: PhantomData,
            parts,
        }
    }

    /// The ring is never filled whole, as that would look like an empty one.
    #[inline(always)]
    fn free(&self) -> usize {
        (self.parts.ring.size() - 1 - self.next.wrapping_sub(self.oldest)) as usize
    }

    /// Puts a frame into the ring, or counts it as an error.
    ///
    /// # Errors
    /// Gives it back if there is no room for it at present.
    #[inline(always)]
    fn post(
        &mut self,
        mbuf: Mbuf,
        batch: &mut Batch,
        cache: &mut PoolCache,
        sent: &mut Sent,
    ) -> Result<(), Mbuf> {
        let (len, data) = (mbuf.len(), mbuf.data_ptr());
        let request = F::request(&mbuf);
        if mbuf.segment_count() == 1
            && (SHORTEST..=self.parts.longest).contains(&len)
            && len <= self.rest_of_page(data.addr())
            && request.is_none_or(|request| request.fits(len) && F::can_finish(request))
            && self.free() > usize::from(request.is_some())
            && let Some(data) = NonNull::new(data.cast_mut())
            && let Some(address) = self.parts.addresses.of(data, len)
        {
            let summed = self.put_context(request);
            batch.words = [address, F::piece(len, len, true) | summed];
            self.put(batch.words);
            self.keep(mbuf, len, batch);
            return Ok(());
        }
        self.post_slowly(mbuf, batch, cache, sent)
    }

    /// The device does not look at it before the tail has passed it.
    #[inline(always)]
    fn put(&mut self, words: [u64; 2]) {
        self.parts.ring.slots().write(self.next, words);
        self.next = self.next.wrapping_add(1);
    }

    /// Has the device finish the checksum of the frame that follows, if it is asked to; what the
    /// pieces of the frame have to say then. A context for each such frame: the device remembers
    /// one alone, whichever queue it came from (section 7.2.6 of the 82574's datasheet).
    #[inline(always)]
    fn put_context(&mut self, request: Option<ChecksumRequest>) -> u64 {
        let Some(request) = request else { return 0 };
        self.put(F::context(request));
        F::SUMMED
    }

    /// Keeps a frame until its last piece, which was put just now, has been sent.
    #[inline(always)]
    fn keep(&mut self, mbuf: Mbuf, len: usize, batch: &mut Batch) {
        let slot = self.parts.ring.slots().of(self.next.wrapping_sub(1));
        if let Some(posted) = self.posted.get_mut(slot) {
            *posted = Some(mbuf);
        }
        batch.frames += 1;
        batch.bytes += len as u64;
    }

    /// The same for a frame of several pieces, one that must be padded, one that the device cannot
    /// reach, or one for which there is no room.
    #[cold]
    fn post_slowly(
        &mut self,
        mbuf: Mbuf,
        batch: &mut Batch,
        cache: &mut PoolCache,
        sent: &mut Sent,
    ) -> Result<(), Mbuf> {
        if self.needed_at_most(&mbuf) > self.free() {
            return Err(mbuf);
        }
        if let Err(mbuf) = self.post_pieces(mbuf, batch, cache) {
            sent.count_errors(1);
            if let Some(mbuf) = mbuf {
                cache.free(mbuf);
            }
        }
        Ok(())
    }

    /// A frame that there is room for.
    ///
    /// # Errors
    /// It cannot be sent; the frame, if it is still there.
    fn post_pieces(
        &mut self,
        mut mbuf: Mbuf,
        batch: &mut Batch,
        cache: &mut PoolCache,
    ) -> Result<(), Option<Mbuf>> {
        let mut total = mbuf.total_len();
        let mut request = F::request(&mbuf);
        let is_sound = request.is_none_or(|request| request.fits(total));
        if total == 0 || total > self.parts.longest || !is_sound {
            return Err(Some(mbuf));
        }
        if request.is_some_and(|request| !F::can_finish(request)) {
            if !finish_checksum(&mut mbuf) {
                return Err(Some(mbuf));
            }
            request = None;
        }
        if total < SHORTEST {
            match mbuf.append(SHORTEST - total) {
                Some(padding) => padding.fill(0),
                None => return Err(Some(mbuf)),
            }
            total = SHORTEST;
        }
        if !self.reaches(&mbuf) {
            mbuf = self.copied(mbuf, cache).ok_or(None)?;
        }
        let pieces = self.pieces(&mbuf);
        if !self.reaches(&mbuf) || pieces + usize::from(request.is_some()) > self.free() {
            return Err(Some(mbuf));
        }
        let summed = self.put_context(request);
        let mut left = pieces;
        for mut segment in mbuf.segments() {
            while !segment.is_empty() {
                let rest_of_page = self.rest_of_page(segment.as_ptr().addr());
                let (piece, rest) = segment.split_at(rest_of_page.min(segment.len()));
                left -= 1;
                if let Some(address) = self.address(piece) {
                    let word = F::piece(piece.len(), total, left == 0) | summed;
                    batch.words = [address, word];
                    self.put(batch.words);
                }
                segment = rest;
            }
        }
        self.keep(mbuf, total, batch);
        Ok(())
    }

    /// Bytes from there to the end of the page.
    #[inline(always)]
    fn rest_of_page(&self, at: usize) -> usize {
        self.page - (at & (self.page - 1))
    }

    /// Pieces that bytes are sent in.
    #[inline(always)]
    fn pieces_of(&self, at: usize, len: usize) -> usize {
        let first = self.rest_of_page(at);
        if len <= first {
            usize::from(len > 0)
        } else {
            1 + (len - first).div_ceil(self.page)
        }
    }

    /// Pieces that a frame is sent in.
    #[inline(always)]
    fn pieces(&self, mbuf: &Mbuf) -> usize {
        if mbuf.segment_count() == 1 {
            self.pieces_of(mbuf.data_ptr().addr(), mbuf.len())
        } else {
            self.pieces_of_chain(mbuf)
        }
    }

    #[cold]
    fn pieces_of_chain(&self, mbuf: &Mbuf) -> usize {
        let pieces = |segment: &[u8]| self.pieces_of(segment.as_ptr().addr(), segment.len());
        mbuf.segments().map(pieces).sum()
    }

    /// Descriptors that there must be for a frame, which may have to be padded, over the end of a
    /// page, or copied: each buffer of the copy begins anywhere in a page.
    fn needed_at_most(&self, mbuf: &Mbuf) -> usize {
        let most = if self.reaches(mbuf) {
            self.pieces(mbuf) + usize::from(mbuf.total_len() < SHORTEST)
        } else {
            let room = self.parts.pool.data_room();
            mbuf.total_len().div_ceil(room) * (1 + room.div_ceil(self.page))
        };
        most.min(MAX_PIECES) + usize::from(F::request(mbuf).is_some())
    }

    fn address(&self, segment: &[u8]) -> Option<u64> {
        let data = NonNull::from(segment).cast();
        self.parts.addresses.of(data, segment.len())
    }

    /// Whether the device can send a frame from where it is.
    fn reaches(&self, mbuf: &Mbuf) -> bool {
        self.pieces(mbuf) <= MAX_PIECES
            && mbuf
                .segments()
                .all(|segment| self.address(segment).is_some())
    }

    /// The same frame in buffers that the device was given.
    fn copied(&mut self, mbuf: Mbuf, cache: &mut PoolCache) -> Option<Mbuf> {
        let copied = mbuf.segments().all(|segment| {
            let from = NonNull::from(segment).cast();
            // SAFETY: the bytes are borrowed from the frame, which has its buffers for itself
            // until it is freed below: none of them was pushed, or is given out.
            unsafe {
                self.copy
                    .append(from, segment.len(), || alloc(&self.parts.pool, cache))
            }
        });
        cache.free(mbuf);
        if !copied {
            self.copy.abandon(cache);
        }
        self.copy.finish()
    }

    /// Takes back what has been sent, batch by batch, and counts it.
    #[inline(always)]
    fn complete(&mut self, sent: &mut Sent, mut done: impl FnMut(Mbuf)) {
        let slots = self.parts.ring.slots();
        let mut oldest = self.oldest;
        while let Some(batch) = self.batches.front()
            && is_sent(slots.read(batch.last))
        {
            let end = batch.last.wrapping_add(1);
            while oldest != end {
                let posted = self.posted.get_mut(slots.of(oldest));
                if let Some(mbuf) = posted.and_then(Option::take) {
                    done(mbuf);
                }
                oldest = oldest.wrapping_add(1);
            }
            sent.count(batch.frames, batch.bytes);
            self.batches.pop_front();
        }
        self.oldest = oldest;
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
}

impl<Q: TxControl, C: Clock + 'static, F: TxFormat> TxDriver for Tx<Q, C, F> {
    /// A frame counts as sent when the device has reported it; an empty burst has its use: it
    /// counts them.
    #[inline]
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        // Late and many at once: each look has a cache line come over that the device writes.
        let size = self.parts.ring.size() as usize;
        if self.free() < burst.len().max(size / 4) || burst.is_empty() {
            self.free_sent(cache, sent);
        }
        let mut batch = Batch::default();
        let mut taken = burst.take_while(|mbuf| self.post(mbuf, &mut batch, cache, sent));
        if !burst.is_empty() {
            // A frame of several pieces: it may want room that was not looked for.
            self.free_sent(cache, sent);
            taken += burst.take_while(|mbuf| self.post(mbuf, &mut batch, cache, sent));
        }
        if batch.frames > 0 {
            batch.last = self.next.wrapping_sub(1);
            let [address, word] = batch.words;
            let slots = self.parts.ring.slots();
            slots.write(batch.last, [address, word | REPORT]);
            let tail = slots.of(self.next) as u32;
            self.batches.push_back(batch);
            self.parts.control.set_tail(tail);
        }
        taken
    }

    fn finish(&mut self, sent: &mut Sent) {
        let clock = self.parts.clock.clone();
        let mut timeout = Timeout::new(&clock, LINGER);
        loop {
            self.complete(sent, drop);
            if self.batches.is_empty() || timeout.is_over(&clock) {
                break;
            }
            clock.relax();
        }
        // Whether the frames in flight are still sent is unknown.
        sent.count_errors(self.batches.iter().map(|batch| batch.frames).sum());
        self.batches.clear();
    }
}

impl<Q: TxControl, C, F> Drop for Tx<Q, C, F> {
    /// The device may read what is posted until all of it is at rest.
    fn drop(&mut self) {
        self.parts.control.disable();
        let posted = mem::take(&mut self.posted);
        self.parts.quarantine.park(posted.into_iter().flatten());
    }
}
