//! What a driver sees of the world: a device with registers, memory that the device reaches,
//! interrupts and time. Nothing of how these come about: VFIO, a simulated card and the fake
//! device of the tests look alike, so that the driver which is tested is the driver that ships.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use pollux_mempool::{IovaMap, MemoryRegion};

use crate::clock::Clock;
use crate::event::RegionOptions;
use crate::grant::MemoryGrant;

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod adversary;
mod claim;
pub(crate) mod error;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fake;
#[cfg(feature = "pci")]
mod mapped;
pub mod pci;
pub mod registers;
#[cfg(feature = "pci")]
pub mod vfio;

pub(crate) use claim::{Claim, Claims};
pub use error::BusError;

/// A window of a device's registers (a memory BAR). Clones are the same window.
///
/// An access outside the window, or one that is not aligned to its width, reads all ones and
/// writes nothing, as with a device that is gone: a driver asks for a window that is long enough,
/// once, when it opens it ([`Device::bar`]).
///
/// Order: a write is performed after all writes to memory and registers that stand before it in
/// the program, so that a doorbell does not overtake the descriptors that it announces; a read is
/// performed after the reads that stand before it, and before those that stand behind it.
///
/// Writes are safe: to have a device takes a [`MemoryGrant`]
/// ([`VfioDevice::open`](vfio::VfioDevice::open)), and whoever made that has promised that nothing but
/// the device's driver writes its registers.
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

/// Command register, and its bit that lets a device reach memory (PCI 3.0 section 6.2.2).
const COMMAND: u16 = 0x04;
const BUS_MASTER: u32 = 1 << 2;

/// Whether a window of `len` bytes has a register of `width` bytes at `at`.
#[inline]
fn is_register(len: usize, at: usize, width: usize) -> bool {
    at.is_multiple_of(width) && at < len && width <= len - at
}

/// Something whose device reaches our memory, once it is told of it.
pub trait DmaMemory: Send + Sync {
    /// Lets the device read and write a region until the mapping is ended or dropped: the grant
    /// says that the device keeps to what it is told of. Quiesce the device before the end: behind
    /// an IOMMU a later access faults, without one it hits the next owner of the memory.
    ///
    /// # Errors
    /// What the system refused, and what to do about it.
    fn map(&self, region: &Arc<MemoryRegion>, grant: MemoryGrant) -> Result<DmaMapping, BusError>;
}

/// A PCI function that this process has taken over.
pub trait Device: DmaMemory + 'static {
    /// Its registers.
    type Bus: Bus;
    /// The time in its world.
    type Clock: Clock + Sync + 'static;

    /// How it is called in messages: `0000:03:00.0`.
    fn name(&self) -> &str;

    /// What it is.
    fn ids(&self) -> Ids;

    /// Its window of registers number `index` (0 to 5), which has at least `needed` bytes.
    ///
    /// # Errors
    /// [`BusError::NoBar`], [`BusError::BarTooSmall`], or a mapping that cannot be had.
    fn bar(&self, index: u8, needed: usize) -> Result<Self::Bus, BusError>;

    /// 32 bits of its configuration space at `at`, which is a multiple of four.
    ///
    /// # Errors
    /// Configuration space ends before that, or cannot be read.
    fn config(&self, at: u16) -> Result<u32, BusError>;

    /// Writes 32 bits of its configuration space.
    ///
    /// # Errors
    /// As for [`config`](Self::config).
    fn set_config(&self, at: u16, value: u32) -> Result<(), BusError>;

    /// Lets it reach memory, or no longer (bus master enable, PCI 3.0 section 6.2.2).
    ///
    /// # Errors
    /// As for [`config`](Self::config).
    fn set_bus_master(&self, on: bool) -> Result<(), BusError> {
        // The status register in the upper half is cleared where ones are written.
        let command = self.config(COMMAND)? & 0xffff;
        let bit = if on { BUS_MASTER } else { 0 };
        self.set_config(COMMAND, command & !BUS_MASTER | bit)
    }

    /// Takes its way to memory from it, and returns whether that is proven: its command register,
    /// read back, says that it does not master the bus. A device that is gone, or behind a bus that
    /// is broken, reads all ones, which proves nothing. The answer to the read comes behind the
    /// writes that the device had begun (PCI 3.0 section 3.2.5).
    fn cut_off(&self) -> bool {
        // What could not be written is seen below.
        let _ = self.set_bus_master(false);
        let command = self.config(COMMAND);
        command.is_ok_and(|command| command & BUS_MASTER == 0)
    }

    /// Switches MSI-X on with `vectors` vectors, each of which is an eventfd. Dropping the value
    /// switches it off.
    ///
    /// # Errors
    /// [`BusError::Interrupts`] where it has fewer.
    fn interrupts(&self, vectors: u16) -> Result<Interrupts, BusError>;

    /// Resets the function (function level reset, or what stands in for it). It cannot master the
    /// bus then.
    ///
    /// # Errors
    /// It has no reset, or the system refused it.
    fn reset(&self) -> Result<(), BusError>;

    /// Has it so many virtual functions (PCIe SR-IOV), each a device of its own; 0 removes them.
    /// Programs that have some of those that are removed are waited for, some seconds at most, so
    /// this is for the thread that opens and closes ports.
    ///
    /// # Errors
    /// It has none, or fewer, or somebody has one still, or the system refused; and what to do
    /// about it.
    fn set_virtual_functions(&self, _count: u16) -> Result<(), BusError> {
        let device = self.name().into();
        let what = "has no virtual functions".into();
        Err(BusError::Device { device, what })
    }

    /// Whether it has been unplugged, or its owner wants it back. May enter the kernel, and wait for
    /// a device that does not answer: for housekeeping.
    fn is_gone(&self) -> bool;

    /// What memory that is made for it is to be like: on its NUMA node, where that is known, and of
    /// pages that it can be given.
    fn memory(&self) -> RegionOptions;

    /// The clock that its driver waits by.
    fn clock(&self) -> Self::Clock;
}

/// What a PCI function is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    /// Who made it.
    pub vendor: u16,
    /// Which of theirs.
    pub device: u16,
    /// Vendor of the board.
    pub subsystem_vendor: u16,
    /// Which board.
    pub subsystem: u16,
    /// Revision of the device.
    pub revision: u8,
}

/// By its numbers: `8086:10d3`.
impl fmt::Display for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:04x}", self.vendor, self.device)
    }
}

/// Memory that a device reaches; dropping it takes the memory away from the device.
pub struct DmaMapping {
    /// Ends it; `None` when it has ended.
    release: Option<Release>,
    region: Arc<MemoryRegion>,
    addresses: IovaMap,
}

/// Ends a mapping, and returns what [`DmaMapping::end`] does.
type Release = Box<dyn FnOnce() -> bool + Send + Sync>;

impl DmaMapping {
    /// A mapping of `region` that the device sees at `addresses`. `release` ends it, and returns
    /// whether it is [proven](Self::end) that the device has lost its way to the region.
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

    /// Takes the memory away from the device, and returns whether that is proven: an IOMMU has
    /// removed the mapping, so that nothing the device does reaches the region any more. `false`
    /// where there is no IOMMU, where it refused, and where another device of this process, which
    /// is in the same address space, still has the region.
    #[must_use]
    pub fn end(mut self) -> bool {
        self.release.take().is_some_and(|release| release())
    }

    /// The memory.
    #[must_use]
    pub fn region(&self) -> &Arc<MemoryRegion> {
        &self.region
    }

    /// Where the device sees it.
    #[must_use]
    pub fn addresses(&self) -> &IovaMap {
        &self.addresses
    }
}

impl Drop for DmaMapping {
    /// Before the region goes, which the device must not outlive.
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release();
        }
    }
}

/// Interrupt vectors that are switched on; dropping it switches them off.
pub struct Interrupts {
    // Dropped first: nobody signals a descriptor that is closed.
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
