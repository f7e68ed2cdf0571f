//! Memory of the other side, as a device sees it: addresses that it names are checked, each one.

use std::ptr::NonNull;
use std::sync::Arc;

use super::areas::{Areas, QueueError, RingMemory};

/// A region that the driver shares with us.
pub(crate) struct PeerRegion {
    guest: u64,
    user: u64,
    len: u64,
    at: NonNull<u8>,
    _keep: Arc<dyn Send + Sync>,
}

impl PeerRegion {
    /// A region of `len` bytes that is mapped at `at`. The driver's descriptors name its bytes from
    /// `guest` on, vhost's messages from `user` on.
    ///
    /// # Safety
    /// `at` is valid for reads and writes of `len` bytes for as long as `keep` lives, and nobody
    /// forms references to them.
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

/// Two regions claim the same addresses, or one reaches beyond the last.
#[derive(Debug, thiserror::Error)]
#[error(
    "the memory region at {address:#x} of {len} B overlaps another, or the end of all addresses"
)]
pub(crate) struct BadRegion {
    /// Where it begins for the driver.
    pub(crate) address: u64,
    /// Its length.
    pub(crate) len: u64,
}

/// All memory that the driver shares with us.
pub(crate) struct PeerMemory {
    regions: Box<[PeerRegion]>,
}

// SAFETY: these are addresses, and mappings that are kept; whoever reads or writes there does so
// by atomics and checked copies.
unsafe impl Send for PeerMemory {}
// SAFETY: as above; all methods only read plain fields.
unsafe impl Sync for PeerMemory {}

impl PeerMemory {
    /// The memory in these regions. The first is looked at first: it should be the one that most
    /// frames lie in.
    ///
    /// # Errors
    /// [`BadRegion`] names one that cannot be.
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

    /// Where `len` bytes are that a descriptor names; `None` if they are not all in one region.
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

    /// The queue whose areas are at `addresses`, in the address space of vhost's messages.
    ///
    /// # Errors
    /// A size that no ring has, or an area that is misaligned or not in the shared memory.
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
            // What counts is where it is for us; with mappings of whole pages that is the same.
            if !at.addr().get().is_multiple_of(shape.align) {
                return Err(QueueError::Misaligned {
                    address,
                    align: shape.align,
                });
            }
            Ok(at)
        })?;
        // SAFETY: lengths and alignments were checked just now; the mappings live as long as
        // `self`, and nobody forms references to them, as was promised for each.
        Ok(unsafe { RingMemory::new(at, size, packed, self.clone()) })
    }
}
