//! Memory of the peer, mapped into this process, and memory of this process as the peer gets it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use pollux_mempool::region::{BusErrorGuard, MemoryRegion};
use rustix::fs::{FileType, Mode, OFlags, SealFlags, fchmod, fcntl_get_seals, fstat, open};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A range of the peer's memory; unmapped when it is dropped.
pub(super) struct Mapping {
    at: NonNull<u8>,
    len: usize,
    /// First byte of the range, in the first page.
    start: NonNull<u8>,
    guard: Option<BusErrorGuard>,
}

// SAFETY: an address range that this value owns; its users access it by atomics and copies.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the pages of `len` bytes, one at least, from `offset` on of a memory file that the peer has
    /// sealed, to be read, and with `write` to be written.
    ///
    /// # Errors
    /// A file that can become shorter, a range that is not inside it, or what the system says.
    pub(super) fn new(fd: BorrowedFd<'_>, offset: u64, len: u64, write: bool) -> io::Result<Self> {
        let refused = |why: &'static str| io::Error::new(io::ErrorKind::InvalidInput, why);
        // Only memory files have seals: the pages of other files could block for ever.
        let seals = fcntl_get_seals(fd)?;
        if !seals.contains(SealFlags::SHRINK | SealFlags::GROW) {
            return Err(refused(
                "the memory file is not sealed against SHRINK and GROW",
            ));
        }
        let stat = fstat(fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(refused("not a memory file"));
        }
        let end = offset.checked_add(len);
        let end = end.filter(|&end| len > 0 && end <= stat.st_size.cast_unsigned());
        let end = end.ok_or_else(|| refused("the range is not inside the memory file"))?;
        // Hugepages are mapped as a whole only; the block size of their files is theirs.
        let page = stat.st_blksize.cast_unsigned().max(4096);
        let first = offset / page * page;
        let fits = usize::try_from(end - first).ok();
        let len = fits.and_then(|len| len.checked_next_multiple_of(page as usize));
        let len = len.ok_or_else(|| refused("too long for this machine"))?;
        let mut protection = ProtFlags::READ;
        protection.set(ProtFlags::WRITE, write);
        let null = std::ptr::null_mut();
        // SAFETY: a new mapping at an address of the kernel's choice affects no existing memory.
        let at = unsafe { mmap(null, len, protection, MapFlags::SHARED, fd, first) }?;
        let at = NonNull::new(at.cast::<u8>()).ok_or_else(|| refused("it was mapped at zero"))?;
        // SAFETY: `offset` is in the first page.
        let start = unsafe { at.add((offset - first) as usize) };
        let mut mapping = Self {
            at,
            len,
            start,
            guard: None,
        };
        // Pages can still be punched out of the file, and where no hugepage is left to replace one an
        // access is a bus error.
        // SAFETY: the mapping owns the range, all of which is one unit, and drops the guard before it; its
        // bytes are shared ones.
        mapping.guard = Some(unsafe { BusErrorGuard::new(at, len, len) }?);
        Ok(mapping)
    }

    /// First byte of the range.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.guard = None;
        // SAFETY: this value owns the range, and all users of it keep this value.
        if let Err(error) = unsafe { munmap(self.at.as_ptr().cast(), self.len) } {
            tracing::error!("unmapping {} bytes: {error}", self.len);
        }
    }
}

/// The memory file of a region for a peer that may write, or only read, what it is given.
///
/// For reading the file is opened again: no mapping through that descriptor can be written. A process of
/// another user cannot open it for writing either.
///
/// # Safety
/// As for [`MemoryRegion::share`].
pub(super) unsafe fn hand_over(region: &MemoryRegion, write: bool) -> io::Result<OwnedFd> {
    // SAFETY: the caller's.
    let file = unsafe { region.share() }?;
    if write {
        return file.try_clone_to_owned();
    }
    fchmod(file, Mode::RUSR | Mode::WUSR)?;
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    Ok(open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

#[cfg(all(test, not(loom)))]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use pollux_mempool::region::PageSize;
    use rustix::fs::{MemfdFlags, fcntl_add_seals, ftruncate, memfd_create};

    use super::*;

    const BYTES: u64 = 8192;

    fn region() -> MemoryRegion {
        let builder = MemoryRegion::builder(BYTES as usize).pages(PageSize::Kib4);
        builder.build().unwrap()
    }

    #[test]
    fn a_range_is_the_same_memory() {
        let region = region();
        // SAFETY: there is no other process.
        let file = unsafe { hand_over(&region, true) }.unwrap();
        let mapping = Mapping::new(file.as_fd(), 5000, 100, true).unwrap();
        // SAFETY: both are mapped, and no other thread accesses them.
        unsafe {
            mapping.start().as_ptr().write_volatile(7);
            let same = region.ptr_at(5000, 1).unwrap().as_ptr();
            assert_eq!(same.read_volatile(), 7);
        }
    }

    #[test]
    fn what_is_for_reading_cannot_be_written() {
        let region = region();
        // SAFETY: there is no other process.
        let file = unsafe { hand_over(&region, false) }.unwrap();
        assert!(Mapping::new(file.as_fd(), 0, BYTES, false).is_ok());
        assert!(Mapping::new(file.as_fd(), 0, BYTES, true).is_err());
        assert!(rustix::io::write(&file, b"x").is_err());
        assert!(ftruncate(&file, 0).is_err());
    }

    #[test]
    fn other_files_and_ranges_are_refused() {
        let why = |file: &OwnedFd, offset, len| {
            let mapping = Mapping::new(file.as_fd(), offset, len, true);
            mapping.err().unwrap().to_string()
        };
        let unsealed = memfd_create("unsealed", MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&unsealed, BYTES).unwrap();
        assert!(why(&unsealed, 0, BYTES).contains("not sealed"));
        fcntl_add_seals(&unsealed, SealFlags::SHRINK).unwrap();
        assert!(why(&unsealed, 0, BYTES).contains("not sealed"));
        let zero = open("/dev/zero", OFlags::RDWR, Mode::empty()).unwrap();
        assert!(!why(&zero, 0, BYTES).is_empty());
        fcntl_add_seals(&unsealed, SealFlags::GROW).unwrap();
        for (offset, len) in [
            (0, BYTES + 1),
            (BYTES, 1),
            (0, 0),
            (u64::MAX, 2),
            (1, u64::MAX),
        ] {
            assert!(
                why(&unsealed, offset, len).contains("not inside"),
                "{offset} {len}"
            );
        }
    }
}
