//! Number of virtual functions (VFs) of a device.
//!
//! The kernel creates and removes them (its Documentation/PCI/pci-iov-howto.rst). Removing a VF
//! that a program uses by VFIO blocks in the kernel until the program releases it, and no signal
//! interrupts that. A VF is therefore removed only when no program uses it.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::token::VfToken;
use super::{abi, error};
use crate::bus::BusError;
use crate::bus::pci::{Address, Function, Sysfs};

/// Time for programs to release their VFs, once the physical function is at rest: a driver of this
/// crate detects the lost link at its next check.
const PATIENCE: Duration = Duration::from_secs(5);

/// The VFs of a device.
pub(super) struct Functions {
    device: Function,
    sysfs: Sysfs,
    dev: PathBuf,
    /// Token with which the VFs are opened, if their device was opened with one.
    token: Option<VfToken>,
}

/// A VF that a program may use, and the file by which it would.
struct Held {
    vf: Address,
    path: PathBuf,
    /// Whether the file is that of the VF's group, and not its own.
    of_group: bool,
}

impl Functions {
    pub(super) fn new(
        sysfs: &Sysfs,
        dev: &Path,
        device: &Function,
        token: Option<VfToken>,
    ) -> Self {
        Self {
            device: device.clone(),
            sysfs: sysfs.clone(),
            dev: dev.into(),
            token,
        }
    }

    /// Creates so many VFs, or removes the existing ones.
    ///
    /// # Errors
    /// A program uses a VF that would be removed, or that cannot be determined, or the system
    /// refused.
    pub(super) fn set(&self, count: u16) -> Result<(), BusError> {
        let name = self.device.address.to_string();
        let path = self.device.folder().join("sriov_numvfs");
        let refused = |error| error::virtual_functions(&name, count, error);
        let there = fs::read_to_string(&path).map_err(refused)?;
        let write = |count: u16| fs::write(&path, count.to_string()).map_err(refused);
        match there.trim().parse::<u16>() {
            Ok(there) if there == count => return Ok(()),
            Ok(0) | Err(_) => {}
            Ok(_) => {
                let _kept = self.keep(PATIENCE, |held| self.take(held))?;
                // The number can only be changed from zero.
                write(0)?;
            }
        }
        if count > 0 { write(count) } else { Ok(()) }
    }

    /// Keeps programs from opening the VFs, as far as `take` can. Waits for programs that use one.
    fn keep<T>(
        &self,
        patience: Duration,
        take: impl Fn(&Held) -> io::Result<T>,
    ) -> Result<Vec<T>, BusError> {
        let name = self.device.address.to_string();
        let (mut kept, mut used) = (Vec::new(), self.held());
        let began = Instant::now();
        loop {
            let mut still = Vec::new();
            for held in used {
                match take(&held) {
                    Ok(file) => kept.push(file),
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => still.push(held),
                    // It no longer exists.
                    Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                    Err(error) => {
                        return Err(error::functions_unknown(&name, held.vf, &held.path, error));
                    }
                }
            }
            used = still;
            if used.is_empty() {
                return Ok(kept);
            }
            if began.elapsed() >= patience {
                let used: Vec<_> = used.into_iter().map(|held| (held.vf, held.path)).collect();
                return Err(error::functions_in_use(&name, &used));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The VFs that programs may use. Those in the device's own group belong to this process, as
    /// the group does.
    fn held(&self) -> Vec<Held> {
        let mut groups = vec![self.device.group];
        let mut all = Vec::new();
        for vf in self.device.virtual_functions() {
            let Some(function) = self.sysfs.function(vf).filter(Function::is_on_vfio) else {
                continue;
            };
            let Some(group) = function.group else {
                continue;
            };
            if groups.contains(&function.group) {
                continue;
            }
            let prefix = if function.has_no_iommu() {
                "noiommu-"
            } else {
                ""
            };
            let path = self.dev.join(format!("vfio/{prefix}{group}"));
            let own = function.vfio_device().filter(|_| !path.exists());
            let of_group = own.is_none();
            // A kernel without group files hands out each VF by itself.
            let path = own.map_or(path, |own| self.dev.join("vfio/devices").join(own));
            if of_group {
                groups.push(function.group);
            }
            all.push(Held { vf, path, of_group });
        }
        all
    }

    /// Verifies that no program uses a VF. The group's file has one user at a time, also while its
    /// members are used by their own device files (the kernel's drivers/vfio/group.c), and is kept
    /// open. The VF's own file can be opened by any number of programs, of which one can bind it.
    /// It is closed at once, since the kernel removes no VF whose own file is open in any process.
    /// Until the removal a program may therefore still open it.
    fn take(&self, held: &Held) -> io::Result<Option<OwnedFd>> {
        let open = |path: &Path| fs::File::options().read(true).write(true).open(path);
        let file = OwnedFd::from(open(&held.path)?);
        if held.of_group {
            return Ok(Some(file));
        }
        let iommu = open(&self.dev.join("iommu"))?;
        let token = self.token.map(|token| token.0);
        match abi::bind_iommufd(file.as_fd(), iommu.as_fd(), token) {
            Ok(()) => Ok(None),
            // It is open (vfio_df_open), or another of its group is (iommufd_device_bind).
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EPERM)) => {
                Err(io::ErrorKind::ResourceBusy.into())
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::cell::Cell;
    use std::os::unix::fs::symlink;

    use super::*;

    const PF: &str = "0000:01:00.0";
    const VFS: [(&str, &str, u32); 3] = [
        ("0000:01:10.0", "vfio-pci", 7),
        ("0000:01:10.2", "vfio-pci", 8),
        ("0000:01:10.4", "igbvf", 9),
    ];

    /// A device with three functions, one of which the kernel holds; with the files of their
    /// groups, or with their own.
    fn machine(groups: bool) -> (tempfile::TempDir, Functions) {
        let machine = tempfile::tempdir().unwrap();
        let devices = machine.path().join("sys/bus/pci/devices");
        let function = |address: &str, driver: &str, group: u32| {
            let folder = devices.join(address);
            fs::create_dir_all(&folder).unwrap();
            symlink(format!("../drivers/{driver}"), folder.join("driver")).unwrap();
            symlink(format!("../groups/{group}"), folder.join("iommu_group")).unwrap();
            folder
        };
        let folder = function(PF, "vfio-pci", 1);
        for (i, (address, driver, group)) in VFS.into_iter().enumerate() {
            let vf = function(address, driver, group);
            fs::create_dir_all(vf.join(format!("vfio-dev/vfio{i}"))).unwrap();
            let files = machine.path().join("dev/vfio");
            let file = if groups {
                files.join(group.to_string())
            } else {
                files.join(format!("devices/vfio{i}"))
            };
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
            symlink(format!("../{address}"), folder.join(format!("virtfn{i}"))).unwrap();
        }
        fs::write(folder.join("sriov_numvfs"), "3\n").unwrap();
        let sysfs = Sysfs::at(machine.path().join("sys"));
        let device = sysfs.function(PF.parse().unwrap()).unwrap();
        let functions = Functions::new(&sysfs, &machine.path().join("dev"), &device, None);
        (machine, functions)
    }

    fn busy() -> io::Error {
        io::Error::from_raw_os_error(libc::EBUSY)
    }

    #[test]
    fn functions_that_a_program_has_are_not_removed() {
        for (groups, file) in [(true, "vfio/8"), (false, "vfio/devices/vfio1")] {
            let (_machine, functions) = machine(groups);
            let take = |held: &Held| {
                assert_eq!(held.of_group, groups);
                let is_busy = held.path.ends_with(file);
                (!is_busy).then_some(()).ok_or_else(busy)
            };
            let error = functions.keep(Duration::ZERO, take);
            let error = error.unwrap_err().to_string();
            assert!(error.contains("functions 0000:01:10.2, so"), "{error}");
            assert!(error.contains(&format!("dev/{file}` names it")), "{error}");
        }
    }

    #[test]
    fn functions_that_cannot_be_queried_are_not_removed() {
        // No file of /dev, no permission to open it, and a file that is not VFIO's.
        let (machine, functions) = machine(true);
        fs::remove_file(machine.path().join("dev/vfio/7")).unwrap();
        fs::remove_dir_all(
            functions
                .sysfs
                .path("bus/pci/devices/0000:01:10.0/vfio-dev"),
        )
        .unwrap();
        let error = functions.set(0).unwrap_err().to_string();
        assert!(error.contains("dev/vfio/7: No such file"), "{error}");
        assert!(error.contains("bring these files into"), "{error}");
        let denied = |_: &Held| Err::<(), _>(io::Error::from_raw_os_error(libc::EACCES));
        let error = functions.keep(Duration::ZERO, denied).unwrap_err();
        assert!(error.to_string().contains("run it as root"), "{error}");
        let (machine, functions) = self::machine(false);
        fs::write(machine.path().join("dev/iommu"), "").unwrap();
        let error = functions.set(0).unwrap_err().to_string();
        assert!(
            error.contains("whether a program has 0000:01:10.0"),
            "{error}"
        );
    }

    #[test]
    fn programs_are_waited_for() {
        let (_machine, functions) = machine(true);
        let asked = Cell::new(0);
        let busy_at_first = |held: &Held| {
            asked.set(asked.get() + 1);
            let is_busy = held.path.ends_with("vfio/7") && asked.get() < 10;
            (!is_busy).then_some(()).ok_or_else(busy)
        };
        let kept = functions.keep(Duration::from_mins(1), busy_at_first);
        assert_eq!(kept.unwrap().len(), 2);
    }

    #[test]
    fn their_number_is_written_if_it_is_another() {
        let (machine, functions) = machine(true);
        let path = machine
            .path()
            .join("sys/bus/pci/devices")
            .join(PF)
            .join("sriov_numvfs");
        let number = || fs::read_to_string(&path).unwrap();
        functions.set(3).unwrap();
        assert_eq!(number(), "3\n", "nothing is written");
        functions.set(0).unwrap();
        assert_eq!(number(), "0");
        functions.set(2).unwrap();
        assert_eq!(number(), "2");
    }
}
