//! VFIO errors: why a device is not available, with the remedy.

use std::io;
use std::path::{Path, PathBuf};

use super::options::VfioOptions;
use crate::bus::BusError;
use crate::bus::pci::{ALLOW_NO_IOMMU, Address, Function, Sysfs};

/// A step that the system refused.
pub(super) fn system(
    device: &str,
    what: impl Into<String>,
    hint: &str,
    error: io::Error,
) -> BusError {
    BusError::System {
        device: device.into(),
        what: what.into(),
        hint: hint.into(),
        error,
    }
}

/// Remedy for a device that the kernel has, but that does not work.
pub(super) const GIVE_BACK: &str =
    "give it back and take it again: pollux unbind, pollux bind; `dmesg` may say more";

/// Remedy for a kernel without a working VFIO.
pub(super) const OTHER_KERNEL: &str =
    "it takes a kernel with VFIO for PCI; a container needs the files of /dev/vfio of its host";

/// Remedy for a device that cannot join the address space of the process.
pub(super) const SHARED_SPACE: &str = "all devices of a process share an address space: use this \
                                       one, and those behind the same IOMMU, in a separate process";

/// A violated precondition.
pub(super) fn wrong(device: &str, what: impl Into<String>) -> BusError {
    BusError::Device {
        device: device.into(),
        what: what.into(),
    }
}

pub(super) fn no_such_device(device: &str) -> BusError {
    wrong(
        device,
        "there is no such PCI device; `pollux ports` lists the available ones",
    )
}

pub(super) fn no_iommu(device: &str) -> BusError {
    wrong(
        device,
        "no IOMMU translates its addresses: switch it on in the firmware and boot with \
         intel_iommu=on iommu=pt (AMD: iommu=pt), or give the guest one; noiommu=on does without, \
         and the device can then write anywhere in memory",
    )
}

pub(super) fn no_iommu_not_asked(device: &str) -> BusError {
    wrong(
        device,
        "it has no IOMMU, so it could write anywhere in memory; noiommu=on accepts that",
    )
}

pub(super) fn no_iommu_not_allowed(device: &str) -> BusError {
    wrong(
        device,
        format!(
            "the kernel refuses devices without an IOMMU, unless that is enabled: modprobe vfio; \
             echo Y > {ALLOW_NO_IOMMU}; pollux bind {device}"
        ),
    )
}

pub(super) fn no_module(device: &str) -> BusError {
    wrong(
        device,
        format!("the kernel has no driver vfio-pci: modprobe vfio-pci, then pollux bind {device}"),
    )
}

pub(super) fn not_bound(device: &str, driver: Option<&str>) -> BusError {
    let has = driver.map_or_else(
        || "it has no driver".to_owned(),
        |driver| format!("it is bound to the kernel's driver {driver}"),
    );
    wrong(device, format!("{has}: pollux bind {device}"))
}

pub(super) fn not_viable(sysfs: &Sysfs, function: &Function) -> BusError {
    let kept = function.kept_back(sysfs);
    let name = |other: &Function| {
        let driver = other.driver.as_deref().unwrap_or("no driver");
        format!("{} ({driver})", other.address)
    };
    let address = |other: &Function| other.address.to_string();
    let (names, addresses): (Vec<_>, Vec<_>) = (
        kept.iter().map(name).collect(),
        kept.iter().map(address).collect(),
    );
    wrong(
        &function.address.to_string(),
        format!(
            "its IOMMU group can only be used as a whole, and the kernel has other devices of it: \
             {}; bind these too: pollux bind {}",
            names.join(", "),
            addresses.join(" ")
        ),
    )
}

/// A file under /dev cannot be opened.
pub(super) fn open(device: &str, path: &str, error: io::Error) -> BusError {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => {
            "modprobe vfio-pci and vfio_iommu_type1; a container needs the files of /dev/vfio too"
                .to_owned()
        }
        // Only processes with CAP_SYS_RAWIO may open it.
        io::ErrorKind::PermissionDenied if path.contains("noiommu-") => {
            "run it as root: the device has no IOMMU".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            format!("run it as root, or give the file to the user: chown USER {path}")
        }
        io::ErrorKind::ResourceBusy => {
            "another process has a device of its IOMMU group; `fuser -v` names it".to_owned()
        }
        _ => String::new(),
    };
    system(device, format!("cannot open {path}"), &hint, error)
}

/// The group exists, but its device is refused.
pub(super) fn device_of_group(device: &str, error: io::Error) -> BusError {
    let hint = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "a program has its physical function, or its virtual functions: vf_token= is the token \
             that both are opened with"
        }
        Some(libc::EINVAL) => "vf_token= is for virtual functions and those that have them",
        Some(libc::EBUSY) => "another process has it",
        _ => GIVE_BACK,
    };
    system(device, "the kernel does not hand it out", hint, error)
}

/// The device has its own device file, but is refused (the kernel's drivers/vfio).
pub(super) fn own_device(
    sysfs: &Sysfs,
    function: &Function,
    options: &VfioOptions,
    error: io::Error,
) -> BusError {
    let device = function.address.to_string();
    let or_else = match error.raw_os_error() {
        // Another owner has its group: the kernel, or another process
        // (iommu_device_claim_dma_owner).
        Some(libc::EPERM) if !function.kept_back(sysfs).is_empty() => {
            return not_viable(sysfs, function);
        }
        // The same code reports that interrupts are not isolated (iommufd_device_bind).
        Some(libc::EPERM) => {
            ". If none has, the IOMMU does not remap interrupts: switch that on in the firmware, or \
             accept forged interrupts: echo Y > \
             /sys/module/iommufd/parameters/allow_unsafe_interrupts"
        }
        // Its group is open (vfio_device_block_group).
        Some(libc::EBUSY) => "",
        // It is open itself (vfio_df_open), or takes no token, or iommufd_device_bind has found no
        // cache coherency.
        Some(libc::EINVAL) if options.vf_token.is_none() => {
            ". If none has, the IOMMU does not keep its accesses coherent with the caches, which \
             /dev/iommu insists on: have the files of the groups instead (CONFIG_VFIO_GROUP)"
        }
        _ => return device_of_group(&device, error),
    };
    let hint = format!(
        "another process has it, or a device of its IOMMU group; `fuser -v` on the files of \
         /dev/vfio names it{or_else}"
    );
    system(&device, "the kernel does not hand it out", &hint, error)
}

/// A container refuses the IOMMU.
pub(super) fn set_iommu(device: &str, error: io::Error) -> BusError {
    let hint = match error.raw_os_error() {
        Some(libc::EPERM) => {
            "the IOMMU does not remap interrupts: switch that on in the firmware, or accept forged \
             interrupts: echo Y > \
             /sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts"
        }
        Some(libc::ENODEV) => "modprobe vfio_iommu_type1",
        _ => GIVE_BACK,
    };
    system(device, "VFIO does not get at the IOMMU", hint, error)
}

/// Memory cannot be mapped for the device. `locked` is the number of bytes that the process has
/// locked, as far as they are its own; `limit` is its limit.
pub(super) fn map(
    device: &str,
    len: usize,
    locked: u64,
    limit: Option<u64>,
    error: io::Error,
) -> BusError {
    let what = format!("cannot map {len} bytes of memory for it");
    let needed = locked + len as u64;
    match (error.raw_os_error(), limit) {
        (Some(libc::ENOMEM), Some(limit)) if needed > limit => {
            let hint = format!(
                "they are locked in memory: {needed} bytes with what is locked already, and the \
                 limit is {limit}; raise it: `ulimit -l {}`, or LimitMEMLOCK={needed} of the \
                 service",
                needed.div_ceil(1024)
            );
            system(device, what, &hint, error)
        }
        (Some(libc::ENOMEM), Some(limit)) => {
            // /dev/iommu counts what all processes of the user have locked by it.
            let more = limit.saturating_add(len as u64);
            let hint = format!(
                "they are locked in memory, where the user's processes may lock {limit} bytes; \
                 raise that: `ulimit -l {}`, or LimitMEMLOCK={more} of the service",
                more.div_ceil(1024)
            );
            system(device, what, &hint, error)
        }
        (Some(libc::ENOSPC), _) => {
            let hint = "the kernel's limit on mappings: \
                        /sys/module/vfio_iommu_type1/parameters/dma_entry_limit; larger pages \
                        need fewer";
            system(device, what, hint, error)
        }
        _ => system(device, what, "`dmesg` may say why", error),
    }
}

/// Programs use its virtual functions, and the kernel would wait for them without an end.
pub(super) fn functions_in_use(device: &str, used: &[(Address, PathBuf)]) -> BusError {
    let names: Vec<_> = used.iter().map(|(vf, _)| vf.to_string()).collect();
    let files: Vec<_> = used
        .iter()
        .map(|(_, at)| at.display().to_string())
        .collect();
    wrong(
        device,
        format!(
            "a program has its virtual functions {}, so that they cannot be removed: end it \
             (`fuser -v {}` names it), then: echo 0 > /sys/bus/pci/devices/{device}/sriov_numvfs",
            names.join(", "),
            files.join(" ")
        ),
    )
}

/// Whether a program uses a virtual function cannot be determined.
pub(super) fn functions_unknown(
    device: &str,
    vf: Address,
    path: &Path,
    error: io::Error,
) -> BusError {
    let hint = match error.kind() {
        io::ErrorKind::NotFound => "bring these files into the container",
        io::ErrorKind::PermissionDenied => "run it as root, with the vf_token= of its functions",
        _ => "end the programs that have one",
    };
    let what = format!(
        "its virtual functions are not removed: whether a program has {vf} is unknown, by {}",
        path.display()
    );
    let hint = format!(
        "{hint}, or: echo 0 > /sys/bus/pci/devices/{device}/sriov_numvfs, which waits for them"
    );
    system(device, what, &hint, error)
}

/// Its virtual functions cannot be created.
pub(super) fn virtual_functions(device: &str, count: u16, error: io::Error) -> BusError {
    let hint = match error.raw_os_error() {
        Some(libc::ENOENT) => {
            "it has none, or vfio-pci was not told that it may make them: echo Y > \
             /sys/module/vfio_pci/parameters/enable_sriov, or modprobe vfio-pci enable_sriov=1"
        }
        Some(libc::ERANGE) => "sriov_totalvfs in its folder of sysfs says how many it can have",
        Some(libc::EACCES | libc::EPERM) => "run it as root",
        _ => GIVE_BACK,
    };
    system(device, format!("{count} virtual functions"), hint, error)
}
