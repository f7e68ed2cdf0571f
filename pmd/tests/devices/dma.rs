//! Memory that a driver and its device share.
#![allow(clippy::unwrap_used)]

use pollux_pmd::bus::{Device, Ids};
use pollux_pmd::drivers::dma::{Assembly, DmaArea, DmaBuffer};
use pollux_pmd::quarantine::Quarantine;
use pollux_pmd_testkit::fake::{FakeDevice, Model, World, grant};
use pollux_pmd_testkit::ports::pool;

/// A device with 32 address lines, and no registers.
struct Narrow;

impl Model for Narrow {
    fn ids(&self) -> Ids {
        Ids::default()
    }

    fn bars(&self) -> [usize; 6] {
        [0; 6]
    }

    fn is_narrow(&self) -> bool {
        true
    }

    fn read(&mut self, _: &mut World, _: u8, _: usize, _: usize) -> u32 {
        u32::MAX
    }

    fn write(&mut self, _: &mut World, _: u8, _: usize, _: usize, _: u32) {}

    fn reset(&mut self, _: &mut World) {}
}

#[test]
fn aligned_memory_is_at_a_multiple_of_its_length_and_mapped_once() {
    const LEN: usize = 4 << 20;
    let device = FakeDevice::new(Narrow);
    let quarantine = Quarantine::new("aligned");
    let lent = (grant(), &quarantine);
    let mut longer = 0;
    for mapped in 1..=4 {
        let aligned = DmaBuffer::alloc_aligned(&device, &device.memory(), LEN, lent);
        let (buffer, offset) = aligned.unwrap();
        let (_, iova) = buffer.piece(offset, LEN).unwrap();
        assert_eq!(iova % LEN as u64, 0, "{iova:#x}");
        longer += usize::from(buffer.region().len() > LEN);
        // The device keeps what was dropped, and no trial.
        drop(buffer);
        assert_eq!(device.with(|_, world| world.reachable().len()), mapped);
    }
    assert!(longer > 0, "some regions of that length are not aligned");
    assert!(quarantine.settle(device.cut_off()));
    assert!(device.with(|_, world| world.reachable().is_empty()));
}

#[test]
fn an_area_is_seen_from_both_sides_and_ends_where_it_ends() {
    const LEN: usize = 4096;
    let device = FakeDevice::new(Narrow);
    let quarantine = Quarantine::new("area");
    let mut area = DmaArea::alloc(&device, &device.memory(), LEN, (grant(), &quarantine)).unwrap();
    let at = area.address(0, LEN).unwrap();
    assert!(u32::try_from(at + LEN as u64).is_ok(), "{at:#x}");
    device.set_bus_master(true).unwrap();
    // What one side writes, the other reads.
    area.store(8, 0x0403_0201);
    assert!(area.write(12, &[5; 100]));
    let mut bytes = [0; 104];
    assert!(device.with(|_, world| world.read(at + 8, &mut bytes)));
    assert_eq!(
        (&bytes[..4], &bytes[4..]),
        (&[1, 2, 3, 4][..], &[5; 100][..])
    );
    device.with(|_, world| world.write(at + LEN as u64 - 4, &[1, 0, 0, 0]));
    assert_eq!(area.load(LEN - 4), 1);
    // A frame of several buffers.
    let pool = pool(4, 64);
    let mut frame = Assembly::new();
    assert!(area.read_into(12, 100, &mut frame, || pool.alloc()));
    let mbuf = frame.finish().unwrap();
    assert_eq!((mbuf.segment_count(), mbuf.total_len()), (2, 100));
    assert!(mbuf.segments().flatten().all(|&byte| byte == 5));
    // Beyond the end, and where no word can be.
    for at in [LEN - 3, LEN, usize::MAX - 3, 2] {
        assert_eq!(area.load(at), u32::MAX, "{at:#x}");
        area.store(at, 7);
    }
    assert_eq!((area.load(LEN - 4), area.load(0)), (1, 0));
    assert!(!area.write(LEN - 1, &[0; 2]) && area.address(1, LEN).is_none());
    assert!(!area.read_into(LEN - 1, 2, &mut frame, || pool.alloc()));
    assert!(frame.finish().is_none());
    drop((area, mbuf));
    assert!(quarantine.settle(device.cut_off()));
    assert!(device.with(|_, world| world.reachable().is_empty()));
}

#[test]
fn the_parts_of_an_area_do_not_overlap() {
    const LEN: usize = 4096;
    let device = FakeDevice::new(Narrow);
    let quarantine = Quarantine::new("parts");
    let area = DmaArea::alloc(&device, &device.memory(), LEN, (grant(), &quarantine)).unwrap();
    let at = area.address(0, LEN).unwrap();
    let (mut first, mut second) = area.split_at(1024);
    assert_eq!(first.address(0, 1024), Some(at));
    assert_eq!(second.address(0, LEN - 1024), Some(at + 1024));
    assert_eq!(
        (first.address(0, 1025), second.address(1, LEN - 1024)),
        (None, None)
    );
    first.store(1020, 1);
    first.store(1024, 2);
    assert!(second.write(0, &[3; 4]) && !first.write(1022, &[4; 4]));
    assert_eq!((first.load(1020), second.load(0)), (1, 0x0303_0303));
    let (all, none) = second.split_at(usize::MAX);
    assert_eq!((all.load(0), none.load(0)), (0x0303_0303, u32::MAX));
    drop((first, all, none));
    assert!(quarantine.settle(device.cut_off()));
}
