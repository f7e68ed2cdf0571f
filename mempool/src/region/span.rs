//! The addresses of a region, with guards around them, and the memory file that is mapped there.

use core::ptr::NonNull;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, ProtFlags};

use super::pages::{BASE_PAGE, HUGE_PAGE};

/// Addresses that we own: `len` bytes from `start`, and around them a reservation which makes any
/// access fault. Unmapped when dropped.
pub(super) struct Span {
    pub(super) start: NonNull<u8>,
    pub(super) len: usize,
    reserved: NonNull<u8>,
    reserved_len: usize,
}

// SAFETY: the span is an address range that it owns; it gives out pointers only, and the code that
// dereferences one rules out races.
unsafe impl Send for Span {}
// SAFETY: as above; all methods only read plain fields.
unsafe impl Sync for Span {}

impl Span {
    /// Reserves `len` bytes aligned to `page`, with at least one guard page on either side; in the
    /// first 2 GiB of the address space where it is to be `low`.
    pub(super) fn reserve(len: usize, page: usize, low: bool) -> rustix::io::Result<Self> {
        // rustix does not know the flag.
        let place = if low {
            MapFlags::from_bits_retain(libc::MAP_32BIT.cast_unsigned())
        } else {
            MapFlags::empty()
        };
        let reserved_len = len
            .checked_add(page + 2 * BASE_PAGE)
            .ok_or(rustix::io::Errno::NOMEM)?;
        // SAFETY: a new mapping where the kernel likes touches nothing that exists.
        let reserved = unsafe {
            rustix::mm::mmap_anonymous(
                core::ptr::null_mut(),
                reserved_len,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE | place,
            )
        }?;
        let reserved = NonNull::new(reserved.cast::<u8>()).ok_or(rustix::io::Errno::NOMEM)?;
        let guard =
            (reserved.addr().get() + BASE_PAGE).next_multiple_of(page) - reserved.addr().get();
        // SAFETY: BASE_PAGE <= guard < BASE_PAGE + page, so that `len` bytes and a second guard
        // still lie inside the reservation.
        let start = unsafe { reserved.add(guard) };
        Ok(Self {
            start,
            len,
            reserved,
            reserved_len,
        })
    }

    /// Puts the file where the addresses are reserved.
    pub(super) fn map(&self, fd: &OwnedFd) -> rustix::io::Result<()> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // First where the kernel likes: hugepages are set aside for the file here, so that a
        // shortage shows now. A mapping at a fixed place that fails for it would leave a hole in
        // our reservation (vms_abort_munmap_vmas in mm/vma.c), which another thread's mapping may
        // fill before `drop` unmaps it.
        // SAFETY: a new mapping where the kernel likes touches nothing that exists; no one else learns
        // of it before it is unmapped.
        unsafe {
            let trial = rustix::mm::mmap(
                core::ptr::null_mut(),
                self.len,
                protection,
                MapFlags::SHARED,
                fd,
                0,
            )?;
            rustix::mm::munmap(trial, self.len)?;
        }
        // SAFETY: MAP_FIXED replaces a part of our own reservation, which is not in use yet.
        unsafe {
            rustix::mm::mmap(
                self.start.as_ptr().cast(),
                self.len,
                protection,
                MapFlags::SHARED | MapFlags::FIXED,
                fd,
                0,
            )
        }
        .map(drop)
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        // SAFETY: the range is ours, and pointers into it are not used any more: each user keeps
        // the region.
        let result =
            unsafe { rustix::mm::munmap(self.reserved.as_ptr().cast(), self.reserved_len) };
        if let Err(e) = result {
            tracing::error!("unmapping {} bytes: {e}", self.reserved_len);
        }
    }
}

/// An empty memory file of pages of this size.
pub(super) fn create(page: usize) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let flags = match page {
        BASE_PAGE => flags,
        HUGE_PAGE => flags | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB,
        _ => flags | MemfdFlags::HUGETLB | MemfdFlags::HUGE_1GB,
    };
    Ok(rustix::fs::memfd_create("pollux", flags)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Whether each byte of the span's reservation is mapped, by /proc/self/maps.
    fn is_whole(span: &Span) -> bool {
        let mut at = span.reserved.addr().get();
        let end = at + span.reserved_len;
        for line in std::fs::read_to_string("/proc/self/maps").unwrap().lines() {
            let (low, high) = line.split(' ').next().unwrap().split_once('-').unwrap();
            let number = |text| usize::from_str_radix(text, 16).unwrap();
            if (number(low)..number(high)).contains(&at) {
                at = number(high);
            }
        }
        at >= end
    }

    #[test]
    fn low_addresses_have_32_bits() {
        let (low, any) = (true, false);
        let end = |span: &Span| span.start.addr().get() + span.len;
        let span = Span::reserve(1 << 20, BASE_PAGE, low).unwrap();
        assert!(u32::try_from(end(&span)).is_ok(), "{:#x}", end(&span));
        assert!(is_whole(&span));
        let span = Span::reserve(1 << 20, BASE_PAGE, any).unwrap();
        assert!(u32::try_from(end(&span)).is_err(), "{:#x}", end(&span));
    }

    #[test]
    fn a_shortage_of_hugepages_leaves_no_hole_in_the_reservation() {
        let page = HUGE_PAGE;
        let Ok(fd) = create(page) else {
            println!("skipped: no hugepages of 2 MiB on this machine");
            return;
        };
        let len = 1 << 40; // more than any machine's
        rustix::fs::ftruncate(&fd, len as u64).unwrap();
        let span = Span::reserve(len, page, false).unwrap();
        assert!(is_whole(&span));
        assert_eq!(span.map(&fd), Err(rustix::io::Errno::NOMEM));
        // What is not ours any more could be another thread's, and `drop` would unmap it.
        assert!(is_whole(&span));
    }
}
