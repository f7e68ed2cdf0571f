//! Memory options of queues and buffers.

use pollux_mempool::region::{Lock, MemoryRegion, PageSize, RegionError};

/// Properties of the memory of queues and buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionOptions {
    /// Page size.
    pub pages: PageSize,
    /// NUMA node; `None`: the kernel chooses.
    pub numa_node: Option<u32>,
    /// Whether the memory must be locked.
    pub lock: Lock,
    /// Whether its addresses must have 32 bits, as those of a conventional PCI device.
    pub low_addresses: bool,
}

impl RegionOptions {
    /// Memory of `len` bytes, zeroed.
    ///
    /// # Errors
    /// Pages, a node or a limit that cannot be had.
    pub fn build(&self, len: usize) -> Result<MemoryRegion, RegionError> {
        MemoryRegion::builder(len)
            .pages(self.pages)
            .numa_node(self.numa_node)
            .lock(self.lock)
            .low_addresses(self.low_addresses)
            .build()
    }
}
