//! Tests on real devices, where an 82574L or a device with virtual functions is bound to vfio-pci:
//! in the guests of scripts/qemu-test.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pollux_mempool::IovaMap;

use super::super::*;
use super::TOKEN;
use crate::bus::pci::ConfigSpace;
use crate::bus::{BUS_MASTER, Bus as _, COMMAND};

/// The grant of these tests: their devices write into regions that hold no references.
fn grant() -> MemoryGrant {
    // SAFETY: as above, and no other code drives the devices: `TURN` admits one test at a time.
    unsafe { MemoryGrant::new() }
}

/// Serialises the tests on the machine's devices.
static TURN: Mutex<()> = Mutex::new(());

/// All 82574L that are on vfio-pci.
fn nics() -> Vec<Address> {
    let all = Sysfs::default().functions().into_iter();
    let ours = all.filter(|f| f.is_on_vfio() && (f.ids.vendor, f.ids.device) == (0x8086, 0x10d3));
    ours.map(|function| function.address).collect()
}

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn region() -> Arc<MemoryRegion> {
    Arc::new(MemoryRegion::builder(2 << 20).build().unwrap())
}

/// Registers of the 82574L (its datasheet, section 10.2), as far as one frame needs them.
const CTRL: usize = 0x0;
const ICR: usize = 0xc0;
const ICS: usize = 0xc8;
const IMS: usize = 0xd0;
const IMC: usize = 0xd8;
const IVAR: usize = 0xe4;
const TCTL: usize = 0x400;
const TDBAL: usize = 0x3800;
const TDBAH: usize = 0x3804;
const TDLEN: usize = 0x3808;
const TDT: usize = 0x3818;

/// Makes the NIC fetch and write back a descriptor (section 7.2.10) at the start of a mapping;
/// returns whether it did within a second.
fn sends(bus: &MappedBar, mapping: &DmaMapping) -> bool {
    let at = mapping.addresses().iova(0, 16).unwrap().0;
    let descriptor = mapping.region().as_ptr().cast::<u64>();
    // 64 bytes that begin behind the ring; end of packet, checksum, report status.
    let command = 64_u64 | 0xb << 24;
    // SAFETY: the region belongs to this test, and is larger; the device accesses it after the
    // doorbell below.
    unsafe {
        descriptor.write_volatile(at + 4096);
        descriptor.add(1).write_volatile(command);
    }
    bus.write32(TCTL, 0);
    bus.write32(TDBAL, at as u32);
    bus.write32(TDBAH, (at >> 32) as u32);
    bus.write32(TDLEN, 128);
    bus.write32(TDT - 8, 0);
    bus.write32(TDT, 0);
    bus.write32(TCTL, 1 << 1);
    bus.write32(TDT, 1);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(1) {
        // SAFETY: as above; the device may write it at any time.
        let status = unsafe { descriptor.add(1).read_volatile() };
        fence(SeqCst);
        if status >> 32 & 1 == 1 {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

#[test]
fn a_real_device_is_taken_used_and_given_back() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(&address) = nics().first() else {
        println!("skipped: no 82574L is bound to vfio-pci on this machine");
        return;
    };
    // Twice: the device must be available again.
    for _ in 0..2 {
        let device = VfioDevice::open(address, &VfioOptions::default(), grant()).unwrap();
        let again = VfioDevice::open(address, &VfioOptions::default(), grant())
            .err()
            .unwrap();
        assert!(again.to_string().contains("this process has it already"));
        assert_eq!(device.ids(), device.function().ids);
        assert_eq!(device.config(0).unwrap(), 0x10d3_8086);
        assert!(device.config(4096).is_err() && device.config(2).is_err());

        let bus = device.bar(0, 0x2_0000).unwrap();
        assert_ne!(bus.read32(CTRL), u32::MAX);
        let too_small = device.bar(0, 1 << 20).err().unwrap().to_string();
        assert!(too_small.contains("has 131072 bytes"), "{too_small}");
        // BAR 2 is an I/O port window.
        assert!(device.bar(2, 4).is_err() && device.bar(6, 4).is_err());

        let many = device.interrupts(6).err().unwrap().to_string();
        assert!(many.contains("has 5 MSI-X vectors"), "{many}");
        device.set_bus_master(true).unwrap();
        let interrupts = device.interrupts(2).unwrap();
        assert!(device.interrupts(1).is_err());
        let signalled = || rustix::io::read(interrupts.event(1).unwrap(), &mut [0_u8; 8]).is_ok();
        assert!(!signalled());
        // Other causes signal vector 1 (sections 10.2.4.9, 7.4.2); link status change is one. The
        // state of a previous user is cleared: in QEMU, a reset by power states keeps registers.
        bus.write32(IMC, u32::MAX);
        bus.write32(ICR, u32::MAX);
        bus.write32(IVAR, (8 | 1) << 16);
        bus.write32(IMS, 1 << 2 | 1 << 24);
        bus.write32(ICS, 1 << 2 | 1 << 24);
        wait("an interrupt", signalled);
        drop(interrupts);
        device.interrupts(5).unwrap();

        let region = region();
        let mapping = device.map(&region, grant()).unwrap();
        let is_there = mapping.addresses().iova(0, region.len()).unwrap();
        assert_eq!(
            is_there,
            IovaMap::identity(&region).iova(0, region.len()).unwrap()
        );
        assert!(sends(&bus, &mapping));
        // A region that is mapped twice has one mapping, which ends with the second.
        let twice = device.map(&region, grant()).unwrap();
        assert!(!mapping.end());
        device.set_bus_master(true).unwrap();
        assert!(sends(&bus, &twice));
        assert!(device.cut_off());
        device.set_bus_master(true).unwrap();

        device.reset().unwrap();
        assert_eq!(device.config(COMMAND).unwrap() & BUS_MASTER, 0);
        assert!(!sends(&bus, &twice), "it has no right to memory");
        assert!(!device.is_gone());
    }
}

#[test]
fn what_is_not_mapped_is_not_reached() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let nics = nics();
    let [one, other] = nics[..] else {
        println!("skipped: no two 82574L are bound to vfio-pci on this machine");
        return;
    };
    let open = |address| VfioDevice::open(address, &VfioOptions::default(), grant()).unwrap();
    let (one, other) = (open(one), open(other));
    let region = region();
    let ours = one.map(&region, grant()).unwrap();
    let theirs = other.map(&region, grant()).unwrap();
    let bus = other.bar(0, 0x2_0000).unwrap();
    // The remaining device keeps the memory, and its access to it.
    other.set_bus_master(true).unwrap();
    assert!(!ours.end(), "it is in the same address space as the other");
    assert!(sends(&bus, &theirs));
    assert!(theirs.end(), "the IOMMU has removed it");
    assert_eq!(other.config(COMMAND).unwrap() & BUS_MASTER, 0);
    // Even with bus mastering enabled: the IOMMU refuses the access.
    other.set_bus_master(true).unwrap();
    let claimed = DmaMapping::new(region.clone(), IovaMap::identity(&region), || false);
    assert!(!sends(&bus, &claimed));
}

#[test]
fn who_is_asked_for_the_device_hears_of_it() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(&address) = nics().first() else {
        println!("skipped: no 82574L is bound to vfio-pci on this machine");
        return;
    };
    let device = VfioDevice::open(address, &VfioOptions::default(), grant()).unwrap();
    assert!(!device.is_gone());
    let driver = Path::new("/sys/bus/pci/drivers/vfio-pci");
    // The kernel waits until the device is released.
    let unbind = std::thread::spawn(move || {
        fs::write(driver.join("unbind"), address.to_string()).unwrap();
    });
    wait("the request", || device.is_gone());
    assert!(!unbind.is_finished());
    drop(device);
    unbind.join().unwrap();
    fs::write(driver.join("bind"), address.to_string()).unwrap();
    let device = VfioDevice::open(address, &VfioOptions::default(), grant()).unwrap();
    assert!(!device.is_gone());
}

#[test]
fn virtual_functions_take_the_token_of_their_physical_function() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let sysfs = Sysfs::default();
    let has_functions =
        |f: &Function| f.is_on_vfio() && ConfigSpace::look(f).sr_iov().is_some_and(|s| s.total > 1);
    let Some(physical) = sysfs.functions().into_iter().find(has_functions) else {
        println!("skipped: no device with virtual functions is bound to vfio-pci on this machine");
        return;
    };
    let with_token = VfioOptions {
        no_iommu: false,
        vf_token: Some(TOKEN.parse().unwrap()),
    };
    let device = VfioDevice::open(physical.address, &with_token, grant()).unwrap();
    device.set_virtual_functions(1).unwrap();
    device.set_virtual_functions(2).unwrap();
    assert_eq!(ConfigSpace::of(&device).unwrap().sr_iov().unwrap().total, 8);
    let functions = physical.virtual_functions();
    assert_eq!(functions.len(), 2);
    for &address in &functions {
        // VFIO binds the virtual functions of a device that it holds.
        wait("a driver", || {
            sysfs.function(address).is_some_and(|f| f.is_on_vfio())
        });
        let without = VfioDevice::open(address, &VfioOptions::default(), grant())
            .err()
            .unwrap();
        assert!(without.to_string().contains("vf_token="), "{without}");
        let function = VfioDevice::open(address, &with_token, grant()).unwrap();
        assert_eq!(function.ids(), function.function().ids);
        assert_ne!(function.ids(), device.ids());
        function.bar(0, 0x4000).unwrap();
    }
    let too_many = device.set_virtual_functions(1000).unwrap_err().to_string();
    assert!(too_many.contains("sriov_totalvfs"), "{too_many}");
    device.set_virtual_functions(0).unwrap();
    assert!(physical.virtual_functions().is_empty());
}
