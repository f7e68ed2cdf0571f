//! Memory of the driver, as the device accesses it, with a check of every address.

use std::ptr::NonNull;
use std::sync::Arc;

use super::areas::{Areas, QueueError, RingMemory};

/// A region that the driver shares.
pub(crate) struct PeerRegion {
    guest: u64,
    user: u64,
    len: u64,
    at: NonNull<u8>,
    _keep: Arc<dyn Send + Sync>,
}

impl PeerRegion {
    /// A region of `len` bytes that is mapped at `at`. The driver's descriptors address its bytes
    /// from `guest` on, vhost's messages from `user` on.
    ///
    /// # Safety
    /// `at` is valid for reads and writes of `len` bytes for as long as `keep` lives, and no
    /// references to them exist.
    pub(crate) unsafe fn new(
        at: NonNull<u8>,
        len: u64,
        guest: u64,
        user: u64,
        keep: Arc<dyn Send + Sync>,
    ) -> Self {
        Self {
            guest,
            user,
            len,
            at,
            _keep: keep,
        }
    }

    #[inline(always)]
    fn find(&self, start: u64, address: u64, len: u64) -> Option<NonNull<u8>> {
        let into = address.wrapping_sub(start);
        // SAFETY: into + len <= self.len, so the pointer stays in the mapping.
        (into <= self.len && len <= self.len - into).then(|| unsafe { self.at.add(into as usize) })
    }
}

/// Error: two regions overlap, or one exceeds the address space.
#[derive(Debug, thiserror::Error)]
#[error(
    "the memory region at {address:#x} of {len} B overlaps another, or the end of all addresses"
)]
pub(crate) struct BadRegion {
    /// Its address for the driver.
    pub(crate) address: u64,
    /// Its length.
    pub(crate) len: u64,
}

/// All memory that the driver shares.
pub(crate) struct PeerMemory {
    regions: Box<[PeerRegion]>,
}

// SAFETY: these are addresses, and mappings that are kept; all accesses are atomic or checked
// copies.
unsafe impl Send for PeerMemory {}
// SAFETY: as above; all methods only read plain fields.
unsafe impl Sync for PeerMemory {}

impl PeerMemory {
    /// The memory in these regions. The first is checked first: it should contain most frames.
    ///
    /// # Errors
    /// [`BadRegion`] names an invalid region.
    pub(crate) fn new(regions: Vec<PeerRegion>) -> Result<Self, BadRegion> {
        for (i, region) in regions.iter().enumerate() {
            for start in [|r: &PeerRegion| r.guest, |r: &PeerRegion| r.user] {
                let bad = || BadRegion {
                    address: start(region),
                    len: region.len,
                };
                let end = start(region).checked_add(region.len).ok_or_else(bad)?;
                let overlaps = |other: &PeerRegion| {
                    start(region) < start(other).saturating_add(other.len) && start(other) < end
                };
                if usize::try_from(region.len).is_err() || regions[..i].iter().any(overlaps) {
                    return Err(bad());
                }
            }
        }
        Ok(Self {
            regions: regions.into(),
        })
    }

    /// Address of `len` bytes that a descriptor names; `None` if they are not all in one region.
    #[inline(always)]
    pub(crate) fn at(&self, address: u64, len: u32) -> Option<NonNull<u8>> {
        let len = u64::from(len);
        let (first, others) = self.regions.split_first()?;
        match first.find(first.guest, address, len) {
            None => Self::in_others(others, address, len),
            found => found,
        }
    }

    #[cold]
    fn in_others(regions: &[PeerRegion], address: u64, len: u64) -> Option<NonNull<u8>> {
        regions
            .iter()
            .find_map(|region| region.find(region.guest, address, len))
    }

    /// The queue with areas at `addresses`, in the address space of vhost's messages.
    ///
    /// # Errors
    /// An invalid size, or an area that is misaligned or not in the shared memory.
    pub(crate) fn ring(
        self: &Arc<Self>,
        addresses: Areas<u64>,
        size: u16,
        packed: bool,
    ) -> Result<RingMemory, QueueError> {
        let shapes = Areas::of(size, packed)?;
        let at = addresses.try_zip(shapes, |address, shape| {
            let at = self
                .regions
                .iter()
                .find_map(|region| region.find(region.user, address, shape.len as u64))
                .ok_or(QueueError::Outside {
                    address,
                    len: shape.len,
                })?;
            // The address in this process counts; with mappings of whole pages both have the same
            // alignment.
            if !at.addr().get().is_multiple_of(shape.align) {
                return Err(QueueError::Misaligned {
                    address,
                    align: shape.align,
                });
            }
            Ok(at)
        })?;
        // SAFETY: lengths and alignments were checked above; the mappings live as long as `self`,
        // and by the promise made for each region no references to them exist.
        Ok(unsafe { RingMemory::new(at, size, packed, self.clone()) })
    }
}
