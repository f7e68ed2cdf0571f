//! An open VFIO device: its file, its address space, its configuration registers. Bus mastering is
//! disabled when this is dropped.

use std::ffi::CString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use vfio_bindings::bindings::vfio::{VFIO_REGION_INFO_FLAG_MMAP, vfio_region_info};

use super::find::DeviceFile;
use super::functions::Functions;
use super::options::VfioOptions;
use super::space::{self, Member, Space, Translation};
use super::{abi, error};
use crate::bus::pci::{Address, Function, Sysfs};
use crate::bus::{BUS_MASTER, BusError, COMMAND, Claim, Ids};

/// An open device with all that keeps it open.
pub(super) struct Inner {
    pub(super) name: String,
    pub(super) function: Function,
    pub(super) functions: Functions,
    pub(super) ids: Ids,
    pub(super) can_reset: bool,
    pub(super) config: Region,
    /// Signalled when the owner of the machine requests the device back, or has unplugged it.
    pub(super) request: Option<OwnedFd>,
    pub(super) is_gone: AtomicBool,
    pub(super) has_interrupts: AtomicBool,
    // Closed in this order: the device before its group.
    pub(super) file: OwnedFd,
    pub(super) _member: Option<Member>,
    pub(super) space: Arc<Space>,
    pub(super) _claim: Claim<Address>,
}

/// A region of the device's file.
#[derive(Clone, Copy)]
pub(super) struct Region {
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) is_mappable: bool,
}

/// A device's file, and its membership in an address space.
pub(super) struct Handle {
    pub(super) file: OwnedFd,
    pub(super) member: Option<Member>,
    pub(super) space: Arc<Space>,
}

impl Handle {
    pub(super) fn open(
        sysfs: &Sysfs,
        dev: &Path,
        function: &Function,
        device_file: DeviceFile,
        options: &VfioOptions,
    ) -> Result<Self, BusError> {
        let name = function.address.to_string();
        match device_file {
            DeviceFile::Own(path) => {
                let space = Space::shared(Translation::Iommufd, dev, &name)?;
                let file = space::open(&path, &name)?;
                space
                    .bind(file.as_fd(), options.vf_token.map(|token| token.0))
                    .map_err(|error| error::own_device(sysfs, function, options, error))?;
                space.attach(file.as_fd()).map_err(|error| {
                    let what = "the IOMMU does not give it this process's address space";
                    error::system(&name, what, error::SHARED_SPACE, error)
                })?;
                Ok(Self {
                    file,
                    member: None,
                    space,
                })
            }
            DeviceFile::Group { path, no_iommu } => {
                let translation = if no_iommu {
                    tracing::warn!("{name}: no IOMMU: it can write anywhere in memory");
                    Translation::Physical
                } else {
                    Translation::Container
                };
                let space = Space::shared(translation, dev, &name)?;
                let not_viable = || error::not_viable(sysfs, function);
                let member = space.join(&path, &name, not_viable)?;
                // The kernel's drivers/vfio/pci/vfio_pci_core.c, vfio_pci_core_match.
                let with_token = match &options.vf_token {
                    None => name.clone(),
                    Some(token) => format!("{name} vf_token={token}"),
                };
                // These two print no zero byte.
                let with_token = CString::new(with_token).unwrap_or_default();
                let file = member
                    .device(&with_token)
                    .map_err(|error| error::device_of_group(&name, error))?;
                Ok(Self {
                    file,
                    member: Some(member),
                    space,
                })
            }
        }
    }
}

pub(super) fn region(file: &OwnedFd, index: u32) -> std::io::Result<Region> {
    let mut info = vfio_region_info {
        index,
        ..Default::default()
    };
    abi::DEVICE_GET_REGION_INFO.call(file, &mut info)?;
    Ok(Region {
        offset: info.offset,
        len: info.size,
        is_mappable: info.flags & VFIO_REGION_INFO_FLAG_MMAP != 0,
    })
}

/// Command register bit: the device decodes its windows. Without it, an access to a mapped register
/// would end the process.
const MEMORY: u32 = 1 << 1;

/// Time in which a function answers after a reset (PCIe 4.0 section 6.6.2).
pub(super) const TO_COME_BACK: Duration = Duration::from_millis(100);

/// Whether a condition holds at every check for a time.
pub(super) fn is_so_for(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while is_so() {
        if began.elapsed() >= patience {
            return true;
        }
        thread::sleep(Duration::from_millis(5));
    }
    false
}

impl Inner {
    pub(super) fn config(&self, at: u16) -> Result<u32, BusError> {
        let mut word = [0; 4];
        let at_file = self.place(at)?;
        match rustix::io::pread(&self.file, &mut word, at_file) {
            Ok(4) => Ok(u32::from_le_bytes(word)),
            Ok(_) => Err(self.no_config(at)),
            Err(error) => {
                Err(self.refused(&format!("reading configuration register {at:#x}"), error))
            }
        }
    }

    pub(super) fn set_config(&self, at: u16, value: u32) -> Result<(), BusError> {
        let at_file = self.place(at)?;
        let value = if at == COMMAND { value | MEMORY } else { value };
        match rustix::io::pwrite(&self.file, &value.to_le_bytes(), at_file) {
            Ok(4) => Ok(()),
            Ok(_) => Err(self.no_config(at)),
            Err(error) => {
                Err(self.refused(&format!("writing configuration register {at:#x}"), error))
            }
        }
    }

    /// Offset of a configuration register in the device's file.
    fn place(&self, at: u16) -> Result<u64, BusError> {
        if at.is_multiple_of(4) && u64::from(at) + 4 <= self.config.len {
            Ok(self.config.offset + u64::from(at))
        } else {
            Err(self.no_config(at))
        }
    }

    fn no_config(&self, at: u16) -> BusError {
        let device = self.name.clone();
        BusError::NoConfig { device, at }
    }

    pub(super) fn refused(&self, what: &str, error: impl Into<std::io::Error>) -> BusError {
        error::system(&self.name, what, error::GIVE_BACK, error.into())
    }

    /// Configuration space of a function, PCI 3.0 section 6.1.
    pub(super) fn read_ids(&self) -> Result<Ids, BusError> {
        let halves = |word: u32| (word as u16, (word >> 16) as u16);
        let (vendor, device) = halves(self.config(0x00)?);
        let (subsystem_vendor, subsystem) = halves(self.config(0x2c)?);
        let revision = self.config(0x08)? as u8;
        Ok(Ids {
            vendor,
            device,
            subsystem_vendor,
            subsystem,
            revision,
        })
    }

    /// Whether it does not answer, or reads all ones, as an unplugged device does; for the whole
    /// time, since a device that another process resets is silent for a while and then answers
    /// again.
    pub(super) fn stays_silent(&self, patience: Duration) -> bool {
        is_so_for(patience, || {
            self.config(0).map_or(true, |ids| ids == u32::MAX)
        })
    }

    /// Disables bus mastering: it then accesses no memory, whatever state its driver has left.
    pub(super) fn quiesce(&self) -> Result<(), BusError> {
        // Writing ones to the status register in the upper half clears its bits; zeros keep them.
        let command = self.config(COMMAND)? & 0xffff;
        self.set_config(COMMAND, command & !BUS_MASTER)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A device that is gone does not answer, and accesses nothing.
        let _ = self.quiesce();
    }
}
