//! The memory of queues and buffers.

use pollux_mempool::region::{Lock, MemoryRegion, PageSize, RegionError};

/// What kind of memory queues and buffers are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionOptions {
    /// Page size.
    pub pages: PageSize,
    /// NUMA node; `None`: where the kernel puts it.
    pub numa_node: Option<u32>,
    /// Whether the memory must be locked.
    pub lock: Lock,
}

impl RegionOptions {
    pub(crate) fn build(&self, len: usize) -> Result<MemoryRegion, RegionError> {
        MemoryRegion::builder(len)
            .pages(self.pages)
            .numa_node(self.numa_node)
            .lock(self.lock)
            .build()
    }
}
