//! How many virtual functions (VFs) a device has.
//!
//! The kernel makes and removes them (its Documentation/PCI/pci-iov-howto.rst), and who removes one
//! that a program has by VFIO waits in the kernel until the program lets go of it, beyond the reach
//! of any signal. So a VF is removed when nobody has it.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::error;
use crate::bus::BusError;
use crate::bus::pci::{Address, Function, Sysfs};

/// How long programs have to let go of their VFs, once the physical function is at rest: a driver
/// of ours sees its link go down at its next look.
const PATIENCE: Duration = Duration::from_secs(5);

/// The VFs of a device.
pub(super) struct Functions {
    device: Function,
    sysfs: Sysfs,
    dev: PathBuf,
}

impl Functions {
    pub(super) fn new(sysfs: &Sysfs, dev: &Path, device: &Function) -> Self {
        Self {
            device: device.clone(),
            sysfs: sysfs.clone(),
            dev: dev.into(),
        }
    }

    /// Has so many of them made, or those that there are removed.
    ///
    /// # Errors
    /// A program has one that is to be removed, or the system refused.
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
                let open = |at: &Path| OpenOptions::new().read(true).write(true).open(at);
                let _kept = self.keep(PATIENCE, open)?;
                // Their number is changed by way of none.
                write(0)?;
            }
        }
        if count > 0 { write(count) } else { Ok(()) }
    }

    /// Keeps the VFs from programs: one has the file of their IOMMU group at a time. Waits for those
    /// who have it.
    fn keep<T>(
        &self,
        patience: Duration,
        open: impl Fn(&Path) -> io::Result<T>,
    ) -> Result<Vec<T>, BusError> {
        let (mut kept, mut used) = (Vec::new(), self.files());
        let began = Instant::now();
        loop {
            used.retain(|(_, path)| match open(path) {
                Ok(file) => {
                    kept.push(file);
                    false
                }
                // Where there is no such file, no program has any of the group.
                Err(error) => error.kind() == io::ErrorKind::ResourceBusy,
            });
            if used.is_empty() {
                return Ok(kept);
            }
            if began.elapsed() >= patience {
                let name = self.device.address.to_string();
                return Err(error::functions_in_use(&name, &used));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// The files of the groups of VFs that programs may have, each once. That of the device's own
    /// group is open here, and for nobody else.
    fn files(&self) -> Vec<(Address, PathBuf)> {
        let mut groups = vec![self.device.group];
        let mut files = Vec::new();
        for vf in self.device.virtual_functions() {
            let Some(function) = self.sysfs.function(vf).filter(Function::is_on_vfio) else {
                continue;
            };
            if let Some(group) = function.group
                && !groups.contains(&function.group)
            {
                groups.push(function.group);
                files.push((vf, self.dev.join(format!("vfio/{group}"))));
            }
        }
        files
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

    /// A device with three functions, one of which the kernel has.
    fn machine() -> (tempfile::TempDir, Functions) {
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
            function(address, driver, group);
            symlink(format!("../{address}"), folder.join(format!("virtfn{i}"))).unwrap();
        }
        fs::write(folder.join("sriov_numvfs"), "3\n").unwrap();
        let sysfs = Sysfs::at(machine.path().join("sys"));
        let device = sysfs.function(PF.parse().unwrap()).unwrap();
        let functions = Functions::new(&sysfs, &machine.path().join("dev"), &device);
        (machine, functions)
    }

    #[test]
    fn functions_that_a_program_has_are_not_removed() {
        let (_machine, functions) = machine();
        let busy = |path: &Path| {
            let is_busy = path.ends_with("vfio/8");
            let busy = || io::Error::from_raw_os_error(libc::EBUSY);
            if is_busy { Err(busy()) } else { Ok(()) }
        };
        let error = functions
            .keep(Duration::ZERO, busy)
            .unwrap_err()
            .to_string();
        assert!(error.contains("functions 0000:01:10.2, so"), "{error}");
        assert!(error.contains("dev/vfio/8` names it"), "{error}");
    }

    #[test]
    fn programs_are_waited_for() {
        let (_machine, functions) = machine();
        let asked = Cell::new(0);
        let busy_at_first = |path: &Path| {
            asked.set(asked.get() + 1);
            let busy = path.ends_with("vfio/7") && asked.get() < 10;
            (!busy)
                .then_some(())
                .ok_or(io::ErrorKind::ResourceBusy.into())
        };
        let kept = functions.keep(Duration::from_mins(1), busy_at_first);
        assert_eq!(kept.unwrap().len(), 2);
    }

    #[test]
    fn their_number_is_written_if_it_is_another() {
        let (machine, functions) = machine();
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
