//! Devices that the kernel hands to this process by VFIO (its Documentation/driver-api/vfio.rst):
//! registers are mapped, memory is mapped for the device by the IOMMU, interrupts are eventfds.

mod abi;
mod error;
mod find;
mod functions;
mod interrupts;
mod limits;
mod space;
#[cfg(test)]
mod tests;
mod token;

use std::ffi::CString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pollux_mempool::MemoryRegion;
use vfio_bindings::bindings::vfio::{
    VFIO_DEVICE_FLAGS_RESET, VFIO_PCI_CONFIG_REGION_INDEX, VFIO_REGION_INFO_FLAG_MMAP,
    vfio_device_info, vfio_region_info,
};

use self::find::Way;
use self::functions::Functions;
use self::space::{Member, Space, Translation};
pub use self::token::VfToken;
use super::mapped::MappedBar;
use super::pci::{Address, Function, Sysfs};
use super::{
    BUS_MASTER, BusError, COMMAND, Claim, Claims, Device, DmaMapping, DmaMemory, Ids, Interrupts,
};
use crate::clock::TscClock;
use crate::event::RegionOptions;
use crate::grant::MemoryGrant;

/// The devices that this process has: one that is opened twice would have two drivers.
static OPENED: Claims<Address> = Claims::new();

/// How a device is to be opened.
#[derive(Clone, Debug, Default)]
pub struct VfioOptions {
    /// Accept that no IOMMU holds the device back: it can then write anywhere in memory.
    pub no_iommu: bool,
    /// The token that a virtual function and its physical function are both opened with, where
    /// programs have both.
    pub vf_token: Option<VfToken>,
}

/// A PCI function that VFIO has handed to this process. It goes back, without the right to master
/// the bus and reset, when the device and all that it gave out are dropped.
pub struct VfioDevice(Arc<Inner>);

struct Inner {
    name: String,
    function: Function,
    functions: Functions,
    ids: Ids,
    can_reset: bool,
    config: Region,
    /// Signalled when the owner of the machine wants the device back, or has pulled it out.
    request: Option<OwnedFd>,
    is_gone: AtomicBool,
    has_interrupts: AtomicBool,
    // In the order in which they are closed: the device before its group.
    file: OwnedFd,
    _member: Option<Member>,
    space: Arc<Space>,
    _claim: Claim<Address>,
}

/// A part of the device's file.
#[derive(Clone, Copy)]
struct Region {
    offset: u64,
    len: u64,
    is_mappable: bool,
}

impl VfioDevice {
    /// Takes a device that is bound to vfio-pci. To have it takes a grant, although nothing is mapped
    /// for it yet: all devices of a process share one address space, in which it reaches what is
    /// mapped for the others, and without an IOMMU it reaches everything.
    ///
    /// # Errors
    /// What is in the way, and what to do about it.
    pub fn open(
        address: Address,
        options: &VfioOptions,
        _grant: MemoryGrant,
    ) -> Result<Self, BusError> {
        Self::open_at(&Sysfs::default(), Path::new("/dev"), address, options)
    }

    fn open_at(
        sysfs: &Sysfs,
        dev: &Path,
        address: Address,
        options: &VfioOptions,
    ) -> Result<Self, BusError> {
        let name = address.to_string();
        let (function, way) = find::find(sysfs, dev, address, options)?;
        let claim = OPENED.take(address).ok_or_else(|| {
            error::wrong(&name, "this process has it already: a device is one port")
        })?;
        let Handle {
            file,
            member,
            space,
        } = Handle::open(sysfs, dev, &function, way, options)?;
        let refused = |error| {
            error::system(
                &name,
                "it does not tell what it is",
                error::GIVE_BACK,
                error,
            )
        };
        let mut info = vfio_device_info::default();
        abi::DEVICE_GET_INFO
            .call(&file, &mut info)
            .map_err(refused)?;
        let config = region(&file, VFIO_PCI_CONFIG_REGION_INDEX).map_err(refused)?;
        let request = interrupts::on_request(file.as_fd()).map_err(refused)?;
        let mut inner = Inner {
            name,
            functions: Functions::new(sysfs, dev, &function, options.vf_token),
            function,
            ids: Ids::default(),
            can_reset: info.flags & VFIO_DEVICE_FLAGS_RESET != 0,
            config,
            request,
            is_gone: AtomicBool::new(false),
            has_interrupts: AtomicBool::new(false),
            file,
            _member: member,
            space,
            _claim: claim,
        };
        inner.ids = inner.read_ids()?;
        Ok(Self(Arc::new(inner)))
    }

    /// What sysfs told of it when it was opened.
    #[must_use]
    pub fn function(&self) -> &Function {
        &self.0.function
    }
}

/// What it takes to have a device: its file, and its place in an address space.
struct Handle {
    file: OwnedFd,
    member: Option<Member>,
    space: Arc<Space>,
}

impl Handle {
    fn open(
        sysfs: &Sysfs,
        dev: &Path,
        function: &Function,
        way: Way,
        options: &VfioOptions,
    ) -> Result<Self, BusError> {
        let name = function.address.to_string();
        match way {
            Way::Own(path) => {
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
            Way::Group { path, no_iommu } => {
                let translation = if no_iommu {
                    tracing::warn!("{name}: no IOMMU: it can write anywhere in memory");
                    Translation::Nobody
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
                // There is no zero byte in what these two print.
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

fn region(file: &OwnedFd, index: u32) -> std::io::Result<Region> {
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

/// Of the command register: it decodes its windows. Without that, an access to a mapped register
/// would end the process.
const MEMORY: u32 = 1 << 1;

/// A function that was reset answers again within so long (PCIe 4.0 section 6.6.2).
const TO_COME_BACK: Duration = Duration::from_millis(100);

/// Whether something is so each time that it is asked for so long.
fn is_so_for(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
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
    fn config(&self, at: u16) -> Result<u32, BusError> {
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

    fn set_config(&self, at: u16, value: u32) -> Result<(), BusError> {
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

    /// Where a configuration register lies in the device's file.
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

    fn refused(&self, what: &str, error: impl Into<std::io::Error>) -> BusError {
        error::system(&self.name, what, error::GIVE_BACK, error.into())
    }

    /// Configuration space of a function, PCI 3.0 section 6.1.
    fn read_ids(&self) -> Result<Ids, BusError> {
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

    /// Whether it answers nothing, or all ones, as one that was pulled out: not once in so long, as
    /// one that somebody resets is silent for a while, and comes back.
    fn stays_silent(&self, patience: Duration) -> bool {
        is_so_for(patience, || {
            self.config(0).map_or(true, |ids| ids == u32::MAX)
        })
    }

    /// From now on it reaches no memory, whatever its driver has left behind.
    fn quiesce(&self) -> Result<(), BusError> {
        // The status register in the upper half is cleared where ones are written.
        let command = self.config(COMMAND)? & 0xffff;
        self.set_config(COMMAND, command & !BUS_MASTER)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A device that is gone does not answer, and reaches nothing.
        let _ = self.quiesce();
    }
}

impl DmaMemory for VfioDevice {
    fn map(&self, region: &Arc<MemoryRegion>, _grant: MemoryGrant) -> Result<DmaMapping, BusError> {
        let addresses = self.0.space.map(&self.0.name, region)?;
        let (device, mapped) = (self.0.clone(), region.clone());
        let release = move || {
            let _ = device.quiesce();
            device.space.unmap(&mapped)
        };
        Ok(DmaMapping::new(region.clone(), addresses, release))
    }
}

impl Device for VfioDevice {
    type Bus = MappedBar;
    type Clock = TscClock;

    fn name(&self) -> &str {
        &self.0.name
    }

    fn ids(&self) -> Ids {
        self.0.ids
    }

    fn bar(&self, index: u8, needed: usize) -> Result<MappedBar, BusError> {
        let device = || self.0.name.clone();
        let no_bar = BusError::NoBar {
            device: device(),
            index,
        };
        if index > 5 {
            return Err(no_bar);
        }
        let what = format!("BAR {index} cannot be mapped");
        let refused = |error| self.0.refused(&what, error);
        let region = region(&self.0.file, index.into()).map_err(refused)?;
        let len = usize::try_from(region.len).unwrap_or(usize::MAX);
        // A window of ports is read and written by system calls alone.
        if len == 0 || !region.is_mappable {
            return Err(no_bar);
        }
        if len < needed {
            return Err(BusError::BarTooSmall {
                device: device(),
                index,
                len,
                needed,
            });
        }
        // SAFETY: the kernel has said that the device's file shows `len` bytes of a BAR there, which
        // is nobody's memory.
        unsafe { MappedBar::map(&self.0.file, region.offset, len, self.0.clone()) }.map_err(refused)
    }

    fn config(&self, at: u16) -> Result<u32, BusError> {
        self.0.config(at)
    }

    /// The device goes on decoding its windows, whatever is written to the command register.
    fn set_config(&self, at: u16, value: u32) -> Result<(), BusError> {
        self.0.set_config(at, value)
    }

    fn interrupts(&self, vectors: u16) -> Result<Interrupts, BusError> {
        interrupts::on(&self.0, vectors)
    }

    fn reset(&self) -> Result<(), BusError> {
        if !self.0.can_reset {
            let what = "it has no reset of its own (function level, or by its slot): its driver \
                        must do without, or the whole machine is reset";
            return Err(error::wrong(&self.0.name, what));
        }
        self.0.quiesce()?;
        abi::reset(self.0.file.as_fd()).map_err(|error| self.0.refused("reset", error))
    }

    fn set_virtual_functions(&self, count: u16) -> Result<(), BusError> {
        self.0.functions.set(count)
    }

    fn is_gone(&self) -> bool {
        if self.0.is_gone.load(Ordering::Relaxed) {
            return true;
        }
        let asked = self.0.request.as_ref().is_some_and(|request| {
            // Non-blocking: fails until it has been signalled.
            rustix::io::read(request, &mut [0_u8; 8]).is_ok()
        });
        let gone = asked || self.0.stays_silent(TO_COME_BACK);
        if gone {
            self.0.is_gone.store(true, Ordering::Relaxed);
        }
        gone
    }

    fn memory(&self) -> RegionOptions {
        RegionOptions {
            pages: self.0.space.pages(),
            numa_node: self.0.function.numa_node,
            ..RegionOptions::default()
        }
    }

    fn clock(&self) -> TscClock {
        TscClock::get()
    }
}
