//! Driver side against device side, in one process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod device_violations;
mod doorbell;
mod driver_violations;
mod many_descriptors;
mod merging;
mod model;
mod speed;
mod stress;

use std::sync::Arc;

use pollux_mempool::region::{MemoryRegion, PageSize};
use pollux_mempool::{BurstMut, IovaMap, Mbuf, Mempool, PoolCache, PoolConfig};

use super::*;
use crate::clock::TscClock;
use crate::driver::Origin;
use crate::drivers::dma::DeviceAddresses;
use crate::event::RegionOptions;
use crate::ledger::{Sent, Tally};

/// One side's loop: its pool, and its counters.
struct Side {
    pool: Mempool,
    cache: PoolCache,
    origin: Origin,
    tally: Tally,
    sent: Sent,
}

impl Side {
    fn new(buffers: usize, data_room: usize, headroom: usize) -> Self {
        let pool = Mempool::new(PoolConfig {
            buffers,
            data_room,
            headroom,
            pages: PageSize::Kib4,
            ..PoolConfig::default()
        })
        .unwrap();
        Self {
            cache: pool.cache(256.min(buffers)).unwrap(),
            pool,
            origin: Origin::new(0, 0),
            tally: Tally::new(),
            sent: Sent::new(),
        }
    }

    /// A frame, its first bytes in segments of those lengths.
    fn frame(&mut self, bytes: &[u8], cuts: &[usize]) -> Option<Mbuf> {
        let mut frame: Option<Mbuf> = None;
        let mut rest = bytes;
        while !rest.is_empty() {
            let cut = frame.as_ref().map_or(0, Mbuf::segment_count);
            let len = cuts.get(cut).copied().unwrap_or(rest.len());
            let (now, later) = rest.split_at(len.min(rest.len()));
            let segment = self.cache.alloc_from(now)?;
            rest = later;
            match &mut frame {
                None => frame = Some(segment),
                Some(frame) => frame.chain(segment).unwrap(),
            }
        }
        frame
    }
}

/// Regions that both sides access, at their addresses in this process.
fn shared(regions: &[&Arc<MemoryRegion>]) -> (Arc<PeerMemory>, DeviceAddresses) {
    let mut addresses = DeviceAddresses::new();
    let of_peer = regions.iter().map(|&region| {
        addresses.add(region, &IovaMap::identity(region));
        let (at, len) = (region.as_ptr(), region.len() as u64);
        let address = at.addr().get() as u64;
        // SAFETY: a region is valid for as long as it lives, and gives out pointers only.
        unsafe { PeerRegion::new(at, len, address, address, region.clone()) }
    });
    let memory = PeerMemory::new(of_peer.collect()).unwrap();
    (Arc::new(memory), addresses)
}

/// Addresses of a queue's areas, as a driver passes them to its device.
fn places(queue: &QueueMemory) -> Areas<u64> {
    let at = queue.ring().at();
    Areas {
        descriptors: at.descriptors.addr().get() as u64,
        driver: at.driver.addr().get() as u64,
        device: at.device.addr().get() as u64,
    }
}

/// Two queues of one device, both ends of each.
struct Pair {
    driver: Side,
    device: Side,
    driver_rx: DriverRx,
    driver_tx: DriverTx,
    device_rx: DeviceRx,
    device_tx: DeviceTx,
}

impl Pair {
    fn new(size: u16, features: RingFeatures, driver: Side, device: Side) -> Self {
        let queues =
            QueueMemory::several(2, size, features.packed, &RegionOptions::default()).unwrap();
        let (memory, addresses) = shared(&[driver.pool.region(), queues[0].region()]);
        let ring = |queue: &QueueMemory| memory.ring(places(queue), size, features.packed).unwrap();
        let none = || Doorbell::None;
        let base = features.first_base();
        Self {
            driver_rx: DriverRx::new(
                &queues[0],
                features,
                addresses.clone(),
                &driver.pool,
                none(),
            ),
            driver_tx: DriverTx::new(&queues[1], features, addresses, &driver.pool, none()),
            device_tx: DeviceTx::new(&ring(&queues[0]), features, &memory, base, none()).unwrap(),
            device_rx: DeviceRx::new(&ring(&queues[1]), features, &memory, base, none()).unwrap(),
            driver,
            device,
        }
    }
}

impl Pair {
    /// The driver sends to the device.
    fn driver_sends(&mut self, burst: &mut BurstMut<'_>) -> usize {
        let Side { cache, sent, .. } = &mut self.driver;
        self.driver_tx.tx(cache, burst, sent)
    }

    /// The device sends to the driver.
    fn device_sends(&mut self, burst: &mut BurstMut<'_>) -> usize {
        let Side { cache, sent, .. } = &mut self.device;
        self.device_tx.tx(cache, burst, sent)
    }

    fn device_receives(&mut self, out: &mut BurstMut<'_>) -> usize {
        let Side {
            cache,
            origin,
            tally,
            ..
        } = &mut self.device;
        self.device_rx.rx(cache, out, origin, tally)
    }

    fn driver_receives(&mut self, out: &mut BurstMut<'_>) -> usize {
        let Side {
            cache,
            origin,
            tally,
            ..
        } = &mut self.driver;
        self.driver_rx.rx(cache, out, origin, tally)
    }

    fn is_broken(&self) -> bool {
        self.driver_rx.is_broken()
            || self.driver_tx.is_broken()
            || self.device_rx.is_broken()
            || self.device_tx.is_broken()
    }
}

/// All feature sets that two sides can negotiate.
fn all_features() -> impl Iterator<Item = RingFeatures> {
    (0..16).map(|bits| RingFeatures {
        packed: bits & 1 != 0,
        in_order: bits & 2 != 0,
        mergeable: bits & 4 != 0,
        indirect: bits & 8 != 0,
        ..RingFeatures::default()
    })
}

/// The bytes of frame `number`: the number, followed by pseudo-random bytes.
fn payload(number: u32, len: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(2_654_435_761) | 1;
    let noise = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    });
    let number = number.to_le_bytes();
    number.into_iter().chain(noise).take(len.max(4)).collect()
}

fn bytes(mbuf: &Mbuf) -> Vec<u8> {
    mbuf.segments().flatten().copied().collect()
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().unwrap())
}
