//! Memory of the front end, mapped into this process.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use pollux_mempool::region::BusErrorGuard;
use rustix::fs::{FileType, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, fstatfs};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::ended::Ended;
use super::message::Region;
use crate::drivers::virtio::{PeerMemory, PeerRegion};

/// linux/magic.h
const TMPFS: i64 = 0x0102_1994;
const HUGETLBFS: i64 = 0x9584_58f6;

/// A mapped part of a file; unmapped when it is dropped.
struct Mapping {
    at: NonNull<u8>,
    len: usize,
    /// For the whole mapping: a session ends if part of its memory is missing.
    guard: Option<BusErrorGuard>,
}

// SAFETY: an address range that this value owns; users of the addresses must prevent races.
unsafe impl Send for Mapping {}
// SAFETY: as above; no method accesses the memory through a shared reference.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.guard = None;
        // SAFETY: this value owns the range, and all users of it keep this value.
        if let Err(error) = unsafe { munmap(self.at.as_ptr().cast(), self.len) } {
            tracing::error!("unmapping {} bytes: {error}", self.len);
        }
    }
}

/// The memory of a front end, as its memory table describes it.
pub(super) struct Table {
    pub(super) memory: Arc<PeerMemory>,
    mappings: Vec<Arc<Mapping>>,
    /// No file had a page when it was mapped, and this has not been reported.
    untouched: bool,
}

impl Table {
    /// Maps the regions of a memory table. `sealed`: refuses files that could be truncated.
    pub(super) fn map(table: &[(Region, OwnedFd)], sealed: bool) -> Result<Self, Ended> {
        let (mut regions, mut mappings) = (Vec::new(), Vec::new());
        // Before any byte is read here, which allocates pages.
        let has_pages = |fd: &OwnedFd| fstat(fd).is_ok_and(|stat| stat.st_blocks > 0);
        let untouched = !table.iter().any(|(_, fd)| has_pages(fd));
        for (region, fd) in table {
            let (region, mapping) = map_region(region, fd, sealed)?;
            regions.push(region);
            mappings.push(mapping);
        }
        let memory = PeerMemory::new(regions);
        let memory = memory.map_err(|error| Ended::Violation(error.to_string()))?;
        Ok(Self {
            memory: Arc::new(memory),
            mappings,
            untouched,
        })
    }

    /// Whether the front end had written into none of the memory; true once.
    pub(super) fn take_untouched(&mut self) -> bool {
        std::mem::take(&mut self.untouched)
    }

    /// Checks whether the front end has truncated a file, or punched holes into it.
    pub(super) fn check(&self) -> Result<(), Ended> {
        let mut guards = self.mappings.iter().flat_map(|mapping| &mapping.guard);
        if guards.any(|guard| guard.replaced() > 0) {
            return Err(Ended::Violation(
                "it has taken pages out of its memory file while the rings were in use".into(),
            ));
        }
        Ok(())
    }
}

fn map_region(
    region: &Region,
    fd: &OwnedFd,
    sealed: bool,
) -> Result<(PeerRegion, Arc<Mapping>), Ended> {
    let bad = |why: &str| {
        let (size, offset) = (region.size, region.offset);
        Ended::Violation(format!(
            "a memory region of {size:#x} B at {offset:#x} of its file: {why}"
        ))
    };
    let system = |error: io::Error| bad(&error.to_string());
    // That this process has no guard left is no violation of its peer's. Memory that is too long for the
    // machine is.
    let map = |error: io::Error| match error.kind() {
        io::ErrorKind::StorageFull => Ended::System("cannot map the peer's memory", error),
        _ => system(error),
    };
    // The pages of other file systems could block for ever.
    let kind = fstatfs(fd).map_err(|error| system(error.into()))?.f_type;
    let stat = fstat(fd).map_err(|error| system(error.into()))?;
    if !matches!(kind, TMPFS | HUGETLBFS)
        || FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
    {
        return Err(bad("not a memory file (memfd, tmpfs or hugetlbfs)"));
    }
    let is_sealed = seal(fd);
    if sealed && !is_sealed {
        return Err(bad("the file can be cut short, and sealed=on is set"));
    }
    // After the sealing, so that the size is final.
    let stat = fstat(fd).map_err(|error| system(error.into()))?;
    let end = region.offset.checked_add(region.size);
    let end = end.filter(|&end| region.size > 0 && end <= stat.st_size as u64);
    let Some(end) = end else {
        return Err(bad(&format!(
            "not inside the file of {:#x} B",
            stat.st_size
        )));
    };
    // Hugepages can be mapped and unmapped as a whole only; the block size of their files reports
    // that.
    let page = (stat.st_blksize as u64).max(4096);
    let start = region.offset / page * page;
    let fits = usize::try_from(end - start)
        .ok()
        .and_then(|len| len.checked_next_multiple_of(page as usize));
    let len = fits.ok_or_else(|| bad("too long for this machine"))?;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice affects no existing memory.
    let at = unsafe {
        mmap(
            std::ptr::null_mut(),
            len,
            protection,
            MapFlags::SHARED,
            fd,
            start,
        )
    };
    let at = at.map_err(|error| map(error.into()))?;
    let at = NonNull::new(at.cast::<u8>()).ok_or_else(|| bad("it was mapped at zero"))?;
    let mut mapping = Mapping {
        at,
        len,
        guard: None,
    };
    // Also for a sealed file: holes can still be punched into it, and where no hugepage is left to
    // fill one, the access is a bus error too.
    // SAFETY: the mapping owns the range, all of which is one unit, and drops the guard before it;
    // its bytes are accessed as described below.
    mapping.guard = Some(unsafe { BusErrorGuard::new(at, len, len) }.map_err(map)?);
    let mapping = Arc::new(mapping);
    // SAFETY: offset - start < page, inside the mapping.
    let first = unsafe { at.add((region.offset - start) as usize) };
    let keep = mapping.clone();
    // SAFETY: from `first` there are region.size bytes to the end of the mapping, all inside the
    // file, and the guard replaces pages that the file loses; they are accessed through
    // `PeerMemory` alone, which forms no references, and the mapping is kept.
    let region = unsafe { PeerRegion::new(first, region.size, region.guest, region.user, keep) };
    Ok((region, mapping))
}

/// Prevents truncation of the file, where files can be sealed; returns whether it is prevented.
fn seal(fd: &OwnedFd) -> bool {
    let is_sealed = |seals: SealFlags| seals.contains(SealFlags::SHRINK);
    fcntl_get_seals(fd.as_fd()).is_ok_and(is_sealed)
        || fcntl_add_seals(fd.as_fd(), SealFlags::SHRINK).is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    /// A table of files that have no pages yet, all with this name and of this size.
    fn table(name: &str, count: u64, size: u64) -> Vec<(Region, OwnedFd)> {
        let region = |i| {
            let file = memfd_create(name, MemfdFlags::CLOEXEC).unwrap();
            ftruncate(&file, size).unwrap();
            let region = Region {
                guest: i * size,
                size,
                user: i * size,
                offset: 0,
            };
            (region, file)
        };
        (0..count).map(region).collect()
    }

    fn mapped(name: &str) -> usize {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.matches(&format!("/memfd:{name} ")).count()
    }

    #[test]
    fn what_is_too_long_for_the_machine_is_refused_and_nothing_stays_mapped() {
        let name = "vhost-user-too-long";
        // A process has addresses of 47 bits, or of 48 on other machines. Of eight regions the
        // first ones fit.
        for (count, size) in [(1, 1 << 48), (1, 1 << 56), (1, 1 << 62), (8, 1 << 45)] {
            let refused = Table::map(&table(name, count, size), false).map(drop);
            let why = refused.unwrap_err().to_string();
            let what = format!("a memory region of {size:#x} B at 0x0 of its file: ");
            assert!(
                why.contains(&what) && why.contains("Cannot allocate memory"),
                "{why}"
            );
            assert_eq!(mapped(name), 0, "{why}");
        }
        let long = Table::map(&table(name, 8, 1 << 40), false).unwrap();
        assert_eq!(mapped(name), 8);
        drop(long);
        assert_eq!(mapped(name), 0);
    }
}
