//! Device receive side: takes frames out of the driver's transmit queue (virtio 1.2 section
//! 5.1.6.2).

use std::ptr::NonNull;
use std::sync::Arc;

use pollux_mempool::{BurstMut, Mbuf, PoolCache, prefetch};

use super::packed::PackedRing;
use super::split::SplitRing;
use super::{CHUNK, Direction, Pieces, Ring, Single, room_for_pieces};
use crate::clock::{Clock, TscClock};
use crate::driver::Origin;
use crate::drivers::dma::{Assembly, copy_frame};
use crate::drivers::virtio::areas::{QueueError, RingMemory};
use crate::drivers::virtio::{
    Broken, Doorbell, Either, PeerMemory, Piece, RingFeatures, either, header,
};
use crate::ledger::{Cause, Tally};

/// The device's end of a transmit queue: receives the driver's frames.
pub(crate) struct DeviceRx(Either<Rx<SplitRing>, Rx<PackedRing>>);

impl DeviceRx {
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
            Self(Either::Packed(Rx::new(
                ring, features, memory, base, doorbell,
            )?))
        } else {
            Self(Either::Split(Rx::new(
                ring, features, memory, base, doorbell,
            )?))
        })
    }

    /// As [`RxDriver::rx`](crate::driver::RxDriver::rx). Frames for which the pool has no buffer
    /// stay with the driver.
    #[inline]
    pub(crate) fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        either!(&mut self.0, rx => rx.rx(cache, out, origin, tally))
    }

    /// Whether the driver has corrupted the queue.
    pub(crate) fn is_broken(&self) -> bool {
        either!(&self.0, rx => rx.broken)
    }

    /// Current index of the queue, as for vhost's `GET_VRING_BASE`.
    pub(crate) fn base(&self) -> u16 {
        either!(&self.0, rx => rx.ring.base())
    }
}

struct Rx<R> {
    ring: R,
    memory: Arc<PeerMemory>,
    doorbell: Doorbell,
    broken: bool,
    pieces: Vec<Piece>,
    assembly: Assembly,
    clock: TscClock,
}

/// Outcome of the next buffer.
enum Outcome {
    Frame(Mbuf),
    Dropped(Cause),
    /// No buffer is available, or none of the pool for the frame.
    Nothing,
}

impl<R: Ring> Rx<R> {
    fn new(
        ring: &RingMemory,
        features: RingFeatures,
        memory: &Arc<PeerMemory>,
        base: u16,
        doorbell: Doorbell,
    ) -> Result<Self, QueueError> {
        Ok(Self {
            ring: R::new(ring, features, Direction::Read, base)?,
            memory: memory.clone(),
            doorbell,
            broken: false,
            pieces: room_for_pieces(ring.size()),
            assembly: Assembly::new(),
            clock: TscClock::get(),
        })
    }

    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        if self.broken {
            return 0;
        }
        let before = out.len();
        let mut frames = 0;
        // One pass over the ring at most, so that a flood of dropped frames also ends.
        while out.free() > 0 && frames < self.ring.size() {
            let copied = match self.copy_singles(cache, out) {
                Ok((copied, true)) => {
                    frames += copied;
                    continue;
                }
                Ok((copied, false)) => copied,
                Err(Broken) => 0,
            };
            frames += copied;
            match self.copy_next(cache) {
                Outcome::Frame(mbuf) => drop(out.push(mbuf)),
                Outcome::Dropped(cause) => tally.count_dropped(cause, 1),
                Outcome::Nothing => break,
            }
            frames += 1;
            if self.broken {
                break;
            }
        }
        if frames > 0 {
            self.publish();
            let now = self.clock.now();
            let mut bytes = 0;
            for mbuf in &mut out.as_mut_slice()[before..] {
                bytes += mbuf.total_len() as u64;
                origin.stamp(mbuf, now);
            }
            tally.count_from_wire(frames as u64, bytes);
        }
        out.len() - before
    }

    fn publish(&mut self) {
        self.ring.publish();
        if self.doorbell.can_ring() {
            self.doorbell
                .after_publication(|| self.ring.driver_listens());
        }
    }

    /// Copies the next frames up to the first that is not in one segment or does not fit one
    /// buffer. Returns their number, and whether the next frame may be such a frame too.
    #[inline(always)]
    fn copy_singles(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
    ) -> Result<(usize, bool), Broken> {
        let mut singles = [Single::default(); CHUNK];
        let most = out.free().min(CHUNK);
        let listed = self.ring.singles(&mut singles[..most])?;
        let mut places = [NonNull::dangling(); CHUNK];
        let mut sound = 0;
        for (single, place) in singles[..listed].iter().zip(&mut places) {
            let Piece { address, len } = single.piece;
            let Some(at) = self.memory.at(address, len) else {
                break;
            };
            if len as usize <= header::LEN {
                break;
            }
            // SAFETY: the segment is longer than a header.
            *place = unsafe { at.add(header::LEN) };
            prefetch::prefetch_read(place.as_ptr());
            sound += 1;
        }
        let first = out.len();
        let got = cache.alloc_into(out, sound);
        let mut copied = 0;
        let buffers = out.as_mut_slice()[first..].iter_mut();
        for ((single, &from), mbuf) in singles[..got].iter().zip(&places).zip(buffers) {
            let len = single.piece.len as usize - header::LEN;
            let Some(to) = mbuf.append(len) else { break };
            // SAFETY: the frame's bytes lie in the driver's memory, as `at` has checked; the buffer
            // belongs to this side and is as long.
            unsafe { copy_frame(from, NonNull::from(to).cast(), len) };
            self.ring.give(single.id, 1, 0);
            copied += 1;
        }
        self.ring.take(copied);
        for spare in (copied..got).map_while(|_| out.pop()) {
            cache.free(spare);
        }
        Ok((copied, copied == most))
    }

    /// Takes the next frame of any kind.
    #[cold]
    fn copy_next(&mut self, cache: &mut PoolCache) -> Outcome {
        self.pieces.clear();
        let mark = self.ring.mark();
        let mut pieces = Pieces {
            list: &mut self.pieces,
            memory: &self.memory,
            direction: Direction::Read,
        };
        let chain = match self.ring.take_chain(&mut pieces) {
            Ok(None) => return Outcome::Nothing,
            Ok(Some(chain)) => chain,
            Err(Broken) => {
                self.broken = true;
                return Outcome::Dropped(Cause::DeviceError);
            }
        };
        let (mut skip, mut total) = (header::LEN, 0);
        let mut sound = chain.sound;
        for &Piece { address, len } in &self.pieces {
            sound &= self.memory.at(address, len).is_some();
            total += len as usize;
        }
        let cause = if !sound || total <= header::LEN {
            Some(Cause::DeviceError)
        } else if total - header::LEN > cache.pool().longest_frame() {
            Some(Cause::Oversize)
        } else {
            None
        };
        if let Some(cause) = cause {
            self.ring.give(chain.id, chain.descriptors, 0);
            return Outcome::Dropped(cause);
        }
        for &Piece { address, len } in &self.pieces {
            let Some(at) = self.memory.at(address, len) else {
                break;
            };
            let skipped = skip.min(len as usize);
            skip -= skipped;
            // SAFETY: `at` has checked that `len` bytes are in the driver's memory, to which no
            // references exist (`PeerRegion::new`): no buffer of a pool of this process lies there.
            let copied = unsafe {
                let from = at.add(skipped);
                self.assembly
                    .append(from, len as usize - skipped, || cache.alloc())
            };
            if !copied {
                // No buffers now. The frame stays with the driver.
                self.assembly.abandon(cache);
                self.ring.rewind(mark);
                return Outcome::Nothing;
            }
        }
        self.ring.give(chain.id, chain.descriptors, 0);
        match self.assembly.finish() {
            Some(mbuf) => Outcome::Frame(mbuf),
            None => Outcome::Dropped(Cause::DeviceError),
        }
    }
}
