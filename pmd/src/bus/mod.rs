//! The bus API of drivers: a device with registers, DMA memory, interrupts and a clock. VFIO, a
//! simulated card and the fake device of the tests implement it alike, so that the driver that is
//! tested is the driver that ships.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use pollux_mempool::{IovaMap, MemoryRegion};

use crate::clock::Clock;
use crate::event::RegionOptions;
use crate::grant::MemoryGrant;

mod claim;
pub(crate) mod error;
pub mod exclusive;
#[cfg(feature = "pci")]
mod mapped;
pub mod pci;
pub mod registers;
#[cfg(feature = "pci")]
pub mod vfio;

pub(crate) use claim::{Claim, Claims};
pub use error::BusError;

/// A register window of a device (a memory BAR). Clones refer to the same window.
///
/// An access outside the window, or one that is not aligned to its width, reads all ones and writes
/// nothing, as with an absent device. A driver therefore requires the window's length once, when it
/// opens it ([`Device::bar`]).
///
/// Order: a write is performed after all writes to memory and registers before it in the program,
/// so that a doorbell does not overtake its descriptors. A read is performed after the reads before
/// it in the program, and before the reads after it.
///
/// Writes are safe: to open a device takes a [`MemoryGrant`]
/// ([`VfioDevice::open`](vfio::VfioDevice::open)), whose author has promised that only the device's
/// driver writes its registers.
#[expect(clippy::len_without_is_empty, reason = "a window is never empty")]
pub trait Bus: Clone + Send + Sync + 'static {
    /// Bytes in the window.
    fn len(&self) -> usize;

    /// The byte at `at`.
    fn read8(&self, at: usize) -> u8;
    /// The 16-bit register at `at`.
    fn read16(&self, at: usize) -> u16;
    /// The 32-bit register at `at`.
    fn read32(&self, at: usize) -> u32;
    /// Writes the byte at `at`.
    fn write8(&self, at: usize, value: u8);
    /// Writes the 16-bit register at `at`.
    fn write16(&self, at: usize, value: u16);
    /// Writes the 32-bit register at `at`.
    fn write32(&self, at: usize, value: u32);
}

/// Offset of the command register in configuration space (PCI 3.0 section 6.2.2).
pub const COMMAND: u16 = 0x04;
/// Bit of the command register that enables a device to access memory (bus master).
pub const BUS_MASTER: u32 = 1 << 2;

/// Whether a window of `len` bytes contains an aligned register of `width` bytes at `at`; for
/// implementations of [`Bus`].
#[inline]
#[must_use]
pub fn is_register(len: usize, at: usize, width: usize) -> bool {
    at.is_multiple_of(width) && at < len && width <= len - at
}

/// Mapping of memory for a device (DMA).
pub trait DmaMemory: Send + Sync {
    /// Lets the device read and write a region until the mapping is ended or dropped. The grant
    /// promises that the device accesses only the buffers that it is given. Quiesce the device
    /// before the end: behind an IOMMU a later access faults, without one it hits the next owner of
    /// the memory.
    ///
    /// # Errors
    /// The refusal of the system, and the remedy.
    fn map(&self, region: &Arc<MemoryRegion>, grant: MemoryGrant) -> Result<DmaMapping, BusError>;
}

/// A PCI function that this process has opened.
pub trait Device: DmaMemory + 'static {
    /// Its registers.
    type Bus: Bus;
    /// The time of its environment.
    type Clock: Clock + Sync + 'static;

    /// Its name in messages: `0000:03:00.0`.
    fn name(&self) -> &str;

    /// Its vendor and device IDs.
    fn ids(&self) -> Ids;

    /// Its register window number `index` (0 to 5), which has at least `needed` bytes.
    ///
    /// # Errors
    /// [`BusError::NoBar`], [`BusError::BarTooSmall`], or a refused mapping.
    fn bar(&self, index: u8, needed: usize) -> Result<Self::Bus, BusError>;

    /// Reads 32 bits of its configuration space at `at`, which is a multiple of four.
    ///
    /// # Errors
    /// The offset is beyond the end of configuration space, or the read fails.
    fn config(&self, at: u16) -> Result<u32, BusError>;

    /// Writes 32 bits of its configuration space.
    ///
    /// # Errors
    /// As for [`config`](Self::config).
    fn set_config(&self, at: u16, value: u32) -> Result<(), BusError>;

    /// Enables or disables its access to memory (bus master enable, PCI 3.0 section 6.2.2).
    ///
    /// # Errors
    /// As for [`config`](Self::config).
    fn set_bus_master(&self, on: bool) -> Result<(), BusError> {
        // Writing ones to the status register in the upper half clears its bits; zeros keep them.
        let command = self.config(COMMAND)? & 0xffff;
        let bit = if on { BUS_MASTER } else { 0 };
        self.set_config(COMMAND, command & !BUS_MASTER | bit)
    }

    /// Disables its access to memory, and returns whether that is proven: its command register,
    /// read back, has bus mastering disabled. A device that is gone, or behind a broken bus, reads
    /// all ones, which proves nothing. The completion of the read follows the writes that the
    /// device had begun (PCI 3.0 section 3.2.5).
    fn cut_off(&self) -> bool {
        // The read below detects a failed write.
        let _ = self.set_bus_master(false);
        let command = self.config(COMMAND);
        command.is_ok_and(|command| command & BUS_MASTER == 0)
    }

    /// Enables MSI-X with `vectors` vectors, each of which is an eventfd. Dropping the value
    /// disables it.
    ///
    /// # Errors
    /// [`BusError::Interrupts`] if it has fewer.
    fn interrupts(&self, vectors: u16) -> Result<Interrupts, BusError>;

    /// Resets the function (function level reset, or an equivalent). Bus mastering is then
    /// disabled.
    ///
    /// # Errors
    /// It has no reset, or the system refused it.
    fn reset(&self) -> Result<(), BusError>;

    /// Sets its number of virtual functions (PCIe SR-IOV), each a device of its own; 0 removes
    /// them. Waits some seconds at most for programs that use functions to be removed, so call it
    /// from the thread that opens and closes ports.
    ///
    /// # Errors
    /// It supports none, or fewer, or a program still uses one, or the system refused; with the
    /// remedy.
    fn set_virtual_functions(&self, _count: u16) -> Result<(), BusError> {
        let device = self.name().into();
        let what = "has no virtual functions".into();
        Err(BusError::Device { device, what })
    }

    /// Whether it has been unplugged, or its owner has requested it back. May enter the kernel, and
    /// wait for a device that does not answer: for housekeeping.
    fn is_gone(&self) -> bool;

    /// Options for memory that the device will use: its NUMA node, where known, and a page size
    /// that can be mapped for it.
    fn memory(&self) -> RegionOptions;

    /// Whether the device runs in real time, so that counters of few bits overflow unless a thread of
    /// the driver reads them. For a simulation, whose time advances with its polls,
    /// [`Driver::link`](crate::driver::Driver::link) reads them.
    fn counts_in_real_time(&self) -> bool {
        false
    }

    /// The clock for its driver's waits.
    fn clock(&self) -> Self::Clock;
}

/// IDs of a PCI function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    /// Vendor ID.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
    /// Vendor of the board.
    pub subsystem_vendor: u16,
    /// Board ID.
    pub subsystem: u16,
    /// Revision of the device.
    pub revision: u8,
}

/// Vendor and device ID: `8086:10d3`.
impl fmt::Display for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:04x}", self.vendor, self.device)
    }
}

/// Memory mapped for a device; dropping it removes the mapping.
pub struct DmaMapping {
    /// Ends the mapping; `None` when it has ended.
    release: Option<Release>,
    region: Arc<MemoryRegion>,
    addresses: IovaMap,
}

/// Ends a mapping, and returns what [`DmaMapping::end`] does.
type Release = Box<dyn FnOnce() -> bool + Send + Sync>;

impl DmaMapping {
    /// A mapping of `region` that the device sees at `addresses`. `release` ends it, and returns
    /// whether the device is [proven](Self::end) to have no access to the region any more.
    #[must_use]
    pub fn new(
        region: Arc<MemoryRegion>,
        addresses: IovaMap,
        release: impl FnOnce() -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            release: Some(Box::new(release)),
            region,
            addresses,
        }
    }

    /// Ends the mapping, and returns whether the end is proven: an IOMMU has removed the mapping,
    /// so that no access of the device reaches the region any more. `false` without an IOMMU, if it
    /// refused, or if another device of this process, which shares the address space, still maps
    /// the region.
    #[must_use]
    pub fn end(mut self) -> bool {
        self.release.take().is_some_and(|release| release())
    }

    /// The memory.
    #[must_use]
    pub fn region(&self) -> &Arc<MemoryRegion> {
        &self.region
    }

    /// Addresses at which the device sees it.
    #[must_use]
    pub fn addresses(&self) -> &IovaMap {
        &self.addresses
    }
}

impl Drop for DmaMapping {
    /// Ends the mapping before the region is freed.
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release();
        }
    }
}

/// Enabled interrupt vectors; dropping it disables them.
pub struct Interrupts {
    // Dropped first: no vector signals a closed descriptor.
    _release: Box<dyn Send + Sync>,
    events: Vec<OwnedFd>,
}

impl Interrupts {
    /// Vectors that signal `events`, until `release` is dropped.
    #[must_use]
    pub fn new(events: Vec<OwnedFd>, release: impl Send + Sync + 'static) -> Self {
        Self {
            _release: Box::new(release),
            events,
        }
    }

    /// The eventfd of a vector: non-blocking, readable once the device has signalled.
    #[must_use]
    pub fn event(&self, vector: u16) -> Option<BorrowedFd<'_>> {
        self.events.get(usize::from(vector)).map(AsFd::as_fd)
    }
}
