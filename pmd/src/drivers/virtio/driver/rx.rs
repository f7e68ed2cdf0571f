//! Receives frames into buffers of the pool, without a copy: virtio 1.2 section 5.1.6.3.

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
use crate::drivers::virtio::header::Told;
use crate::drivers::virtio::split::WRITE;
use crate::drivers::virtio::{
    Broken, Doorbell, Either, Notify, Piece, RingFeatures, either, header,
};
use crate::ledger::{Cause, Tally};
use crate::net::finish_checksum_at;

/// Buffers are posted by so many: one look at the pool and one publication for all of them.
const REFILL: usize = 32;

/// Buffers are posted once so many are missing from a ring of `size`: of a small one a quarter, as
/// a device waits for the buffers of a long frame, and meanwhile uses none.
fn refill_at(size: usize) -> usize {
    REFILL.min(size / 4).max(1)
}

/// Bytes of a frame and its header that a ring of `size` merged buffers of `room` bytes always has
/// room for, if the pool has buffers.
pub(crate) fn always_posted(size: usize, room: usize) -> usize {
    (size + 1 - refill_at(size)) * room
}

/// The driver's receive queue.
pub(crate) struct DriverRx<N = Infallible>(Either<Rx<SplitRing, N>, Rx<PackedRing, N>>);

impl<N: Notify> DriverRx<N> {
    /// A queue in fresh memory, filled with buffers of `pool`: the device may use them from when
    /// it is told of the queue.
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

    /// Has the device tell when it has used buffers, by an interrupt, or no longer. What it uses
    /// from here on is told of; what it has used before is seen by the next poll.
    pub(crate) fn set_listening(&mut self, on: bool) {
        either!(&self.0, rx => rx.ring.set_listening(on));
        // The store must not pass the loads of that poll (sections 2.7.7.1 and 2.8.21.3): either
        // the device sees that we listen, after the fence of its own, or we see what it has used.
        fence(SeqCst);
    }

    /// Buffers that are posted, and that the device may therefore use.
    pub(crate) fn buffers(&self) -> usize {
        either!(&self.0, rx => rx.ring.buffers())
    }

    /// Whether the device has made the queue meaningless.
    pub(crate) fn is_broken(&self) -> bool {
        either!(&self.0, rx => rx.broken)
    }

    /// Takes the buffers that are posted, when the queue ends.
    pub(crate) fn take_posted(&mut self) -> impl Iterator<Item = Mbuf> + use<N> {
        buffers(either!(&mut self.0, rx => rx.ring.take_posted()))
    }

    /// The last call: counts what has arrived as from the wire and aborted.
    pub(crate) fn finish(&mut self, tally: &mut Tally) {
        either!(&mut self.0, rx => rx.finish(tally));
    }
}

struct Rx<R, N> {
    ring: R,
    addresses: DeviceAddresses,
    pool: Mempool,
    doorbell: Doorbell<N>,
    /// Bytes of the header that lie in the headroom: all, or none if there is too little.
    in_front: usize,
    /// What is posted of each buffer, header included: the same for all of a pool, and zero before
    /// the first.
    posted: u32,
    mergeable: bool,
    /// Headers tell of checksums.
    told: bool,
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
            told: features.guest_checksum,
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
        // One round of the ring at most: a flood of frames that are dropped ends as well.
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

    /// Makes a frame of a buffer that came back, and of those behind it if they belong to it.
    #[inline(always)]
    fn receive(&mut self, mbuf: Mbuf, len: u32, cache: &mut PoolCache) -> Result<Mbuf, Cause> {
        let told = self.told(&mbuf);
        if told != Told::Nothing {
            return self.receive_told(mbuf, len, told, cache);
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

    /// A frame whose header says something of its checksum. One that is left to us is finished here:
    /// then the frame can be sent on by any port, and costs no more than to verify it would.
    #[cold]
    fn receive_told(
        &mut self,
        mbuf: Mbuf,
        len: u32,
        told: Told,
        cache: &mut PoolCache,
    ) -> Result<Mbuf, Cause> {
        let mut frame = self.receive_plain(mbuf, len, cache)?;
        let sound = match told {
            Told::Nothing | Told::Verified => true,
            Told::Left { start, field } => finish_checksum_at(&mut frame, start.into(), field),
            Told::Nonsense => false,
        };
        if !sound {
            cache.free(frame);
            return Err(Cause::DeviceError);
        }
        frame.add_flags(MbufFlags::CHECKSUM_TRUSTED);
        Ok(frame)
    }

    /// What the header of the frame that begins with this buffer says of its checksum.
    #[inline(always)]
    fn told(&self, first: &Mbuf) -> Told {
        if !self.told {
            return Told::Nothing;
        }
        // SAFETY: the buffer was posted with room for a header at its start.
        unsafe { header::told(self.start(first)) }
    }

    /// In how many buffers the frame lies that begins with this one, as the device says.
    #[inline(always)]
    fn buffers(&self, first: &Mbuf) -> u16 {
        if !self.mergeable {
            return 1;
        }
        // SAFETY: the buffer was posted with room for a header at its start.
        unsafe { header::buffers(self.start(first)) }
    }

    /// Makes the bytes behind the header the data of the buffer. The header is there.
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

    /// A frame in several buffers, or one that cannot be.
    #[cold]
    fn receive_several(
        &mut self,
        mut mbuf: Mbuf,
        len: u32,
        buffers: u16,
        cache: &mut PoolCache,
    ) -> Result<Mbuf, Cause> {
        // All of its buffers come back together (section 5.1.6.4.1); they are taken even if one of
        // them makes no sense, so that the next frame begins where it should.
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

    /// Where a fresh buffer is posted from: the header comes first, and in the headroom if it has
    /// room there, so that frames begin where they begin with other drivers.
    #[inline(always)]
    fn start(&self, mbuf: &Mbuf) -> NonNull<u8> {
        // SAFETY: `in_front` is 0, or the header's length where a fresh buffer of this pool had
        // that much headroom (`refill`); a pool gives each buffer out with the same headroom, its
        // own, so that all of them have `in_front` bytes in front of their data, in the same
        // allocation; data is never at address zero.
        unsafe { NonNull::new_unchecked(mbuf.data_ptr().cast_mut().sub(self.in_front)) }
    }

    /// Posts as many buffers as are free and can be had.
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
                    // In a region that the device was not given: it goes back.
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
        // Buffers of the frame at hand that are still to come; no more are taken than there are.
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
