//! Device transmit side: fills the driver's receive buffers (virtio 1.2 section 5.1.6.4).

use std::iter;
use std::ptr::NonNull;
use std::sync::Arc;

use pollux_mempool::{BurstMut, Mbuf, PoolCache, prefetch};

use super::packed::PackedRing;
use super::split::SplitRing;
use super::{CHUNK, Chain, Direction, Pieces, Ring, Single, room_for_pieces};
use crate::drivers::dma::copy_frame;
use crate::drivers::virtio::areas::{QueueError, RingMemory};
use crate::drivers::virtio::{
    Broken, Doorbell, Either, PeerMemory, Piece, RingFeatures, either, header,
};
use crate::ledger::Sent;

/// The device's end of a receive queue: the driver receives the frames that are sent here.
pub(crate) struct DeviceTx(Either<Tx<SplitRing>, Tx<PackedRing>>);

impl DeviceTx {
    /// The queue from `base` on, as in vhost's `SET_VRING_BASE`. `memory` is the memory that the
    /// driver's descriptors may address.
    ///
    /// # Errors
    /// [`QueueError::Base`] for an index that the ring does not have.
    pub(crate) fn new(
        ring: &RingMemory,
        features: RingFeatures,
        memory: &Arc<PeerMemory>,
        base: u16,
        doorbell: Doorbell,
    ) -> Result<Self, QueueError> {
        Ok(if ring.is_packed() {
            Self(Either::Packed(Tx::new(
                ring, features, memory, base, doorbell,
            )?))
        } else {
            Self(Either::Split(Tx::new(
                ring, features, memory, base, doorbell,
            )?))
        })
    }

    /// As [`TxDriver::tx`](crate::driver::TxDriver::tx).
    #[inline]
    pub(crate) fn tx(
        &mut self,
        cache: &mut PoolCache,
        burst: &mut BurstMut<'_>,
        sent: &mut Sent,
    ) -> usize {
        either!(&mut self.0, tx => tx.tx(cache, burst, sent))
    }

    /// Whether the driver has corrupted the queue.
    pub(crate) fn is_broken(&self) -> bool {
        either!(&self.0, tx => tx.broken)
    }

    /// Current index of the queue, as for vhost's `GET_VRING_BASE`.
    pub(crate) fn base(&self) -> u16 {
        either!(&self.0, tx => tx.ring.base())
    }
}

struct Tx<R> {
    ring: R,
    memory: Arc<PeerMemory>,
    doorbell: Doorbell,
    mergeable: bool,
    broken: bool,
    pieces: Vec<Piece>,
    chains: Vec<Chain>,
}

/// Outcome of the next frame.
enum Outcome {
    Sent,
    /// The frame can never be sent.
    Refused,
    /// No buffers are available for it now.
    NoRoom,
}

impl<R: Ring> Tx<R> {
    fn new(
        ring: &RingMemory,
        features: RingFeatures,
        memory: &Arc<PeerMemory>,
        base: u16,
        doorbell: Doorbell,
    ) -> Result<Self, QueueError> {
        let size = usize::from(ring.size());
        Ok(Self {
            ring: R::new(ring, features, Direction::Write, base)?,
            memory: memory.clone(),
            doorbell,
            mergeable: features.mergeable,
            broken: false,
            pieces: room_for_pieces(ring.size()),
            chains: Vec::with_capacity(size),
        })
    }

    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        if self.broken {
            return 0;
        }
        let (mut taken, mut frames, mut bytes, mut refused) = (0, 0, 0, 0);
        while taken < burst.len() {
            let rest = &burst.as_slice()[taken..];
            let most = rest.len().min(CHUNK);
            let copied = self.copy_singles(&rest[..most], &mut bytes).unwrap_or(0);
            taken += copied;
            frames += copied;
            if copied == most {
                continue;
            }
            let mbuf = &rest[copied];
            match self.copy_next(mbuf) {
                Outcome::Sent => {
                    frames += 1;
                    bytes += mbuf.total_len() as u64;
                }
                Outcome::Refused => refused += 1,
                Outcome::NoRoom => break,
            }
            taken += 1;
        }
        if taken > 0 {
            self.publish();
            sent.count(frames as u64, bytes);
            sent.count_errors(refused);
            cache.free_front(burst, taken);
        }
        taken
    }

    fn publish(&mut self) {
        self.ring.publish();
        if self.doorbell.can_ring() {
            self.doorbell
                .after_publication(|| self.ring.driver_listens());
        }
    }

    /// Copies frames up to the first that is not in one buffer or does not fit one buffer of one
    /// segment.
    #[inline(always)]
    fn copy_singles(&mut self, frames: &[Mbuf], bytes: &mut u64) -> Result<usize, Broken> {
        let mut singles = [Single::default(); CHUNK];
        let listed = self.ring.singles(&mut singles[..frames.len()])?;
        let mut places = [NonNull::dangling(); CHUNK];
        let mut sound = 0;
        for (single, place) in singles[..listed].iter().zip(&mut places) {
            let Piece { address, len } = single.piece;
            let Some(at) = self.memory.at(address, len) else {
                break;
            };
            *place = at;
            // The driver's core has these lines cached: the header, and the frame behind it.
            prefetch::prefetch_write(at.as_ptr());
            prefetch::prefetch_write(at.as_ptr().wrapping_add(header::LEN));
            sound += 1;
        }
        let mut copied = 0;
        for ((single, &to), mbuf) in singles[..sound].iter().zip(&places).zip(frames) {
            let data = mbuf.data();
            let len = header::LEN + data.len();
            let is_whole = mbuf.segment_count() == 1 && !data.is_empty();
            if !is_whole || len > single.piece.len as usize {
                break;
            }
            let header = header::received(1);
            // SAFETY: header and frame fit the segment, which is in the driver's memory, as `at`
            // has checked; the frame belongs to this side.
            unsafe {
                to.cast().write_unaligned(header);
                let data = NonNull::from(data).cast();
                copy_frame(data, to.add(header::LEN), len - header::LEN);
            }
            self.ring.give(single.id, 1, len as u32);
            *bytes += (len - header::LEN) as u64;
            copied += 1;
        }
        self.ring.take(copied);
        Ok(copied)
    }

    /// Sends a frame in the next buffers of any kind.
    #[cold]
    fn copy_next(&mut self, mbuf: &Mbuf) -> Outcome {
        if mbuf.is_empty() {
            return Outcome::Refused;
        }
        let needed = header::LEN + mbuf.total_len();
        self.pieces.clear();
        self.chains.clear();
        let mark = self.ring.mark();
        // In a type that no sum overflows: each of several forged chains may have as many
        // descriptors as the ring, and may share them.
        let (mut room, mut descriptors) = (0, 0);
        loop {
            if descriptors >= self.ring.size() {
                // The frame does not fit all available buffers together: it never will.
                self.ring.rewind(mark);
                return Outcome::Refused;
            }
            let first = self.pieces.len();
            let mut pieces = Pieces {
                list: &mut self.pieces,
                memory: &self.memory,
                direction: Direction::Write,
            };
            let chain = match self.ring.take_chain(&mut pieces) {
                Ok(Some(chain)) => chain,
                Ok(None) => {
                    // Not enough buffers for it now.
                    self.ring.rewind(mark);
                    return Outcome::NoRoom;
                }
                Err(Broken) => {
                    self.broken = true;
                    return Outcome::Refused;
                }
            };
            let memory = &self.memory;
            let pieces = &self.pieces[first..];
            let in_memory = |piece: &Piece| memory.at(piece.address, piece.len).is_some();
            let sound = chain.sound && pieces.iter().all(in_memory);
            self.chains.push(chain);
            descriptors += usize::from(chain.descriptors);
            if !sound {
                // The buffer and those before it are returned empty, and the frame is lost.
                for chain in &self.chains {
                    self.ring.give(chain.id, chain.descriptors, 0);
                }
                return Outcome::Refused;
            }
            room += pieces.iter().map(|piece| piece.len as usize).sum::<usize>();
            if room >= needed {
                break;
            }
            if !self.mergeable {
                // One frame, one buffer (section 5.1.6.3.1). The buffer stays available for a
                // shorter frame.
                self.ring.rewind(mark);
                return Outcome::Refused;
            }
        }
        self.fill(mbuf);
        Outcome::Sent
    }

    /// Writes header and frame into the taken buffers, which are long enough.
    fn fill(&mut self, mbuf: &Mbuf) {
        let header = header::received(self.chains.len() as u16);
        let mut sources = iter::once(header.as_slice()).chain(mbuf.segments());
        let mut source: &[u8] = &[];
        let mut pieces = self.pieces.iter();
        for chain in &self.chains {
            let mut written = 0;
            for &Piece { address, len } in pieces.by_ref().take(chain.pieces) {
                let Some(at) = self.memory.at(address, len) else {
                    continue;
                };
                let mut filled = 0;
                while filled < len as usize {
                    if source.is_empty() {
                        let Some(next) = sources.next() else { break };
                        source = next;
                        continue;
                    }
                    let (now, rest) = source.split_at(source.len().min(len as usize - filled));
                    // SAFETY: filled + now.len() <= len, and `at` has checked that `len` bytes are
                    // in the driver's memory; the source belongs to this side.
                    unsafe { copy_frame(NonNull::from(now).cast(), at.add(filled), now.len()) };
                    filled += now.len();
                    source = rest;
                }
                written += filled as u32;
            }
            self.ring.give(chain.id, chain.descriptors, written);
        }
    }
}
