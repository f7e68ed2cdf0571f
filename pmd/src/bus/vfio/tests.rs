//! Refusals, on simulated machines.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use tempfile::TempDir;

use super::find::DeviceFile;
use super::opened::is_so_for;
use super::*;

mod devices;

/// A simulated /sys and /dev.
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

    fn device_file(&self, no_iommu: bool) -> DeviceFile {
        self.device_file_with(&VfioOptions {
            no_iommu,
            vf_token: None,
        })
    }

    fn device_file_with(&self, options: &VfioOptions) -> DeviceFile {
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
        "0000:03:00.0: there is no such PCI device; `pollux ports` lists the available ones"
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
    let group = |name: &str, no_iommu| DeviceFile::Group {
        path: machine.0.path().join("dev/vfio").join(name),
        no_iommu,
    };
    assert_eq!(machine.device_file(false), group("7", false));
    assert_eq!(
        machine.device_file(true),
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
    assert_eq!(
        machine.device_file(false),
        group("7", false),
        "no /dev/iommu"
    );
    machine.file("dev/iommu", "");
    assert_eq!(
        machine.device_file(false),
        DeviceFile::Own(machine.0.path().join(own))
    );
    let token = VfioOptions {
        no_iommu: false,
        vf_token: Some(TOKEN.parse().unwrap()),
    };
    assert_eq!(
        machine.device_file_with(&token),
        DeviceFile::Own(machine.0.path().join(own)),
        "no file of the group"
    );
    machine.file("dev/vfio/7", "");
    assert_eq!(machine.device_file_with(&token), group("7", false));
    // Root may open any file, but no user may open a folder for writing.
    fs::remove_file(machine.0.path().join(own)).unwrap();
    fs::create_dir(machine.0.path().join(own)).unwrap();
    assert_eq!(
        machine.device_file(false),
        group("7", false),
        "not to be opened"
    );

    let machine = Machine::new();
    machine
        .function(A, Some("vfio-pci"), Some(0))
        .file("sys/kernel/iommu_groups/0/name", "vfio-noiommu\n");
    let path = machine.0.path().join("dev/vfio/noiommu-0");
    let no_iommu = true;
    assert_eq!(
        machine.device_file(true),
        DeviceFile::Group { path, no_iommu }
    );
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
            "run it as root: the device has no IOMMU",
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
