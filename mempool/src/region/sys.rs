//! What the kernel knows about memory: how much there is, hugepages, NUMA nodes.

use std::fs;
use std::io;
use std::ptr::{self, NonNull};

/// Bytes of normal memory that can be had without driving others out (`MemAvailable`); no limit
/// where the kernel does not say.
pub(crate) fn available_memory() -> usize {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<usize>().ok())
        .map_or(usize::MAX, |kib| kib.saturating_mul(1024))
}

/// The directory in which the kernel counts hugepages of `page` bytes (of one node, or of all).
pub(super) fn hugepage_dir(page: usize, node: Option<u32>) -> String {
    let kib = page / 1024;
    match node {
        None => format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB"),
        Some(node) => format!("/sys/devices/system/node/node{node}/hugepages/hugepages-{kib}kB"),
    }
}

/// Hugepages in `dir`: (all, free); zero where the kernel does not know such pages.
pub(super) fn hugepage_counts(dir: &str) -> (usize, usize) {
    let read = |name: &str| {
        let text = fs::read_to_string(format!("{dir}/{name}")).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    };
    // Reserved pages are free but promised to others (only the total over all nodes has them).
    (
        read("nr_hugepages"),
        read("free_hugepages").saturating_sub(read("resv_hugepages")),
    )
}

/// The nodes that have memory, as the kernel lists them ("0-1").
pub(super) fn memory_nodes() -> String {
    fs::read_to_string("/sys/devices/system/node/has_memory")
        .map_or_else(|_| "0".to_owned(), |text| text.trim().to_owned())
}

/// Lets pages of this range come only from `node` (mbind(2)). It counts for pages that are not
/// there yet.
///
/// # Safety
/// The range is a mapping of the caller's own.
pub(super) unsafe fn bind(at: NonNull<u8>, len: usize, node: u32) -> io::Result<()> {
    const WORD: usize = libc::c_ulong::BITS as usize;
    // The kernel is built for 1024 nodes at most.
    let mut mask = [0 as libc::c_ulong; 1024 / WORD];
    let Some(word) = mask.get_mut(node as usize / WORD) else {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    };
    *word = 1 << (node as usize % WORD);
    // The kernel reads one bit less than `maxnode` (get_nodes in mm/mempolicy.c).
    let bits = mask.len() * WORD + 1;
    // SAFETY: mbind changes where pages of the caller's mapping come from, not what they hold; the
    // mask is valid for `bits - 1` bits.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_mbind,
            at.as_ptr(),
            len,
            libc::MPOL_BIND,
            mask.as_ptr(),
            bits,
            0, // no flags: there are no pages yet to be moved
        )
    };
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The node of each page of the range, one call of `each` per page, by move_pages(2), which moves
/// nothing when it is given no target nodes. A page that is not there is a negative error number.
///
/// # Safety
/// The range is a mapping of the caller's own.
pub(super) unsafe fn nodes_of(
    at: NonNull<u8>,
    len: usize,
    page: usize,
    mut each: impl FnMut(i32),
) -> io::Result<()> {
    const CHUNK: usize = 512;
    let mut status = [0_i32; CHUNK];
    let mut pages = [ptr::null_mut::<u8>(); CHUNK];
    let mut offset = 0;
    while offset < len {
        let n = ((len - offset) / page).min(CHUNK);
        for (k, address) in pages[..n].iter_mut().enumerate() {
            *address = at.as_ptr().wrapping_add(offset + k * page);
        }
        // SAFETY: both arrays hold `n` elements; without targets the pages stay where they are.
        let rc = unsafe {
            libc::syscall(
                libc::SYS_move_pages,
                0,
                n,
                pages.as_ptr(),
                ptr::null::<libc::c_int>(),
                status.as_mut_ptr(),
                0,
            )
        };
        if rc < 0 {
            return Err(io::Error::last_os_error());
        }
        status[..n].iter().copied().for_each(&mut each);
        offset += n * page;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory() {
        let bytes = available_memory();
        assert!(bytes > 1 << 20 && bytes < usize::MAX, "{bytes}");
        assert!(!memory_nodes().is_empty());
    }

    #[test]
    fn unknown_page_sizes_have_no_pages() {
        assert_eq!(hugepage_counts(&hugepage_dir(12345 * 1024, None)), (0, 0));
    }
}
