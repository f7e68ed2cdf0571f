//! Why a region could not be made, and what to do about it.

use std::io;

/// Why a region could not be made or addressed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegionError {
    /// A region of no bytes was asked for.
    #[error("a memory region must have at least 1 byte")]
    ZeroSize,
    /// There is not so much memory.
    #[error("a region of {len} bytes does not fit into the {available} bytes that are available")]
    TooLarge {
        /// Bytes that were asked for.
        len: usize,
        /// Bytes of normal memory that are available.
        available: usize,
    },
    /// The kernel or the processor does not have pages of this size.
    #[error("no pages of {page} bytes on this machine (see /sys/kernel/mm/hugepages): {source}")]
    Unsupported {
        /// Bytes in a page.
        page: usize,
        /// What the kernel said.
        source: io::Error,
    },
    /// There are not enough hugepages.
    #[error(
        "{needed} hugepages of {page} bytes are needed and {free} are free; to add some: {remedy}"
    )]
    NoHugepages {
        /// Bytes in a page.
        page: usize,
        /// Pages that the region needs.
        needed: usize,
        /// Pages that are neither used nor reserved.
        free: usize,
        /// The command that makes enough pages (as root).
        remedy: String,
    },
    /// There is no such NUMA node, or it has no memory.
    #[error("no memory on NUMA node {node}; nodes with memory: {nodes} ({source})")]
    NoSuchNode {
        /// The node that was asked for.
        node: u32,
        /// The nodes that have memory, as the kernel lists them.
        nodes: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Pages are not on the NUMA node that was asked for.
    #[error("pages that must be on NUMA node {node} are on {found:?}")]
    Misplaced {
        /// The node that was asked for.
        node: u32,
        /// Where a page was found, if the kernel knows.
        found: Option<u32>,
    },
    /// The pages cannot be locked.
    #[error(
        "cannot lock {len} bytes of memory: {source}; the limit is {} \
         (raise it: `ulimit -l {}`, or LimitMEMLOCK= of the service)",
        limit.map_or_else(|| "none".to_owned(), |bytes| format!("{bytes} bytes")),
        len.div_ceil(1024)
    )]
    Lock {
        /// Bytes to be locked.
        len: usize,
        /// Bytes that this process may lock; `None`: any.
        limit: Option<u64>,
        /// What the kernel said.
        source: io::Error,
    },
    /// The bytes are not inside the region.
    #[error("{len} bytes at offset {offset} are outside the region of {region} bytes")]
    OutOfRange {
        /// Where the bytes begin.
        offset: usize,
        /// How many bytes.
        len: usize,
        /// Bytes in the region.
        region: usize,
    },
    /// Another call to the kernel failed.
    #[error("{step}: {source}")]
    Os {
        /// What was tried.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl RegionError {
    /// Whether the error is in the request, and not in what this machine has at the moment.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::ZeroSize | Self::NoSuchNode { .. })
    }

    /// Whether other pages could help.
    pub(super) fn is_about_pages(&self) -> bool {
        matches!(self, Self::Unsupported { .. } | Self::NoHugepages { .. })
    }
}
