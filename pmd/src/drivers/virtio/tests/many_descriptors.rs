//! Rings with the maximum number of descriptors, and chains of that length: counts that do not fit
//! 16 bits.

use std::sync::atomic::Ordering::Relaxed;

use pollux_mempool::Burst;

use super::*;
use crate::Cause;
use crate::drivers::virtio::areas::MAX_SIZE;
use crate::drivers::virtio::packed::{Packed, Position};
use crate::drivers::virtio::split::{INDIRECT, NEXT, Split, WRITE, words};

/// The device's ends of a receive and a transmit queue, whose driver the test plays.
struct Rig {
    queues: Vec<QueueMemory>,
    /// The driver's memory for segments and tables.
    buffers: Arc<MemoryRegion>,
    tx: DeviceTx,
    rx: DeviceRx,
    side: Side,
}

impl Rig {
    fn new(features: RingFeatures) -> Self {
        let options = RegionOptions::default();
        let queues = QueueMemory::several(2, MAX_SIZE, features.packed, &options).unwrap();
        let buffers = Arc::new(MemoryRegion::builder(1 << 20).build().unwrap());
        let (memory, _) = shared(&[&buffers, queues[0].region()]);
        let ring = |i: usize| {
            memory
                .ring(places(&queues[i]), MAX_SIZE, features.packed)
                .unwrap()
        };
        let (base, none) = (features.first_base(), || Doorbell::None);
        Self {
            tx: DeviceTx::new(&ring(0), features, &memory, base, none()).unwrap(),
            rx: DeviceRx::new(&ring(1), features, &memory, base, none()).unwrap(),
            queues,
            buffers,
            side: Side::new(64, 2048, 128),
        }
    }

    /// A segment of zero bytes: any number of them has no room for a frame.
    fn nothing(&self) -> Piece {
        let address = self.buffers.as_ptr().addr().get() as u64;
        Piece { address, len: 0 }
    }

    /// A table of as many entries as the ring has descriptors.
    fn table(&self, packed: bool, flags: u16) -> Piece {
        let count = u32::from(MAX_SIZE);
        for i in 0..MAX_SIZE {
            let nothing = self.nothing();
            let entry = if packed {
                [nothing.address, u64::from(flags) << 48]
            } else if i + 1 < MAX_SIZE {
                words(nothing, flags | NEXT, i + 1)
            } else {
                words(nothing, flags, 0)
            };
            let at = self.buffers.ptr_at(16 * usize::from(i), 16).unwrap();
            // SAFETY: 16 bytes in the region, to which no references exist.
            unsafe { at.cast::<[u64; 2]>().write_volatile(entry) };
        }
        Piece {
            len: 16 * count,
            ..self.nothing()
        }
    }

    /// Sends a frame; returns how many were accepted, and how many of them were refused.
    fn send(&mut self) -> (usize, u64) {
        let mut burst = Burst::<1>::new();
        let frame = self.side.frame(&payload(1, 60), &[]).unwrap();
        burst.push(frame).unwrap();
        let Side { cache, sent, .. } = &mut self.side;
        let before = sent.view().errors();
        let taken = self.tx.tx(cache, &mut burst.as_mut(), sent);
        cache.free_burst(&mut burst);
        (taken, sent.view().errors() - before)
    }

    /// One poll; returns the number of lost frames.
    fn lost(&mut self) -> u64 {
        let mut burst = Burst::<32>::new();
        let Side {
            cache,
            origin,
            tally,
            ..
        } = &mut self.side;
        let before = tally.view().balance().dropped_for(Cause::DeviceError);
        let n = self.rx.rx(cache, &mut burst.as_mut(), origin, tally);
        assert_eq!(n, 0);
        tally.view().balance().dropped_for(Cause::DeviceError) - before
    }

    fn finish(self) {
        assert!(!self.rx.is_broken() && !self.tx.is_broken());
        let pool = self.side.pool.clone();
        drop(self);
        assert_eq!(pool.available(), pool.buffers());
    }
}

/// Two buffers that share the same 32768 descriptors: more than a ring has, and 0 in 16 bits.
#[test]
fn chains_of_65536_descriptors_neither_panic_nor_block_a_split_ring() {
    let mut rig = Rig::new(RingFeatures {
        mergeable: true,
        ..RingFeatures::default()
    });
    for (queue, flags) in [(0, WRITE), (1, 0)] {
        let ring = Split::new(rig.queues[queue].ring());
        for i in 0..MAX_SIZE {
            let more = if i + 1 == MAX_SIZE { 0 } else { NEXT };
            ring.write(i, rig.nothing(), flags | more, (i + 1) % MAX_SIZE);
        }
        ring.available(0).store(0, Relaxed);
        ring.available(1).store(0, Relaxed);
        ring.publish_available(2);
    }
    // Each frame is refused: it does not wait for buffers that can never suffice.
    assert_eq!(rig.send(), (1, 1));
    assert_eq!(rig.send(), (1, 1));
    assert_eq!(rig.lost(), 2);
    rig.finish();
}

#[test]
fn a_chain_of_all_descriptors_neither_panics_nor_blocks_a_packed_ring() {
    let mut rig = Rig::new(RingFeatures {
        packed: true,
        mergeable: true,
        ..RingFeatures::default()
    });
    for (queue, flags) in [(0, WRITE), (1, 0)] {
        let ring = Packed::new(rig.queues[queue].ring());
        let mut at = Position::START;
        for i in 0..MAX_SIZE {
            let more = if i + 1 == MAX_SIZE { 0 } else { NEXT };
            let piece = rig.nothing();
            ring.write_address(at, piece.address);
            ring.publish(at, Packed::available_word(at, 0, 0, flags | more));
            at = ring.after(at, 1);
        }
    }
    assert_eq!(rig.send(), (1, 1));
    assert_eq!(rig.send(), (1, 1));
    assert_eq!(rig.lost(), 1);
    rig.finish();
}

/// Each of many buffers is a table of 32768 descriptors: a device stores at most two of them, and
/// the third drops the frame.
#[test]
fn tables_of_65536_descriptors_and_more_neither_panic_nor_block() {
    for packed in [false, true] {
        let mut rig = Rig::new(RingFeatures {
            packed,
            mergeable: true,
            indirect: true,
            ..RingFeatures::default()
        });
        for (queue, flags) in [(0, WRITE), (1, 0)] {
            let piece = rig.table(packed, flags);
            let memory = rig.queues[queue].ring();
            if packed {
                let ring = Packed::new(memory);
                let mut at = Position::START;
                for id in 0..8 {
                    ring.write_address(at, piece.address);
                    ring.publish(at, Packed::available_word(at, piece.len, id, INDIRECT));
                    at = ring.after(at, 1);
                }
            } else {
                let ring = Split::new(memory);
                for id in 0..8 {
                    ring.write(id, piece, INDIRECT, 0);
                    ring.available(id.into()).store(id, Relaxed);
                }
                ring.publish_available(8);
            }
            if queue == 0 {
                // Three buffers each, and then too few remain for a third frame.
                assert_eq!(rig.send(), (1, 1));
                assert_eq!(rig.send(), (1, 1));
                assert_eq!(rig.send(), (0, 0));
            } else {
                assert_eq!(rig.lost(), 8);
            }
        }
        rig.finish();
    }
}

/// Indices of 16 bits wrap, in rings with half as many entries.
#[test]
fn the_largest_rings_pass_more_frames_than_their_indices_count() {
    for bits in [0, 1, 2, 3] {
        let features = RingFeatures {
            packed: bits & 1 != 0,
            in_order: bits & 2 != 0,
            ..RingFeatures::default()
        };
        let (driver, device) = (Side::new(80_000, 64, 128), Side::new(1024, 64, 128));
        let mut pair = Pair::new(MAX_SIZE, features, driver, device);
        let mut burst = Burst::<64>::new();
        for round in 0..2100 {
            for i in 0..32 {
                let frame = pair.device.frame(&payload(round * 32 + i, 32), &[]);
                burst.push(frame.unwrap()).unwrap();
            }
            assert_eq!(pair.device_sends(&mut burst.as_mut()), 32);
            assert_eq!(pair.driver_receives(&mut burst.as_mut()), 32);
            for (mbuf, i) in burst.iter().zip(0..) {
                assert_eq!(number(&bytes(mbuf)), round * 32 + i);
            }
            // In the other direction.
            assert_eq!(pair.driver_sends(&mut burst.as_mut()), 32);
            assert_eq!(pair.device_receives(&mut burst.as_mut()), 32);
            for (mbuf, i) in burst.iter().zip(0..) {
                assert_eq!(number(&bytes(mbuf)), round * 32 + i);
            }
            pair.device.cache.free_burst(&mut burst);
        }
        assert!(!pair.is_broken());
    }
}
