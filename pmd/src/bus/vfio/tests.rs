//! Refusals, on made-up machines; and the real thing, where an 82574L or a device with virtual
//! functions is bound to vfio-pci: in the guests of scripts/qemu-test.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;
use std::sync::{Mutex, PoisonError};

use pollux_mempool::IovaMap;
use tempfile::TempDir;

use super::*;
use crate::bus::Bus as _;
use crate::bus::fake::grant;
use crate::bus::pci::ConfigSpace;

/// A made-up /sys and /dev.
struct Machine(TempDir);

const A: &str = "0000:03:00.0";
const B: &str = "0000:03:00.1";

const TOKEN: &str = "00112233-4455-6677-8899-aabbccddeeff";

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// A function in a group, bound to a driver.
    fn function(&self, address: &str, driver: Option<&str>, group: Option<u32>) -> &Self {
        let folder = format!("sys/bus/pci/devices/{address}");
        self.file(&format!("{folder}/class"), "0x020000\n");
        let folder = self.0.path().join(folder);
        if let Some(driver) = driver {
            symlink(format!("../drivers/{driver}"), folder.join("driver")).unwrap();
        }
        if let Some(group) = group {
            let of_group = format!("sys/kernel/iommu_groups/{group}");
            self.file(&format!("{of_group}/devices/{address}"), "");
            symlink(self.0.path().join(of_group), folder.join("iommu_group")).unwrap();
        }
        self
    }

    fn open(&self, no_iommu: bool) -> Result<VfioDevice, String> {
        let sysfs = Sysfs::at(self.0.path().join("sys"));
        let options = VfioOptions {
            no_iommu,
            vf_token: None,
        };
        let dev = self.0.path().join("dev");
        let device = VfioDevice::open_at(&sysfs, &dev, A.parse().unwrap(), &options);
        device.map_err(|error| error.to_string())
    }

    fn way(&self, no_iommu: bool) -> Way {
        self.way_with(&VfioOptions {
            no_iommu,
            vf_token: None,
        })
    }

    fn way_with(&self, options: &VfioOptions) -> Way {
        let sysfs = Sysfs::at(self.0.path().join("sys"));
        let dev = self.0.path().join("dev");
        find::find(&sysfs, &dev, A.parse().unwrap(), options)
            .unwrap()
            .1
    }
}

const VFIO_PCI: &str = "sys/bus/pci/drivers/vfio-pci/bind";
const ALLOWED: &str = "sys/module/vfio/parameters/enable_unsafe_noiommu_mode";

#[test]
fn what_is_in_the_way_is_told_with_what_to_do() {
    let refusal = |machine: &Machine, no_iommu| machine.open(no_iommu).err().unwrap();
    let machine = Machine::new();
    assert_eq!(
        refusal(&machine, false),
        "0000:03:00.0: there is no such PCI device; `pollux ports` lists those that there are"
    );
    machine.function(A, Some("e1000e"), None);
    let error = refusal(&machine, false);
    assert!(error.contains("boot with intel_iommu=on"), "{error}");
    let error = refusal(&machine, true);
    assert!(error.contains("enable_unsafe_noiommu_mode"), "{error}");
    machine.file(ALLOWED, "Y\n");
    let error = refusal(&machine, true);
    assert!(
        error.contains("driver e1000e: pollux bind 0000:03:00.0"),
        "{error}"
    );

    let machine = Machine::new();
    machine.function(A, Some("e1000e"), Some(7));
    let error = refusal(&machine, false);
    assert!(
        error.contains("modprobe vfio-pci, then pollux bind"),
        "{error}"
    );
    machine.file(VFIO_PCI, "");
    let error = refusal(&machine, false);
    assert!(
        error.contains("driver e1000e: pollux bind 0000:03:00.0"),
        "{error}"
    );

    let machine = Machine::new();
    machine.function(A, None, Some(7)).file(VFIO_PCI, "");
    let error = refusal(&machine, false);
    assert!(error.contains("it has no driver: pollux bind"), "{error}");

    let machine = Machine::new();
    machine.function(A, Some("vfio-pci"), Some(7));
    let error = refusal(&machine, false);
    assert!(error.contains("dev/vfio/vfio: No such file"), "{error}");
    machine.file("sys/kernel/iommu_groups/7/name", "vfio-noiommu\n");
    let error = refusal(&machine, false);
    assert!(error.contains("noiommu=on accepts"), "{error}");
}

#[test]
fn a_device_is_handed_out_by_its_own_file_or_by_its_group() {
    let machine = Machine::new();
    machine.function(A, Some("mlx5-vfio-pci"), Some(7));
    let group = |name: &str, no_iommu| Way::Group {
        path: machine.0.path().join("dev/vfio").join(name),
        no_iommu,
    };
    assert_eq!(machine.way(false), group("7", false));
    assert_eq!(
        machine.way(true),
        group("7", false),
        "there is an IOMMU after all"
    );
    let own = "dev/vfio/devices/vfio2";
    machine
        .file(
            &format!("sys/bus/pci/devices/{A}/vfio-dev/vfio2/dev"),
            "511:2",
        )
        .file(own, "");
    assert_eq!(machine.way(false), group("7", false), "no /dev/iommu");
    machine.file("dev/iommu", "");
    assert_eq!(machine.way(false), Way::Own(machine.0.path().join(own)));
    let token = VfioOptions {
        no_iommu: false,
        vf_token: Some(TOKEN.parse().unwrap()),
    };
    assert_eq!(
        machine.way_with(&token),
        Way::Own(machine.0.path().join(own)),
        "no file of the group"
    );
    machine.file("dev/vfio/7", "");
    assert_eq!(machine.way_with(&token), group("7", false));
    // What may not be opened, root may: but nobody opens a folder for writing.
    fs::remove_file(machine.0.path().join(own)).unwrap();
    fs::create_dir(machine.0.path().join(own)).unwrap();
    assert_eq!(machine.way(false), group("7", false), "not to be opened");

    let machine = Machine::new();
    machine
        .function(A, Some("vfio-pci"), Some(0))
        .file("sys/kernel/iommu_groups/0/name", "vfio-noiommu\n");
    let path = machine.0.path().join("dev/vfio/noiommu-0");
    let no_iommu = true;
    assert_eq!(machine.way(true), Way::Group { path, no_iommu });
}

#[test]
fn a_group_that_is_not_whole_names_the_others() {
    let machine = Machine::new();
    machine
        .function(A, Some("vfio-pci"), Some(7))
        .function(B, Some("igb"), Some(7))
        .function("0000:03:00.2", Some("vfio-pci"), Some(7));
    let sysfs = Sysfs::at(machine.0.path().join("sys"));
    let function = sysfs.function(A.parse().unwrap()).unwrap();
    let error = error::not_viable(&sysfs, &function).to_string();
    assert!(error.contains("0000:03:00.1 (igb); bind these too: pollux bind 0000:03:00.1"));
}

#[test]
fn a_device_with_a_file_of_its_own_that_is_taken_is_told_from_one_without_its_group() {
    let os = std::io::Error::from_raw_os_error;
    let machine = Machine::new();
    machine.function(A, Some("vfio-pci"), Some(7));
    let sysfs = Sysfs::at(machine.0.path().join("sys"));
    let function = sysfs.function(A.parse().unwrap()).unwrap();
    let plain = VfioOptions::default();
    let token = VfioOptions {
        vf_token: Some(TOKEN.parse().unwrap()),
        ..plain
    };
    let said =
        |options, error| error::own_device(&sysfs, &function, options, os(error)).to_string();
    for error in [libc::EPERM, libc::EBUSY, libc::EINVAL] {
        let said = said(&plain, error);
        assert!(said.contains("another process has it, or"), "{said}");
    }
    assert!(said(&token, libc::EINVAL).contains("vf_token= is for"));
    assert!(said(&plain, libc::EACCES).contains("vf_token= is the token"));
    assert!(said(&plain, libc::EPERM).contains("parameters/allow_unsafe_interrupts"));
    assert!(said(&plain, libc::EINVAL).contains("coherent with the caches"));
    machine.function(B, Some("igb"), Some(7));
    assert!(said(&plain, libc::EPERM).contains("bind these too: pollux bind 0000:03:00.1"));
}

#[test]
fn refusals_of_the_kernel_say_what_to_do() {
    let os = std::io::Error::from_raw_os_error;
    for (error, text) in [
        (
            error::open("d", "/dev/vfio/7", os(libc::EACCES)),
            "chown USER /dev/vfio/7",
        ),
        (
            error::open("d", "/dev/vfio/7", os(libc::EBUSY)),
            "another process has",
        ),
        (
            error::open("d", "/dev/vfio/7", os(libc::ENOENT)),
            "modprobe vfio-pci",
        ),
        (error::device_of_group("d", os(libc::EACCES)), "vf_token="),
        (
            error::set_iommu("d", os(libc::EPERM)),
            "allow_unsafe_interrupts",
        ),
        (
            error::set_iommu("d", os(libc::ENODEV)),
            "modprobe vfio_iommu_type1",
        ),
        (
            error::virtual_functions("d", 2, os(libc::ENOENT)),
            "enable_sriov=1",
        ),
        (
            error::map("d", 1 << 20, 4096, Some(1 << 16), os(libc::ENOMEM)),
            "`ulimit -l 1028`, or LimitMEMLOCK=1052672",
        ),
        (
            error::map("d", 1 << 20, 0, Some(2 << 20), os(libc::ENOMEM)),
            "`ulimit -l 3072`, or LimitMEMLOCK=3145728",
        ),
        (
            error::open("d", "/dev/vfio/noiommu-0", os(libc::EPERM)),
            "run it as root: no IOMMU",
        ),
        (
            error::map("d", 1 << 20, 0, None, os(libc::ENOSPC)),
            "dma_entry_limit",
        ),
    ] {
        let error = error.to_string();
        assert!(error.starts_with("d: ") && error.contains(text), "{error}");
    }
}

#[test]
fn a_device_that_is_silent_for_a_moment_is_not_gone() {
    let mut silent = [true, true, false].into_iter();
    assert!(!is_so_for(Duration::from_mins(1), || silent
        .next()
        .unwrap()));
    assert!(is_so_for(Duration::ZERO, || true));
}

/// One test at a time has the machine's devices.
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

/// Has the NIC fetch and write back a descriptor (section 7.2.10) at the start of a mapping;
/// whether it did within a second.
fn sends(bus: &MappedBar, mapping: &DmaMapping) -> bool {
    let at = mapping.addresses().iova(0, 16).unwrap().0;
    let descriptor = mapping.region().as_ptr().cast::<u64>();
    // 64 bytes that begin behind the ring; end of packet, checksum, report status.
    let command = 64_u64 | 0xb << 24;
    // SAFETY: the region is this test's, and larger; the device touches it when told below.
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
    // Twice: it must come back.
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
        // BAR 2 is of ports.
        assert!(device.bar(2, 4).is_err() && device.bar(6, 4).is_err());

        let many = device.interrupts(6).err().unwrap().to_string();
        assert!(many.contains("has 5 MSI-X vectors"), "{many}");
        device.set_bus_master(true).unwrap();
        let interrupts = device.interrupts(2).unwrap();
        assert!(device.interrupts(1).is_err());
        let signalled = || rustix::io::read(interrupts.event(1).unwrap(), &mut [0_u8; 8]).is_ok();
        assert!(!signalled());
        // Other causes signal vector 1 (sections 10.2.4.9, 7.4.2); link status change is one.
        // Nothing is left of who had it before: in QEMU, a reset by power states keeps registers.
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
            IovaMap::virtual_(&region).iova(0, region.len()).unwrap()
        );
        assert!(sends(&bus, &mapping));
        // Mapped twice is mapped once, and goes when both are gone.
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
    // The one that is left keeps the memory, and the right to it.
    other.set_bus_master(true).unwrap();
    assert!(!ours.end(), "it is in the same address space as the other");
    assert!(sends(&bus, &theirs));
    assert!(theirs.end(), "the IOMMU has removed it");
    assert_eq!(other.config(COMMAND).unwrap() & BUS_MASTER, 0);
    // Not even where its driver would have it reach: the IOMMU refuses.
    other.set_bus_master(true).unwrap();
    let claimed = DmaMapping::new(region.clone(), IovaMap::virtual_(&region), || false);
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
    // The kernel waits until the device is given back.
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
        // VFIO keeps what is made of a device that it has.
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
