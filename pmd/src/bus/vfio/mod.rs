//! VFIO devices (the kernel's Documentation/driver-api/vfio.rst): registers are mapped into the
//! process, the IOMMU maps memory for the device, interrupts are eventfds.

mod abi;
mod error;
mod find;
mod functions;
mod interrupts;
mod limits;
mod opened;
mod options;
mod space;
#[cfg(test)]
mod tests;
mod token;

use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pollux_mempool::MemoryRegion;
use vfio_bindings::bindings::vfio::{
    VFIO_DEVICE_FLAGS_RESET, VFIO_PCI_CONFIG_REGION_INDEX, vfio_device_info,
};

use self::functions::Functions;
use self::opened::{Handle, Inner, TO_COME_BACK, region};
pub use self::options::VfioOptions;
pub use self::token::VfToken;
use super::mapped::MappedBar;
use super::pci::{Address, Function, Sysfs};
use super::{BusError, Claims, Device, DmaMapping, DmaMemory, Ids, Interrupts};
use crate::clock::TscClock;
use crate::event::RegionOptions;
use crate::grant::MemoryGrant;

/// Devices that this process has open: a device that is opened twice would have two drivers.
static OPENED: Claims<Address> = Claims::new();

/// A PCI function that VFIO has handed to this process. It is returned, reset and with bus
/// mastering disabled, when the device and all values obtained from it are dropped.
pub struct VfioDevice(Arc<Inner>);

impl VfioDevice {
    /// Opens a device that is bound to vfio-pci. It takes a grant although nothing is mapped for it
    /// yet: all devices of a process share one address space, in which it can access what is mapped
    /// for the others, and without an IOMMU it can access everything.
    ///
    /// # Errors
    /// The obstacle, and the remedy.
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
        let (function, device_file) = find::find(sysfs, dev, address, options)?;
        let claim = OPENED.take(address).ok_or_else(|| {
            error::wrong(&name, "this process has it already: a device is one port")
        })?;
        let Handle {
            file,
            member,
            space,
        } = Handle::open(sysfs, dev, &function, device_file, options)?;
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

    /// Its description in sysfs when it was opened.
    #[must_use]
    pub fn function(&self) -> &Function {
        &self.0.function
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
        // An I/O port window is accessible by system calls only.
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
        // SAFETY: the kernel has reported that the device's file has `len` bytes of a BAR there,
        // which no other code uses as memory.
        unsafe { MappedBar::map(&self.0.file, region.offset, len, self.0.clone()) }.map_err(refused)
    }

    fn config(&self, at: u16) -> Result<u32, BusError> {
        self.0.config(at)
    }

    /// The device continues to decode its windows, whatever is written to the command register.
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

    fn counts_in_real_time(&self) -> bool {
        true
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
