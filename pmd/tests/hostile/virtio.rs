//! Queues with a hostile other side, which the caller plays: for tests and fuzzing.

use std::ptr::NonNull;
use std::sync::Arc;

use pollux_mempool::region::{MemoryRegion, PageSize};
use pollux_mempool::{BurstMut, IovaMap, Mempool, PoolCache};

use super::areas::{Areas, RingMemory, Shape};
use super::packed::{Packed, Position};
use super::split::Split;
use super::{
    DeviceRx, DeviceTx, Doorbell, DriverRx, DriverTx, LINGER, PeerMemory, PeerRegion, Piece,
    QueueMemory, RingFeatures, header,
};
use crate::clock::TscClock;
use crate::driver::Origin;
use crate::drivers::dma::DeviceAddresses;
use crate::event::RegionOptions;
use crate::ledger::{Sent, Tally};

/// The negotiated features: bit 0 packed, bit 1 in order, bit 2 mergeable, bit 3 tables, bit 4
/// checksums.
fn features(bits: u8) -> RingFeatures {
    RingFeatures {
        packed: bits & 1 != 0,
        in_order: bits & 2 != 0,
        mergeable: bits & 4 != 0,
        indirect: bits & 8 != 0,
        checksum: bits & 16 != 0,
        guest_checksum: bits & 16 != 0,
    }
}

/// A valid ring size, of 1 to 64.
fn size(features: RingFeatures, asked: u8) -> u16 {
    let size = u16::from(asked % 64) + 1;
    if features.packed {
        size
    } else {
        size.next_power_of_two()
    }
}

/// Writes bytes at `offset % len` of memory that two sides share, one by one, up to its end.
/// # Safety
/// `at` is valid for writes of `len` bytes, and no references to them exist.
unsafe fn scribble(at: NonNull<u8>, len: usize, offset: usize, bytes: &[u8]) {
    for (i, &byte) in bytes.iter().enumerate() {
        // SAFETY: inside, by the remainder.
        unsafe { at.add((offset % len + i) % len).write_volatile(byte) };
    }
}

/// The other side's half of a ring: writes arbitrary values at the positions of a correct one.
enum Hand {
    Split { ring: Split, index: u32 },
    Packed { ring: Packed, at: Position },
}

impl Hand {
    fn new(memory: &RingMemory) -> Self {
        if memory.is_packed() {
            Self::Packed {
                ring: Packed::new(memory),
                at: Position::START,
            }
        } else {
            Self::Split {
                ring: Split::new(memory),
                index: 0,
            }
        }
    }

    /// Marks a buffer as used, and advances by `skip` descriptors in a packed ring.
    fn give(&mut self, id: u16, len: u32, skip: u16) {
        match self {
            Self::Split { ring, index } => {
                ring.write_used(*index, id, len);
                *index = index.wrapping_add(1);
                ring.publish_used(*index);
            }
            Self::Packed { ring, at } => {
                ring.publish(*at, Packed::used_word(*at, len, id));
                *at = ring.after(*at, skip.min(ring.size()));
            }
        }
    }

    /// Makes a descriptor available. In a split ring it is the one with the number `id`, and the
    /// head of a chain if `is_head`.
    fn offer(&mut self, piece: Piece, flags: u16, id: u16, next: u16, is_head: bool) {
        match self {
            Self::Split { ring, index } => {
                ring.write(id, piece, flags, next);
                if is_head {
                    ring.available(*index)
                        .store(id, std::sync::atomic::Ordering::Relaxed);
                    *index = index.wrapping_add(1);
                    ring.publish_available(*index);
                }
            }
            Self::Packed { ring, at } => {
                ring.write_address(*at, piece.address);
                ring.publish(*at, Packed::available_word(*at, piece.len, id, flags));
                *at = ring.after(*at, 1);
            }
        }
    }

    /// Sets the index of a split ring.
    fn set_index(&mut self, to: u16, used: bool) {
        if let Self::Split { ring, index } = self {
            *index = to.into();
            if used {
                ring.publish_used(*index);
            } else {
                ring.publish_available(*index);
            }
        }
    }
}

/// A driver with a receive and a transmit queue (numbers 0 and 1), and no device.
pub struct HostileDevice {
    rx: DriverRx,
    tx: DriverTx,
    queues: Vec<QueueMemory>,
    hands: [Hand; 2],
    shapes: Areas<Shape>,
    pool: Mempool,
}

impl HostileDevice {
    /// Queues of up to 64 descriptors, with the features of the bits of `features`.
    ///
    /// # Panics
    /// Without a few pages of memory.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test's tool")]
    pub fn new(features_bits: u8, size_asked: u8, pool: &Mempool) -> Self {
        let features = features(features_bits);
        let size = size(features, size_asked);
        let queues = QueueMemory::several(2, size, features.packed, &RegionOptions::default())
            .expect("memory");
        let mut addresses = DeviceAddresses::new();
        for region in [pool.region(), queues[0].region()] {
            addresses.add(region, &IovaMap::identity(region));
        }
        let none = || Doorbell::None;
        Self {
            rx: DriverRx::new(&queues[0], features, addresses.clone(), pool, none()),
            tx: DriverTx::new(&queues[1], features, addresses, pool, none()),
            hands: [0, 1].map(|queue: usize| Hand::new(queues[queue].ring())),
            queues,
            shapes: Areas::of(size, features.packed).expect("a size that there is"),
            pool: pool.clone(),
        }
    }

    /// Writes any bytes into an area (0 to 2) of a queue.
    pub fn scribble(&mut self, queue: u8, area: u8, offset: u16, bytes: &[u8]) {
        let at = self.queues[usize::from(queue % 2)].ring().at();
        let (at, shape) = match area % 3 {
            0 => (at.descriptors, self.shapes.descriptors),
            1 => (at.driver, self.shapes.driver),
            _ => (at.device, self.shapes.device),
        };
        // SAFETY: the areas are as long as their shapes specify, and accessed by atomics alone.
        unsafe { scribble(at, shape.len, offset.into(), bytes) };
    }

    /// Writes the header of the receive buffer that is posted at `slot`, if it lies in the pool.
    pub fn write_header(&mut self, slot: u16, buffers: u16) {
        let ring = self.queues[0].ring();
        let address = if ring.is_packed() {
            let ring = Packed::new(ring);
            ring.position(slot % ring.size())
                .map(|at| ring.rest(at).piece.address)
        } else {
            Some(Split::new(ring).read(slot).piece.address)
        };
        let region = self.pool.region();
        let base = region.as_ptr().addr().get() as u64;
        let offset = address.map_or(0, |address| address.wrapping_sub(base)) as usize;
        if let Ok(at) = region.ptr_at(offset, header::LEN) {
            // SAFETY: inside the pool's region. The descriptor may have been overwritten and name
            // any buffer; the bytes of a buffer are accessed by copies here, and by no other code
            // now.
            unsafe { at.cast().write_unaligned(header::received(buffers)) };
        }
    }

    /// Marks a buffer as used, at the position that the driver reads next.
    pub fn give(&mut self, queue: u8, id: u16, len: u32, skip: u16) {
        self.hands[usize::from(queue % 2)].give(id, len, skip);
    }

    /// Sets the used index of a split ring.
    pub fn set_used_index(&mut self, queue: u8, to: u16) {
        self.hands[usize::from(queue % 2)].set_index(to, true);
    }

    /// Receives.
    pub fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        self.rx.rx(cache, out, origin, tally)
    }

    /// Sends.
    pub fn tx(
        &mut self,
        cache: &mut PoolCache,
        burst: &mut BurstMut<'_>,
        sent: &mut Sent,
    ) -> usize {
        self.tx.tx(cache, burst, sent)
    }

    /// The last calls of both queues.
    pub fn finish(&mut self, tally: &mut Tally, sent: &mut Sent) {
        self.rx.finish(tally);
        self.tx.finish(&TscClock::get(), LINGER, sent);
    }

    /// Whether the receive queue, and the transmit queue, are broken.
    #[must_use]
    pub fn are_broken(&self) -> (bool, bool) {
        (self.rx.is_broken(), self.tx.is_broken())
    }
}

/// A device with a transmit and a receive queue of its driver (numbers 0 and 1), and no driver.
pub struct HostileDriver {
    rx: DeviceRx,
    tx: DeviceTx,
    region: Arc<MemoryRegion>,
    hands: [Hand; 2],
}

impl HostileDriver {
    /// Start of the shared memory in the address space of descriptors.
    pub const GUEST: u64 = 0x1000;

    /// Its length.
    pub const LEN: usize = 0x8000;

    /// Offset of the queues in it; each takes that many bytes, and the memory in front of them is
    /// for buffers.
    const QUEUES: usize = 0x6000;
    const QUEUE: usize = 0x1000;

    /// Queues of up to 64 descriptors, with the features of the bits of `features`.
    ///
    /// # Panics
    /// Without a few pages of memory.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test's tool")]
    pub fn new(features_bits: u8, size_asked: u8) -> Self {
        let features = features(features_bits);
        let size = size(features, size_asked);
        let region = MemoryRegion::builder(Self::LEN)
            .pages(PageSize::Kib4)
            .build()
            .expect("memory");
        let region = Arc::new(region);
        let (at, len) = (region.as_ptr(), region.len() as u64);
        // SAFETY: the region is valid for as long as it lives, and no references to it exist.
        let shared = unsafe { PeerRegion::new(at, len, Self::GUEST, 0, region.clone()) };
        let memory = Arc::new(PeerMemory::new(vec![shared]).expect("one region"));
        let rings = [0, 1].map(|queue| {
            let base = (Self::QUEUES + queue * Self::QUEUE) as u64;
            let addresses = Areas {
                descriptors: base,
                driver: base + 0x400,
                device: base + 0x800,
            };
            memory
                .ring(addresses, size, features.packed)
                .expect("a ring in the region")
        });
        let base = features.first_base();
        let none = || Doorbell::None;
        Self {
            rx: DeviceRx::new(&rings[0], features, &memory, base, none()).expect("a base"),
            tx: DeviceTx::new(&rings[1], features, &memory, base, none()).expect("a base"),
            hands: rings.each_ref().map(Hand::new),
            region,
        }
    }

    /// Writes any bytes anywhere in the shared memory.
    pub fn scribble(&mut self, offset: u16, bytes: &[u8]) {
        // SAFETY: the whole region; no references to it exist.
        unsafe { scribble(self.region.as_ptr(), Self::LEN, offset.into(), bytes) };
    }

    /// The current bytes of the shared memory.
    #[must_use]
    pub fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        let inside = |i: usize| self.region.ptr_at(offset + i, 1).ok();
        (0..len)
            .map_while(inside)
            // SAFETY: inside the region.
            .map(|at| unsafe { at.read_volatile() })
            .collect()
    }

    /// Makes a descriptor available at the position that the device reads next: in a split ring,
    /// the one with the number `id`, as the head of a chain if `is_head`.
    pub fn offer(&mut self, queue: u8, piece: (u64, u32), flags: u16, id: (u16, u16), head: bool) {
        let (address, len) = piece;
        let hand = &mut self.hands[usize::from(queue % 2)];
        hand.offer(Piece { address, len }, flags, id.0, id.1, head);
    }

    /// Sets the available index of a split ring.
    pub fn set_available_index(&mut self, queue: u8, to: u16) {
        self.hands[usize::from(queue % 2)].set_index(to, false);
    }

    /// Receives.
    pub fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        self.rx.rx(cache, out, origin, tally)
    }

    /// Sends.
    pub fn tx(
        &mut self,
        cache: &mut PoolCache,
        burst: &mut BurstMut<'_>,
        sent: &mut Sent,
    ) -> usize {
        self.tx.tx(cache, burst, sent)
    }

    /// Whether the device's receive queue (the driver's transmit queue), and the other, are broken.
    #[must_use]
    pub fn are_broken(&self) -> (bool, bool) {
        (self.rx.is_broken(), self.tx.is_broken())
    }
}
