//! Driver receive side: receives frames into buffers of the pool, without a copy (virtio 1.2
//! section 5.1.6.3).

use std::convert::Infallible;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;

use pollux_mempool::{Burst, BurstMut, Mbuf, MbufFlags, Mempool, PoolCache};

use super::packed::PackedRing;
use super::split::SplitRing;
use super::{Ring, buffers};
use crate::clock::{Clock, TscClock};
use crate::driver::Origin;
use crate::drivers::dma::{Assembly, DeviceAddresses};
use crate::drivers::virtio::areas::{QueueMemory, RingMemory};
use crate::drivers::virtio::header::ChecksumInfo;
use crate::drivers::virtio::split::WRITE;
use crate::drivers::virtio::{
    Broken, Doorbell, Either, Notify, Piece, RingFeatures, either, header,
};
use crate::ledger::{Cause, Tally};
use crate::net::finish_checksum_at;

/// Batch size for posting: one access to the pool and one publication for all buffers of a batch.
const REFILL: usize = 32;

/// Number of missing buffers from which on buffers are posted to a ring of `size`: for a small ring
/// a quarter, since a device waits for the buffers of a long frame, and uses none meanwhile.
fn refill_at(size: usize) -> usize {
    REFILL.min(size / 4).max(1)
}

/// Bytes of a frame and its header for which a ring of `size` merged buffers of `room` bytes always
/// has buffers, if the pool has some.
pub(crate) fn always_posted(size: usize, room: usize) -> usize {
    (size + 1 - refill_at(size)) * room
}

/// The driver's receive queue.
pub(crate) struct DriverRx<N = Infallible>(Either<Rx<SplitRing, N>, Rx<PackedRing, N>>);

impl<N: Notify> DriverRx<N> {
    /// A queue in fresh memory, filled with buffers of `pool`: the device may use them as soon as
    /// the queue is enabled.
    pub(crate) fn new(
        memory: &QueueMemory,
        features: RingFeatures,
        addresses: DeviceAddresses,
        pool: &Mempool,
        doorbell: Doorbell<N>,
    ) -> Self {
        let ring = memory.ring();
        if ring.is_packed() {
            Self(Either::Packed(Rx::new(
                ring, features, addresses, pool, doorbell,
            )))
        } else {
            Self(Either::Split(Rx::new(
                ring, features, addresses, pool, doorbell,
            )))
        }
    }

    /// As [`RxDriver::rx`](crate::driver::RxDriver::rx).
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

    /// Enables or disables interrupts of the device for used buffers. The device signals buffers
    /// that it uses from here on; the next poll sees those that it has used before.
    pub(crate) fn set_listening(&mut self, on: bool) {
        either!(&self.0, rx => rx.ring.set_listening(on));
        // The store must not pass the loads of that poll (sections 2.7.7.1 and 2.8.21.3): either
        // the device sees that notifications are enabled, after the fence of its own, or the poll
        // sees its used buffers.
        fence(SeqCst);
    }

    /// Number of posted buffers, which the device may therefore use.
    pub(crate) fn buffers(&self) -> usize {
        either!(&self.0, rx => rx.ring.buffers())
    }

    /// Whether the device has corrupted the queue.
    pub(crate) fn is_broken(&self) -> bool {
        either!(&self.0, rx => rx.broken)
    }

    /// Takes the posted buffers, when the queue ends.
    pub(crate) fn take_posted(&mut self) -> impl Iterator<Item = Mbuf> + use<N> {
        buffers(either!(&mut self.0, rx => rx.ring.take_posted()))
    }

    /// The last call: counts frames that have arrived as from the wire and aborted.
    pub(crate) fn finish(&mut self, tally: &mut Tally) {
        either!(&mut self.0, rx => rx.finish(tally));
    }
}

struct Rx<R, N> {
    ring: R,
    addresses: DeviceAddresses,
    pool: Mempool,
    doorbell: Doorbell<N>,
    /// Bytes of the header that lie in the headroom: all, or none if the headroom is too small.
    in_front: usize,
    /// Posted length of each buffer, header included: the same for all of a pool, and zero before
    /// the first.
    posted: u32,
    mergeable: bool,
    /// Headers carry checksum offload info.
    has_checksum_info: bool,
    broken: bool,
    assembly: Assembly,
    clock: TscClock,
}

impl<R: Ring, N: Notify> Rx<R, N> {
    fn new(
        memory: &RingMemory,
        features: RingFeatures,
        addresses: DeviceAddresses,
        pool: &Mempool,
        doorbell: Doorbell<N>,
    ) -> Self {
        let mut rx = Self {
            ring: R::new(memory, features.in_order),
            addresses,
            pool: pool.clone(),
            doorbell,
            in_front: 0,
            posted: 0,
            mergeable: features.mergeable,
            has_checksum_info: features.guest_checksum,
            broken: false,
            assembly: Assembly::new(),
            clock: TscClock::get(),
        };
        rx.refill(|burst, n| pool.alloc_burst(burst, n));
        rx
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
        let (mut frames, mut bytes) = (0, 0);
        // One pass over the ring at most, so that a flood of dropped frames also ends.
        for _ in 0..self.ring.size() {
            if out.free() == 0 {
                break;
            }
            let received = match self.ring.pop() {
                Ok(None) => break,
                Ok(Some((mbuf, len))) => self.receive(mbuf, len, cache),
                Err(Broken) => Err(self.break_down()),
            };
            frames += 1;
            match received {
                Ok(mbuf) => {
                    bytes += mbuf.total_len() as u64;
                    drop(out.push(mbuf));
                }
                Err(cause) => tally.count_dropped(cause, 1),
            }
            if self.broken {
                break;
            }
        }
        if frames > 0 {
            tally.count_from_wire(frames, bytes);
            let now = self.clock.now();
            for mbuf in &mut out.as_mut_slice()[before..] {
                origin.stamp(mbuf, now);
            }
        }
        if self.ring.free() >= refill_at(self.ring.size()) && !self.broken {
            if cache.pool().id() == self.pool.id() {
                self.refill(|burst, n| cache.alloc_burst(burst, n));
            } else {
                let pool = self.pool.clone();
                self.refill(|burst, n| pool.alloc_burst(burst, n));
            }
        }
        out.len() - before
    }

    /// Makes a frame of a used buffer, and of those behind it if they belong to it.
    #[inline(always)]
    fn receive(&mut self, mbuf: Mbuf, len: u32, cache: &mut PoolCache) -> Result<Mbuf, Cause> {
        let info = self.told(&mbuf);
        if info != ChecksumInfo::None {
            return self.receive_with_info(mbuf, len, info, cache);
        }
        self.receive_plain(mbuf, len, cache)
    }

    #[inline(always)]
    fn receive_plain(
        &mut self,
        mut mbuf: Mbuf,
        len: u32,
        cache: &mut PoolCache,
    ) -> Result<Mbuf, Cause> {
        let buffers = self.buffers(&mbuf);
        let is_whole = (header::LEN as u32 + 1..=self.posted).contains(&len);
        if !is_whole || buffers != 1 {
            return self.receive_several(mbuf, len, buffers, cache);
        }
        self.fill(&mut mbuf, len as usize);
        Ok(mbuf)
    }

    /// Receives a frame with checksum offload info. A partial checksum is completed here: any port
    /// can then forward the frame, and the cost is that of a verification.
    #[cold]
    fn receive_with_info(
        &mut self,
        mbuf: Mbuf,
        len: u32,
        info: ChecksumInfo,
        cache: &mut PoolCache,
    ) -> Result<Mbuf, Cause> {
        let mut frame = self.receive_plain(mbuf, len, cache)?;
        let sound = match info {
            ChecksumInfo::None | ChecksumInfo::Verified => true,
            ChecksumInfo::Partial { start, field } => {
                finish_checksum_at(&mut frame, start.into(), field)
            }
            ChecksumInfo::Invalid => false,
        };
        if !sound {
            cache.free(frame);
            return Err(Cause::DeviceError);
        }
        frame.add_flags(MbufFlags::CHECKSUM_TRUSTED);
        Ok(frame)
    }

    /// The checksum offload info in the header of the frame that starts with this buffer.
    #[inline(always)]
    fn told(&self, first: &Mbuf) -> ChecksumInfo {
        if !self.has_checksum_info {
            return ChecksumInfo::None;
        }
        // SAFETY: the buffer was posted with room for a header at its start.
        unsafe { header::told(self.start(first)) }
    }

    /// The number of buffers of the frame that starts with this one, as the device reports it.
    #[inline(always)]
    fn buffers(&self, first: &Mbuf) -> u16 {
        if !self.mergeable {
            return 1;
        }
        // SAFETY: the buffer was posted with room for a header at its start.
        unsafe { header::buffers(self.start(first)) }
    }

    /// Makes the bytes behind the header, which is present, the data of the buffer.
    #[inline(always)]
    fn fill(&self, mbuf: &mut Mbuf, len: usize) {
        let data = if self.in_front == 0 {
            let whole = mbuf.append(len).is_some();
            whole & mbuf.advance(header::LEN)
        } else {
            mbuf.append(len - header::LEN).is_some()
        };
        debug_assert!(data, "no more than was posted");
    }

    /// A frame in several buffers, or an invalid one.
    #[cold]
    fn receive_several(
        &mut self,
        mut mbuf: Mbuf,
        len: u32,
        buffers: u16,
        cache: &mut PoolCache,
    ) -> Result<Mbuf, Cause> {
        // All of its buffers are used together (section 5.1.6.4.1). All are taken even if one of
        // them is invalid, so that the next frame starts at the right buffer.
        let mut sound = buffers > 0 && (header::LEN as u32..=self.posted).contains(&len);
        if sound {
            self.fill(&mut mbuf, len as usize);
        }
        sound &= self.assembly.push(mbuf).is_ok();
        for _ in 1..buffers {
            match self.ring.pop() {
                Ok(Some((mut next, len))) => {
                    sound &= len <= self.posted && self.append_rest(&mut next, len as usize);
                    sound &= self.assembly.push(next).is_ok();
                }
                Ok(None) => {
                    sound = false;
                    break;
                }
                Err(Broken) => {
                    self.break_down();
                    sound = false;
                    break;
                }
            }
        }
        if !sound {
            self.assembly.abandon(cache);
            return Err(Cause::DeviceError);
        }
        match self.assembly.finish() {
            Some(frame) if !frame.is_empty() => Ok(frame),
            _ => Err(Cause::DeviceError),
        }
    }

    /// Makes a later buffer's bytes its data: it has no header, so they begin at its start.
    fn append_rest(&self, mbuf: &mut Mbuf, len: usize) -> bool {
        let mut sound = mbuf.prepend(self.in_front).is_some();
        if let Some(more) = len.checked_sub(self.in_front) {
            sound &= mbuf.append(more).is_some();
        } else {
            mbuf.truncate(len);
        }
        sound
    }

    /// Address at which a fresh buffer is posted: the header comes first, in the headroom if it
    /// fits there, so that the frame starts at the same offset as with other drivers.
    #[inline(always)]
    fn start(&self, mbuf: &Mbuf) -> NonNull<u8> {
        // SAFETY: `in_front` is 0, or the header's length if a fresh buffer of this pool had that
        // much headroom (`refill`); a pool gives out all buffers with the same headroom, so all of
        // them have `in_front` bytes in front of their data, in the same allocation; data is never
        // at address zero.
        unsafe { NonNull::new_unchecked(mbuf.data_ptr().cast_mut().sub(self.in_front)) }
    }

    /// Posts as many buffers as the ring has descriptors for and the pool can give.
    fn refill(&mut self, mut alloc: impl FnMut(&mut Burst<REFILL>, usize) -> usize) {
        let mut posted = 0;
        let mut fresh = Burst::<REFILL>::new();
        while self.ring.free() > 0 {
            let n = self.ring.free().min(REFILL);
            if alloc(&mut fresh, n) == 0 {
                break;
            }
            if self.posted == 0 {
                if fresh[0].headroom() >= header::LEN {
                    self.in_front = header::LEN;
                }
                self.posted = (self.in_front + fresh[0].tailroom()) as u32;
            }
            let mut unreachable = 0;
            fresh.take_all(|mbuf| {
                let start = self.start(&mbuf);
                let Some(address) = self.addresses.of(start, self.posted as usize) else {
                    // In a region that is not mapped for the device: the buffer is returned.
                    unreachable += 1;
                    return;
                };
                let piece = Piece {
                    address,
                    len: self.posted,
                };
                self.ring.post(mbuf, piece, WRITE);
                posted += 1;
            });
            if unreachable > 0 {
                break;
            }
        }
        if posted > 0 {
            self.ring.publish();
            if self.doorbell.can_ring() {
                self.doorbell
                    .after_publication(|| self.ring.device_listens());
            }
        }
    }

    #[cold]
    fn break_down(&mut self) -> Cause {
        self.broken = true;
        Cause::DeviceError
    }

    fn finish(&mut self, tally: &mut Tally) {
        let (mut frames, mut bytes) = (0, 0);
        // Remaining buffers of the current frame; no more are taken than there are.
        let mut rest = 0;
        while !self.broken
            && let Ok(Some((mbuf, len))) = self.ring.pop()
        {
            let mut len = u64::from(len.min(self.posted));
            if rest == 0 {
                rest = self.buffers(&mbuf).max(1);
                frames += 1;
                len = len.saturating_sub(header::LEN as u64);
            }
            rest -= 1;
            bytes += len;
        }
        tally.count_from_wire(frames, bytes);
        tally.count_dropped(Cause::Aborted, frames);
    }
}
