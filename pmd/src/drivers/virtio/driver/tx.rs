//! Driver transmit side: sends frames from their buffers (virtio 1.2 section 5.1.6.2).

use std::convert::Infallible;
use std::ptr::NonNull;

use pollux_mempool::time::Ns;
use pollux_mempool::{Burst, BurstMut, ChecksumRequest, Mbuf, Mempool, PoolCache};

use super::packed::PackedRing;
use super::split::SplitRing;
use super::{Ring, buffers};
use crate::clock::{Clock, Timeout};
use crate::drivers::dma::{Assembly, DeviceAddresses, alloc};
use crate::drivers::virtio::areas::QueueMemory;
use crate::drivers::virtio::split::INDIRECT;
use crate::drivers::virtio::{
    Broken, Doorbell, Either, Notify, Piece, RingFeatures, either, header,
};
use crate::ledger::Sent;
use crate::net::finish_checksum;

/// Time for frames in flight to be used at the end. A fuzzer's device takes none.
pub(crate) const LINGER: Ns = Ns(if cfg!(fuzzing) { 0 } else { 100_000_000 });

/// Batch size for freeing buffers.
const FREE: usize = 32;

/// Size of a descriptor in a table.
const ENTRY: usize = size_of::<[u64; 2]>();

/// The driver's transmit queue.
pub(crate) struct DriverTx<N = Infallible>(Either<Tx<SplitRing, N>, Tx<PackedRing, N>>);

impl<N: Notify> DriverTx<N> {
    /// A queue in fresh memory. A frame in memory that the device cannot access is copied to a
    /// buffer of `pool`.
    pub(crate) fn new(
        memory: &QueueMemory,
        features: RingFeatures,
        addresses: DeviceAddresses,
        pool: &Mempool,
        doorbell: Doorbell<N>,
    ) -> Self {
        if memory.ring().is_packed() {
            Self(Either::Packed(Tx::new(
                memory, features, addresses, pool, doorbell,
            )))
        } else {
            Self(Either::Split(Tx::new(
                memory, features, addresses, pool, doorbell,
            )))
        }
    }

    /// As [`TxDriver::tx`](crate::driver::TxDriver::tx). A frame counts as sent when the device has
    /// used it, so an empty burst is useful too: it counts completed frames.
    #[inline]
    pub(crate) fn tx(
        &mut self,
        cache: &mut PoolCache,
        burst: &mut BurstMut<'_>,
        sent: &mut Sent,
    ) -> usize {
        either!(&mut self.0, tx => tx.tx(cache, burst, sent))
    }

    /// Number of posted buffers, which the device may therefore use.
    pub(crate) fn buffers(&self) -> usize {
        either!(&self.0, tx => tx.ring.buffers())
    }

    /// Whether the device has corrupted the queue.
    pub(crate) fn is_broken(&self) -> bool {
        either!(&self.0, tx => tx.broken)
    }

    /// Takes the posted frames, when the queue ends.
    pub(crate) fn take_posted(&mut self) -> impl Iterator<Item = Mbuf> + use<N> {
        buffers(either!(&mut self.0, tx => tx.ring.take_posted()))
    }

    /// The last call: waits for the device to take the frames in flight, for at most `patience` of
    /// `clock`. Frames that it does not take count as errors.
    pub(crate) fn finish(&mut self, clock: &impl Clock, patience: Ns, sent: &mut Sent) {
        either!(&mut self.0, tx => tx.finish(clock, patience, sent));
    }
}

struct Tx<R, N> {
    ring: R,
    addresses: DeviceAddresses,
    pool: Mempool,
    doorbell: Doorbell<N>,
    /// Zeros: the header of frames without headroom.
    header: Piece,
    /// List for the segments of one frame.
    pieces: Vec<Piece>,
    assembly: Assembly,
    in_flight: usize,
    /// The device supports tables, and checksum offload.
    indirect: bool,
    checksum: bool,
    broken: bool,
    /// Keeps the header's memory alive.
    _memory: QueueMemory,
}

impl<R: Ring, N: Notify> Tx<R, N> {
    fn new(
        memory: &QueueMemory,
        features: RingFeatures,
        addresses: DeviceAddresses,
        pool: &Mempool,
        doorbell: Doorbell<N>,
    ) -> Self {
        let ring = R::new(memory.ring(), features.in_order);
        let header = addresses.of(memory.header(), header::LEN);
        Self {
            pieces: Vec::with_capacity(ring.size()),
            ring,
            pool: pool.clone(),
            doorbell,
            header: Piece {
                address: header.unwrap_or(0),
                len: if header.is_some() {
                    header::LEN as u32
                } else {
                    0
                },
            },
            addresses,
            assembly: Assembly::new(),
            in_flight: 0,
            indirect: features.indirect,
            checksum: features.checksum,
            broken: false,
            _memory: memory.clone(),
        }
    }

    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        let wanted = burst.as_slice().iter();
        let wanted = wanted.map(|mbuf| self.descriptors(mbuf)).sum::<usize>();
        // Late and many at once: each read moves a cache line that the device writes.
        let is_late = self.ring.free() < wanted.max(self.ring.size() / 8) || burst.is_empty();
        if is_late && !self.broken {
            self.complete(cache, sent);
        }
        if self.broken {
            return 0;
        }
        let mut free = self.ring.free();
        let mut taken = burst.len();
        if wanted > free {
            let fits = |mbuf: &Mbuf| {
                // A frame that no ring of this size can hold is accepted too, and refused.
                let needed = self.descriptors(mbuf);
                let fits = needed <= free || needed > self.ring.size();
                free = free.saturating_sub(needed);
                fits
            };
            taken = burst
                .as_slice()
                .iter()
                .map(fits)
                .take_while(|&fits| fits)
                .count();
        }
        if taken == 0 {
            return 0;
        }
        let before = self.in_flight;
        burst.take_front(taken, |mbuf| self.post(mbuf, cache, sent));
        if self.in_flight > before {
            self.ring.publish();
            if self.doorbell.can_ring() {
                self.doorbell
                    .after_publication(|| self.ring.device_listens());
            }
        }
        taken
    }

    #[inline(always)]
    fn post(&mut self, mbuf: Mbuf, cache: &mut PoolCache, sent: &mut Sent) {
        let len = mbuf.len();
        let data = NonNull::new(mbuf.data_ptr().cast_mut());
        let request = self.request(&mbuf);
        if mbuf.segment_count() == 1
            && len > 0
            && mbuf.headroom() >= header::LEN
            && request.is_none_or(|request| request.fits(len))
            && let Some(data) = data
        {
            // SAFETY: the headroom is at least as long.
            let start = unsafe { data.sub(header::LEN) };
            if let Some(address) = self.addresses.of(start, header::LEN + len) {
                // SAFETY: in the headroom of a buffer that this queue owns.
                unsafe { header::send(start, request) };
                let len = (header::LEN + len) as u32;
                self.ring.post(mbuf, Piece { address, len }, 0);
                self.in_flight += 1;
                return;
            }
        }
        self.post_several(mbuf, cache, sent);
    }

    /// The checksum request of a frame, if the device supports it.
    #[inline(always)]
    fn request(&self, mbuf: &Mbuf) -> Option<ChecksumRequest> {
        if self.checksum {
            mbuf.checksum_request()
        } else {
            None
        }
    }

    /// A frame of several segments, or one that the device cannot access.
    #[cold]
    fn post_several(&mut self, mut mbuf: Mbuf, cache: &mut PoolCache, sent: &mut Sent) {
        let mut request = self.request(&mbuf);
        // The header that frames without headroom share requests no offload.
        let shares_header = mbuf.headroom() < header::LEN;
        if shares_header && request.take().is_some() && !finish_checksum(&mut mbuf) {
            sent.count_errors(1);
            cache.free(mbuf);
            return;
        }
        let mut frame = Some(mbuf);
        if !frame
            .as_ref()
            .is_some_and(|mbuf| self.gather(mbuf, request))
        {
            frame = frame.and_then(|mbuf| self.within_reach(mbuf, cache));
            if !frame
                .as_ref()
                .is_some_and(|mbuf| self.gather(mbuf, request))
            {
                frame = None;
            }
        }
        let table = frame.as_ref().and_then(|mbuf| self.table(mbuf));
        let needed = if table.is_some() {
            1
        } else {
            self.pieces.len()
        };
        match (frame, table) {
            (Some(mbuf), Some(table)) if needed <= self.ring.free() => {
                self.ring.post(mbuf, table, INDIRECT);
                self.in_flight += 1;
            }
            (Some(mbuf), None) if needed <= self.ring.free() => {
                self.ring.post_chain(mbuf, &self.pieces);
                self.in_flight += 1;
            }
            // Empty, longer than the ring, or inaccessible without a free buffer for a copy.
            (other, _) => {
                sent.count_errors(1);
                if let Some(mbuf) = other {
                    cache.free(mbuf);
                }
            }
        }
    }

    /// Lists the segments of a frame, header first; `false` if it has none, if its checksum request
    /// is invalid, or if the device cannot access them all.
    fn gather(&mut self, mbuf: &Mbuf, request: Option<ChecksumRequest>) -> bool {
        self.pieces.clear();
        let has_header = mbuf.headroom() >= header::LEN;
        let is_sound = request.is_none_or(|request| has_header && request.fits(mbuf.total_len()));
        if mbuf.is_empty() || !is_sound || self.descriptors(mbuf) > self.ring.size() {
            return false;
        }
        let in_front = if has_header {
            header::LEN
        } else {
            self.pieces.push(self.header);
            0
        };
        for (i, segment) in mbuf.segments().enumerate() {
            // Not through the slice of the first segment, which gives no access to the bytes in
            // front of it.
            let (data, before) = match i {
                0 => (mbuf.data_ptr(), in_front),
                _ => (segment.as_ptr(), 0),
            };
            let len = before + segment.len();
            let Some(data) = NonNull::new(data.cast_mut()) else {
                return false;
            };
            // SAFETY: the first segment's headroom is at least as long.
            let start = unsafe { data.sub(before) };
            let Some(address) = self.addresses.of(start, len) else {
                return false;
            };
            if before > 0 {
                // SAFETY: in the headroom of a buffer that this queue owns.
                unsafe { header::send(start, request) };
            }
            if len > 0 {
                let len = len as u32;
                self.pieces.push(Piece { address, len });
            }
        }
        // A separate header needs an address too.
        self.pieces.first().is_some_and(|piece| piece.len > 0)
    }

    /// Writes a table of the listed segments into the frame's headroom, in front of its header,
    /// where it stays until the frame has been sent: one descriptor of the ring for all of them
    /// (section 2.7.5.3). `None` if the frame must be a chain.
    fn table(&self, mbuf: &Mbuf) -> Option<Piece> {
        let count = self.pieces.len();
        if count < 2 || self.descriptors(mbuf) > 1 {
            return None;
        }
        let data = NonNull::new(mbuf.data_ptr().cast_mut())?;
        // SAFETY: the headroom is as long.
        let start = unsafe { data.sub(mbuf.headroom()) };
        let address = self.addresses.of(start, count * ENTRY)?;
        for (i, &piece) in self.pieces.iter().enumerate() {
            let entry = R::in_table(piece, i, count);
            // SAFETY: the headroom holds a header and an entry for each segment, as `descriptors`
            // has checked, of a buffer that this queue owns; it begins with the buffer's data room,
            // at a cache line.
            unsafe { start.cast::<[u64; 2]>().add(i).write(entry) };
        }
        let len = (count * ENTRY) as u32;
        Some(Piece { address, len })
    }

    /// Number of ring descriptors of a frame.
    #[inline(always)]
    fn descriptors(&self, mbuf: &Mbuf) -> usize {
        let (pieces, headroom) = (mbuf.segment_count(), mbuf.headroom());
        // A table has at most as many entries as the ring has descriptors (section 2.7.5.3.1).
        let has_table = || {
            self.indirect && pieces <= self.ring.size() && headroom >= header::LEN + pieces * ENTRY
        };
        if pieces > 1 && has_table() {
            return 1;
        }
        pieces + usize::from(headroom < header::LEN)
    }

    /// A copy of the frame in buffers that the device can access.
    fn within_reach(&mut self, mbuf: Mbuf, cache: &mut PoolCache) -> Option<Mbuf> {
        let copied = mbuf.segments().all(|segment| {
            let from = NonNull::from(segment).cast();
            // SAFETY: the bytes are borrowed from the frame, which owns its buffers until it is
            // freed below: none of them was pushed, or is given out.
            unsafe {
                self.assembly
                    .append(from, segment.len(), || alloc(&self.pool, cache))
            }
        });
        cache.free(mbuf);
        if !copied {
            self.assembly.abandon(cache);
        }
        self.assembly.finish()
    }

    /// Frees and counts the frames that the device has used.
    fn complete(&mut self, cache: &mut PoolCache, sent: &mut Sent) {
        let mut done = Burst::<FREE>::new();
        let (mut frames, mut bytes) = (0, 0);
        let result = self.ring.complete(|mbuf| {
            frames += 1;
            bytes += mbuf.total_len() as u64;
            if let Err(mbuf) = done.push(mbuf) {
                cache.free_burst(&mut done);
                drop(done.push(mbuf));
            }
        });
        cache.free_burst(&mut done);
        self.count(frames, bytes, result, sent);
    }

    fn count(&mut self, frames: usize, bytes: u64, result: Result<(), Broken>, sent: &mut Sent) {
        self.in_flight -= frames;
        sent.count(frames as u64, bytes);
        if result == Err(Broken) {
            self.break_down(sent);
        }
    }

    /// Counts the frames in flight as errors, since their outcome will not be known.
    #[cold]
    fn break_down(&mut self, sent: &mut Sent) {
        self.broken = true;
        sent.count_errors(self.in_flight as u64);
        self.in_flight = 0;
    }

    fn finish(&mut self, clock: &impl Clock, patience: Ns, sent: &mut Sent) {
        let mut timeout = Timeout::new(clock, patience);
        while !self.broken {
            let (mut frames, mut bytes) = (0, 0);
            let result = self.ring.complete(|mbuf| {
                frames += 1;
                bytes += mbuf.total_len() as u64;
            });
            self.count(frames, bytes, result, sent);
            if self.in_flight == 0 || timeout.is_over(clock) {
                break;
            }
            // The device may need this core.
            std::thread::yield_now();
            clock.relax();
        }
        if !self.broken {
            self.break_down(sent);
        }
    }
}
