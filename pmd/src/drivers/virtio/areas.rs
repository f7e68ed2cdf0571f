//! Memory of a queue: its three areas by virtio 1.2 sections 2.7 and 2.8.

use std::ptr::NonNull;
use std::sync::Arc;

use pollux_mempool::region::{MemoryRegion, RegionError};

use super::header;
use crate::event::RegionOptions;

/// Maximum number of descriptors of a queue (sections 2.7 and 2.8.10.1).
pub(crate) const MAX_SIZE: u16 = 1 << 15;

/// Areas with different writers begin at cache lines of their own.
const LINE: usize = 64;

/// Offset of the device's area from the start of its line: flags and index of a used ring take as
/// many bytes, so that its entries of 8 bytes are aligned to 8. No entry then crosses a cache line
/// or a page: QEMU 10.0, behind an IOMMU, writes the second half of an entry that crosses a page to
/// another page of its guest.
const HEAD: usize = 4;

/// One value for each area of a queue: its size, address, or location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Areas<A> {
    /// The descriptors.
    pub(crate) descriptors: A,
    /// The driver's other area: the available ring, or its event suppression.
    pub(crate) driver: A,
    /// The device's other area: the used ring, or its event suppression.
    pub(crate) device: A,
}

impl<A> Areas<A> {
    /// Combines the values of each area pairwise.
    pub(crate) fn try_zip<B, C, E>(
        self,
        other: Areas<B>,
        mut f: impl FnMut(A, B) -> Result<C, E>,
    ) -> Result<Areas<C>, E> {
        Ok(Areas {
            descriptors: f(self.descriptors, other.descriptors)?,
            driver: f(self.driver, other.driver)?,
            device: f(self.device, other.device)?,
        })
    }
}

/// Size and alignment of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Size in bytes.
    pub(crate) len: usize,
    /// The address is a multiple of this.
    pub(crate) align: usize,
}

impl Areas<Shape> {
    /// The areas of a queue of `size` descriptors: the tables of sections 2.7 and 2.8.10.1, without
    /// the event fields that only `EVENT_IDX` uses.
    ///
    /// # Errors
    /// [`QueueError::Size`] lists the valid sizes.
    pub(crate) fn of(size: u16, packed: bool) -> Result<Self, QueueError> {
        if size == 0 || size > MAX_SIZE || !(packed || size.is_power_of_two()) {
            return Err(QueueError::Size { size });
        }
        let n = usize::from(size);
        let shape = |len, align| Shape { len, align };
        let descriptors = shape(16 * n, 16);
        Ok(if packed {
            Self {
                descriptors,
                driver: shape(4, 4),
                device: shape(4, 4),
            }
        } else {
            Self {
                descriptors,
                driver: shape(4 + 2 * n, 2),
                device: shape(4 + 8 * n, 4),
            }
        })
    }
}

/// Error: a queue cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum QueueError {
    /// Invalid queue size.
    #[error(
        "a queue of {size} descriptors: a split ring has a power of two of them, a packed one any \
         number, both 1 to {MAX_SIZE}"
    )]
    Size {
        /// The requested size.
        size: u16,
    },
    /// An area is not in memory that the peer shares.
    #[error("the {len} B of a queue's area at address {address:#x} are not in shared memory")]
    Outside {
        /// Its address.
        address: u64,
        /// Its length.
        len: usize,
    },
    /// An area is misaligned.
    #[error("a queue's area at address {address:#x}: it must be a multiple of {align}")]
    Misaligned {
        /// Its address.
        address: u64,
        /// Required alignment.
        align: usize,
    },
    /// A fresh queue cannot start at this index.
    #[error("a queue of {size} descriptors cannot begin at {base:#x}")]
    Base {
        /// Number of descriptors.
        size: u16,
        /// The requested index.
        base: u16,
    },
    /// The memory is not available.
    #[error(transparent)]
    Region(#[from] RegionError),
}

/// The areas of a queue in memory, valid and aligned as [`Areas::of`] specifies for as long as this
/// value (or a clone) lives. Either side makes its ring from one.
#[derive(Clone)]
pub(crate) struct RingMemory {
    at: Areas<NonNull<u8>>,
    size: u16,
    packed: bool,
    _keep: Arc<dyn Send + Sync>,
}

// SAFETY: these are addresses; the rings access the memory by atomics alone.
unsafe impl Send for RingMemory {}

impl RingMemory {
    /// # Safety
    /// The areas have the lengths and alignments of `Areas::of(size, packed)`, are valid for reads
    /// and writes for as long as `keep` lives, and no references to them exist.
    pub(super) unsafe fn new(
        at: Areas<NonNull<u8>>,
        size: u16,
        packed: bool,
        keep: Arc<dyn Send + Sync>,
    ) -> Self {
        Self {
            at,
            size,
            packed,
            _keep: keep,
        }
    }

    /// Addresses of the areas.
    pub(crate) fn at(&self) -> Areas<NonNull<u8>> {
        self.at
    }

    /// Number of descriptors of the queue.
    pub(crate) fn size(&self) -> u16 {
        self.size
    }

    /// Whether the ring is a packed one.
    pub(crate) fn is_packed(&self) -> bool {
        self.packed
    }
}

/// The memory of a driver's queue: its areas, and a header for frames without headroom, in a region
/// of queues only, so that it can be shared.
#[derive(Clone)]
pub(crate) struct QueueMemory {
    region: Arc<MemoryRegion>,
    ring: RingMemory,
    header: NonNull<u8>,
}

// SAFETY: the header is an address in the region; it is zero, and this process never writes it.
unsafe impl Send for QueueMemory {}

impl QueueMemory {
    /// Zeroed memory for `count` queues of `size` descriptors, in one region.
    ///
    /// # Errors
    /// [`QueueError::Size`], or memory that is not available.
    pub(crate) fn several(
        count: usize,
        size: u16,
        packed: bool,
        memory: &RegionOptions,
    ) -> Result<Vec<Self>, QueueError> {
        Self::of_sizes(&vec![size; count], packed, memory)
    }

    /// Zeroed memory for queues of these sizes, in one region.
    ///
    /// # Errors
    /// As for [`several`](Self::several).
    pub(crate) fn of_sizes(
        sizes: &[u16],
        packed: bool,
        memory: &RegionOptions,
    ) -> Result<Vec<Self>, QueueError> {
        let mut end = 0;
        let mut place = |len: usize| {
            let start = end;
            end += len.next_multiple_of(LINE);
            start
        };
        let mut places = Vec::with_capacity(sizes.len());
        for &size in sizes {
            let shapes = Areas::of(size, packed)?;
            let offsets = Areas {
                descriptors: place(shapes.descriptors.len),
                driver: place(shapes.driver.len),
                device: place(HEAD + shapes.device.len) + HEAD,
            };
            places.push((size, shapes, offsets, place(header::LEN)));
        }
        let region = Arc::new(memory.build(end.max(1))?);
        let queue = |(size, shapes, offsets, header): (_, Areas<Shape>, Areas<usize>, _)| {
            let at = offsets.try_zip(shapes, |offset, shape| region.ptr_at(offset, shape.len))?;
            // SAFETY: `ptr_at` has checked the lengths; the region is page aligned and all offsets
            // are multiples of a cache line, or `HEAD` more, which suffices for the device's area;
            // it is zeroed, holds these queues alone, and gives out pointers only.
            let ring = unsafe { RingMemory::new(at, size, packed, region.clone()) };
            Ok(Self {
                header: region.ptr_at(header, header::LEN)?,
                region: region.clone(),
                ring,
            })
        };
        places.into_iter().map(queue).collect()
    }

    /// The region of the queue, to be mapped for the device.
    pub(crate) fn region(&self) -> &Arc<MemoryRegion> {
        &self.region
    }

    /// The areas.
    pub(crate) fn ring(&self) -> &RingMemory {
        &self.ring
    }

    /// [`header::LEN`] zeros: the header of a frame without room for one.
    pub(crate) fn header(&self) -> NonNull<u8> {
        self.header
    }
}
