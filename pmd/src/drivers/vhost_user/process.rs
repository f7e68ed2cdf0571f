//! The peer's process: whether it has ended, and whether it has memory of this process.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use pollux_mempool::region::MemoryRegion;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The process that has opened the other end of a socket, by a pidfd, which always denotes the same
/// process even if its number is reused.
pub(super) struct Process {
    number: i32,
    descriptor: OwnedFd,
}

impl Process {
    /// The process that has connected the socket, or listened for it (unix(7), `SO_PEERCRED`). Its
    /// number is 0 if it belongs to another PID namespace. `None` if there is no such process: it
    /// has ended and passed its end to another, or the kernel supports no descriptor for it.
    pub(super) fn of_peer(socket: BorrowedFd<'_>) -> Option<Self> {
        // SAFETY: three integers, for which any bits are valid.
        let peer: libc::ucred = unsafe { option(socket, libc::SO_PEERCRED) }.ok()?;
        // A kernel before 6.5 supplies only the number, which may denote another process by now.
        // SAFETY: an integer.
        let descriptor = match unsafe { option::<i32>(socket, libc::SO_PEERPIDFD) } {
            // SAFETY: a new descriptor, which has no other owner.
            Ok(descriptor) => unsafe { OwnedFd::from_raw_fd(descriptor) },
            Err(_) => pidfd_open(Pid::from_raw(peer.pid)?, PidfdFlags::empty()).ok()?,
        };
        let process = Self {
            number: peer.pid,
            descriptor,
        };
        (!process.is_gone()).then_some(process)
    }

    /// Its number, for messages; 0 if it has none here.
    pub(super) fn number(&self) -> i32 {
        self.number
    }

    /// Whether all of its threads have ended, and with them its mappings and descriptors.
    pub(super) fn is_gone(&self) -> bool {
        // pidfd_open(2): it is then readable.
        let mut fds = [PollFd::new(&self.descriptor, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Whether the process has the file of one of the regions open or mapped; for this process
    /// itself, more often than the regions do. `None` if the system refuses the information (which
    /// it gives to processes that may trace the process: ptrace(2)).
    pub(super) fn has(&self, regions: &[Arc<MemoryRegion>]) -> Option<bool> {
        let files: Vec<_> = regions
            .iter()
            .map(|region| region.file_id())
            .collect::<Result<_, _>>()
            .ok()?;
        let is_self = u32::try_from(self.number).is_ok_and(|number| number == std::process::id());
        // Descriptors first: a file that is mapped and closed between the two checks is found as a
        // mapping, and a mapping cannot be turned back into a descriptor.
        let mut open = vec![0; files.len()];
        for entry in fs::read_dir(format!("/proc/{}/fd", self.number)).ok()? {
            let path = entry.ok()?.path();
            // Only files of this kind are examined: access to another (of a network) could block.
            match fs::read_link(&path) {
                Ok(link) if link.as_os_str().as_encoded_bytes().starts_with(b"/memfd:") => {}
                Err(error) if error.kind() != io::ErrorKind::NotFound => return None,
                _ => continue,
            }
            // It may be closed by now.
            let Ok(file) = fs::metadata(&path) else {
                continue;
            };
            let of_file =
                |&(device, inode): &(u64, u64)| (device, inode) == (file.dev(), file.ino());
            if let Some(region) = files.iter().position(of_file) {
                open[region] += 1;
            }
        }
        if open.iter().any(|&count| count > usize::from(is_self)) {
            return Some(true);
        }
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.number)).ok()?;
        let mut has = maps.lines().filter_map(mapping).filter(|&(at, file)| {
            let of_region = |(region, &found): (&Arc<MemoryRegion>, &(u64, u64))| {
                let start = region.as_ptr().addr().get() as u64;
                let is_own = is_self && at.wrapping_sub(start) < region.len() as u64;
                found == file && !is_own
            };
            regions.iter().zip(&files).any(of_region)
        });
        // A process whose first thread has ended shows no mapping at all, though other threads run.
        (!maps.is_empty()).then(|| has.next().is_some())
    }
}

/// Parses a line of /proc/PID/maps: start of the mapping, and device and inode of its file.
fn mapping(line: &str) -> Option<(u64, (u64, u64))> {
    let mut words = line.split_ascii_whitespace();
    let (start, _) = words.next()?.split_once('-')?;
    let (major, minor) = words.nth(2)?.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    let device = rustix::fs::makedev(number(major)?, number(minor)?);
    let inode = words.next()?.parse().ok()?;
    Some((u64::from_str_radix(start, 16).ok()?, (device, inode)))
}

/// Reads an option of a socket (getsockopt(2)).
///
/// # Safety
/// The kernel fills `T` for that option, or any bits are valid for it.
unsafe fn option<T>(socket: BorrowedFd<'_>, name: i32) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, the size of the value.
    let rc = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            value.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was zeroed, and the kernel has filled it; by the caller's promise it is valid.
    Ok(unsafe { value.assume_init() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::net::UnixStream;

    use pollux_mempool::region::PageSize;

    use super::*;

    fn region() -> Arc<MemoryRegion> {
        let region = MemoryRegion::builder(8192).pages(PageSize::Kib4).build();
        Arc::new(region.unwrap())
    }

    #[test]
    fn descriptors_and_mappings_of_a_region_are_found() {
        let (socket, _peer) = UnixStream::pair().unwrap();
        let process = Process::of_peer(socket.as_fd()).unwrap();
        assert_eq!(process.number() as u32, std::process::id());
        assert!(!process.is_gone());
        let regions = [region(), region()];
        assert_eq!(process.has(&regions), Some(false));
        // SAFETY: nothing is written through the descriptor.
        let file = unsafe { regions[1].fd() }.try_clone_to_owned().unwrap();
        assert_eq!(process.has(&regions), Some(true));
        assert_eq!(process.has(&regions[..1]), Some(false));
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                4096,
                rustix::mm::ProtFlags::READ,
                rustix::mm::MapFlags::SHARED,
                &file,
                4096,
            )
        };
        drop(file);
        assert_eq!(process.has(&regions), Some(true));
        // SAFETY: the mapping from above, which has no other user.
        unsafe { rustix::mm::munmap(at.unwrap(), 4096) }.unwrap();
        assert_eq!(process.has(&regions), Some(false));
    }
}
