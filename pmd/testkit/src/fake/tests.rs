//! The fake device keeps the promises of a real one.

#![allow(clippy::unwrap_used)]
use super::*;

/// Its only register, at 4, holds where it copies to from where.
#[derive(Default)]
struct Copier {
    from: u64,
    to: u64,
}

impl Model for Copier {
    fn ids(&self) -> Ids {
        Ids {
            vendor: 0x1234,
            device: 0x5678,
            ..Ids::default()
        }
    }

    fn bars(&self) -> [usize; 6] {
        [8, 0, 0, 0, 0, 0]
    }

    fn vectors(&self) -> u16 {
        1
    }

    fn read(&mut self, _: &mut World, _: u8, at: usize, width: usize) -> u32 {
        (at << 8 | width) as u32
    }

    fn write(&mut self, world: &mut World, _: u8, _: usize, _: usize, len: u32) {
        let mut bytes = vec![0; len as usize];
        if world.read(self.from, &mut bytes) && world.write(self.to, &bytes) {
            world.interrupt(0);
        }
    }

    fn reset(&mut self, _: &mut World) {
        *self = Self::default();
    }
}

fn region() -> Arc<MemoryRegion> {
    Arc::new(MemoryRegion::builder(4096).build().unwrap())
}

#[test]
fn a_device_reaches_what_is_mapped_and_nothing_else() {
    let device = FakeDevice::new(Copier::default());
    let bus = device.bar(0, 8).unwrap();
    let (a, b) = (
        device.map(&region(), grant()).unwrap(),
        device.map(&region(), grant()).unwrap(),
    );
    let iova = |mapping: &DmaMapping| mapping.addresses().iova(0, 100).unwrap().0;
    device.with(|copier, _| (copier.from, copier.to) = (iova(&a), iova(&b)));
    let interrupts = device.interrupts(1).unwrap();
    let signalled = || {
        let mut count = [0; 8];
        rustix::io::read(interrupts.event(0).unwrap(), &mut count).is_ok()
    };
    // SAFETY: the region is ours alone, and 100 bytes long at least.
    unsafe { a.region().as_ptr().as_ptr().write_bytes(7, 100) };
    bus.write32(4, 100);
    assert_eq!(device.with(|_, world| world.faults), 1, "no bus master");
    assert!(!signalled());
    device.set_bus_master(true).unwrap();
    bus.write32(4, 100);
    assert_eq!(device.with(|_, world| world.faults), 1);
    assert!(signalled());
    // SAFETY: the region is ours alone; the device has written it, and is at rest.
    let byte = unsafe { b.region().as_ptr().as_ptr().add(99).read() };
    assert_eq!(byte, 7);
    assert!(b.end(), "an IOMMU proves it");
    bus.write32(4, 100);
    assert_eq!(device.with(|_, world| world.faults), 2, "unmapped");
    assert!(device.cut_off(), "it says so");
}

#[test]
fn nothing_proves_that_a_device_is_at_rest_which_does_not_answer() {
    let device = FakeDevice::new(Copier::default());
    device.with(|_, world| world.no_iommu = true);
    let bus = device.bar(0, 8).unwrap();
    let mapping = device.map(&region(), grant()).unwrap();
    let iova = mapping.addresses().iova(0, 100).unwrap().0;
    device.with(|copier, _| (copier.from, copier.to) = (iova, iova));
    device.set_bus_master(true).unwrap();
    device.unplug();
    assert_eq!(bus.read32(4), u32::MAX);
    assert!(!device.cut_off() && !mapping.end());
    let mut byte = [0];
    assert!(
        device.with(|_, world| world.read(iova, &mut byte)),
        "it works on"
    );
    let device = FakeDevice::new(Copier::default());
    device.with(|_, world| world.stubborn = true);
    assert!(!device.cut_off());
}

#[test]
fn what_is_not_there_reads_all_ones() {
    let device = FakeDevice::new(Copier::default());
    let bus = device.bar(0, 8).unwrap();
    assert_eq!(
        (bus.read32(4), bus.read16(2), bus.read8(7)),
        (0x404, 0x202, 1)
    );
    for at in [1, 8, usize::MAX - 3] {
        assert_eq!(bus.read32(at), u32::MAX);
    }
    device.want_back();
    assert_eq!((bus.read32(4), device.is_gone()), (0x404, true));
    device.unplug();
    assert_eq!((bus.read32(4), device.is_gone()), (u32::MAX, true));
    // Each says what is wrong, and what to do.
    for (error, [wrong, action]) in [
        (
            device.bar(1, 8).err(),
            ["fake has no memory BAR 1 ", "`lspci -vv -s fake`"],
        ),
        (
            device.bar(0, 9).err(),
            [
                "BAR 0 of fake has 8 bytes, the driver needs 9",
                "update the firmware",
            ],
        ),
        (
            device.interrupts(2).err(),
            [
                "fake has 1 MSI-X vectors, 2 asked for",
                "start the port with fewer queues",
            ],
        ),
    ] {
        let error = error.unwrap().to_string();
        assert!(
            error.starts_with(wrong) && error.contains(action),
            "{error}"
        );
    }
}
