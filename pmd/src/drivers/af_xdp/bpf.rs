//! BPF maps, programs and links of the kernel: bpf(2), linux/bpf.h.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::abi;
use super::program::Instruction;

/// Calls bpf(2) with the first bytes of its `union bpf_attr`; the kernel takes the rest as zeros.
///
/// # Safety
/// `T` is the part of `union bpf_attr` that `command` uses, without padding; what it points to is
/// alive and has the length that the command expects.
unsafe fn bpf<T>(command: libc::c_int, attributes: &mut T) -> io::Result<libc::c_long> {
    // SAFETY: the kernel reads and writes `size_of::<T>()` bytes of a `T` that is borrowed
    // exclusively; by the caller's promise, what it points to is valid.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_mut(attributes),
            size_of::<T>(),
        )
    };
    if result >= 0 {
        Ok(result)
    } else {
        Err(io::Error::last_os_error())
    }
}

/// As `bpf`, for a command that creates a file descriptor (always with close-on-exec).
///
/// # Safety
/// As for `bpf`.
unsafe fn bpf_fd<T>(command: libc::c_int, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: by the caller's promise; the descriptor is new, so it has no other owner.
    unsafe {
        let fd = bpf(command, attributes)?;
        Ok(OwnedFd::from_raw_fd(fd as libc::c_int))
    }
}

fn address<T: ?Sized>(of: &T) -> u64 {
    std::ptr::from_ref(of).cast::<u8>().expose_provenance() as u64
}

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

#[repr(C)]
struct MapElement {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// A map from `u32` to `V`, freed when the last program and descriptor are closed.
pub(super) struct Map<V> {
    fd: OwnedFd,
    of: std::marker::PhantomData<V>,
}

impl<V> AsFd for Map<V> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl<V> Map<V> {
    fn new(map_type: u32, entries: u32) -> io::Result<Self> {
        let mut attributes = MapCreate {
            map_type,
            key_size: 4,
            value_size: size_of::<V>() as u32,
            max_entries: entries,
        };
        // SAFETY: the attributes of BPF_MAP_CREATE; they point to nothing.
        let fd = unsafe { bpf_fd(abi::BPF_MAP_CREATE, &mut attributes) }?;
        Ok(Self {
            fd,
            of: std::marker::PhantomData,
        })
    }

    #[allow(clippy::trivially_copy_pass_by_ref)] // the kernel gets its address
    fn element(&self, key: &u32, value: u64) -> MapElement {
        MapElement {
            map_fd: self.fd.as_raw_fd() as u32,
            padding: 0,
            key: address(key),
            value,
            flags: 0,
        }
    }
}

impl Map<u32> {
    /// A map from a NIC's queue to the XDP socket that receives its frames.
    pub(super) fn of_sockets(queues: u32) -> io::Result<Self> {
        Self::new(abi::BPF_MAP_TYPE_XSKMAP, queues)
    }

    /// Directs a queue's frames to a socket.
    pub(super) fn insert(&self, queue: u32, socket: impl AsFd) -> io::Result<()> {
        let fd = socket.as_fd().as_raw_fd() as u32;
        self.change(abi::BPF_MAP_UPDATE_ELEM, queue, Some(fd))
    }

    /// Directs a queue's frames to no socket.
    pub(super) fn remove(&self, queue: u32) -> io::Result<()> {
        self.change(abi::BPF_MAP_DELETE_ELEM, queue, None)
    }

    fn change(&self, command: libc::c_int, queue: u32, fd: Option<u32>) -> io::Result<()> {
        let mut attributes = self.element(&queue, fd.as_ref().map_or(0, address));
        // SAFETY: the attributes of BPF_MAP_UPDATE_ELEM and BPF_MAP_DELETE_ELEM; key and value, of
        // which the second command has none, live for the call and have the sizes of the map.
        unsafe { bpf(command, &mut attributes) }.map(drop)
    }
}

impl Map<u64> {
    /// A map with one counter.
    pub(super) fn of_counter() -> io::Result<Self> {
        Self::new(abi::BPF_MAP_TYPE_ARRAY, 1)
    }

    /// Current value of the counter.
    pub(super) fn count(&self) -> io::Result<u64> {
        let mut count = 0_u64;
        let value = std::ptr::from_mut(&mut count).expose_provenance() as u64;
        let mut attributes = self.element(&0, value);
        // SAFETY: the attributes of BPF_MAP_LOOKUP_ELEM; the kernel reads the key and writes the 8
        // bytes of the value, which live for the call.
        unsafe { bpf(abi::BPF_MAP_LOOKUP_ELEM, &mut attributes) }?;
        // Volatile: the compiler does not see that the call writes it.
        // SAFETY: a local variable.
        Ok(unsafe { (&raw const count).read_volatile() })
    }
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// A loaded XDP program.
pub(super) struct Program(OwnedFd);

impl Program {
    /// Loads a program, which the kernel verifies.
    pub(super) fn load(code: &[Instruction]) -> io::Result<Self> {
        let load = |flags| {
            let mut attributes = ProgramLoad {
                kind: abi::BPF_PROG_TYPE_XDP,
                instructions: code.len() as u32,
                code: address(code),
                license: address(c"Dual MIT/GPL"),
                log_level: 0,
                log_size: 0,
                log: 0,
                kernel_version: 0,
                flags,
            };
            // SAFETY: the attributes of BPF_PROG_LOAD; the kernel reads `instructions` times 8
            // bytes of code and a terminated string, both of which live for the call.
            unsafe { bpf_fd(abi::BPF_PROG_LOAD, &mut attributes) }
        };
        // A kernel before 5.18 does not support frames in fragments.
        match load(abi::BPF_F_XDP_HAS_FRAGS) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => load(0),
            loaded => loaded,
        }
        .map(Self)
    }

    /// Runs the program on a frame; returns its verdict.
    #[cfg(test)]
    pub(super) fn run(&self, frame: &[u8]) -> io::Result<u32> {
        let mut out = vec![0_u8; frame.len() + 256];
        let mut attributes = TestRun {
            program: self.0.as_raw_fd() as u32,
            result: 0,
            len_in: frame.len() as u32,
            len_out: out.len() as u32,
            data_in: address(frame),
            data_out: out.as_mut_ptr().addr() as u64,
            repeat: 1,
            duration: 0,
        };
        // SAFETY: the attributes of BPF_PROG_TEST_RUN; both buffers live for the call and have
        // these lengths.
        unsafe { bpf(abi::BPF_PROG_TEST_RUN, &mut attributes) }?;
        // SAFETY: a local variable; volatile, since the compiler does not see the call write it.
        Ok(unsafe { (&raw const attributes.result).read_volatile() })
    }
}

#[cfg(test)]
#[repr(C)]
struct TestRun {
    program: u32,
    result: u32,
    len_in: u32,
    len_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

/// An attached program; detached when this is dropped or the process ends.
pub(super) struct Link(OwnedFd);

impl Link {
    /// Attaches a program; `flags` choose native or generic.
    pub(super) fn attach(program: &Program, interface: i32, flags: u32) -> io::Result<Self> {
        let mut attributes = LinkCreate {
            program: program.0.as_raw_fd() as u32,
            interface: interface as u32,
            attach_type: abi::BPF_XDP,
            flags,
        };
        // SAFETY: the attributes of BPF_LINK_CREATE; they point to nothing.
        unsafe { bpf_fd(abi::BPF_LINK_CREATE, &mut attributes) }.map(Self)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Closing would detach as well, but not while a child process that is being started holds a
        // copy of the descriptor.
        let mut link = self.0.as_raw_fd() as u32;
        // SAFETY: the attributes of BPF_LINK_DETACH: the descriptor alone. It fails if the
        // interface has gone, and then nothing is attached.
        let _ = unsafe { bpf(abi::BPF_LINK_DETACH, &mut link) };
    }
}
