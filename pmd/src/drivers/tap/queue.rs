//! Queue of a tap interface: a file of /dev/net/tun (linux/if_tun.h, and the kernel's
//! Documentation/networking/tuntap.rst).

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, readv, writev};

use crate::drivers::interface::request;

/// The file, closed on drop; with the last one the kernel removes the interface, unless it is
/// persistent.
pub(super) struct Queue(OwnedFd);

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Queue {
    /// Creates the interface, or attaches one more queue to it.
    pub(super) fn attach(name: &str) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let queue = Self(rustix::fs::open("/dev/net/tun", flags, Mode::empty())?);
        let mut ifreq = request(name).ok_or(io::ErrorKind::InvalidInput)?;
        // Plain frames, without the four bytes of packet information.
        let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_MULTI_QUEUE;
        ifreq.ifr_ifru.ifru_flags = flags as libc::c_short;
        queue.ask(libc::TUNSETIFF, &mut ifreq)?;
        Ok(queue)
    }

    /// Detaches this queue from reception. It can still send.
    pub(super) fn stand_aside(&self) -> io::Result<()> {
        // SAFETY: an `ifreq` of zeros is valid: an empty name and a union of plain integers.
        let mut ifreq: libc::ifreq = unsafe { std::mem::zeroed() };
        ifreq.ifr_ifru.ifru_flags = libc::IFF_DETACH_QUEUE as libc::c_short;
        self.ask(libc::TUNSETQUEUE, &mut ifreq)
    }

    /// Sets whether the interface persists when its last queue is closed.
    pub(super) fn persist(&self, stays: bool) -> io::Result<()> {
        let stays = libc::c_int::from(stays);
        // SAFETY: this request takes a number.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TUNSETPERSIST, stays) };
        checked(result)
    }

    /// Stops reception of all queues of the interface: attaches a filter that accepts nothing. The
    /// kernel counts later frames as dropped.
    pub(super) fn shut(&self) -> io::Result<()> {
        // BPF_RET | BPF_K with zero bytes to keep.
        let mut nothing = libc::sock_filter {
            code: 0x06,
            jt: 0,
            jf: 0,
            k: 0,
        };
        let mut program = libc::sock_fprog {
            len: 1,
            filter: &raw mut nothing,
        };
        // The kernel copies the program during the call.
        self.ask(libc::TUNATTACHFILTER, &mut program)
    }

    /// Resumes reception of all queues.
    pub(super) fn open_up(&self) -> io::Result<()> {
        // SAFETY: this request takes no argument.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), libc::TUNDETACHFILTER, 0) };
        checked(result)
    }

    /// A request that reads or writes the type that linux/if_tun.h defines, which is a `T` in all
    /// requests made here.
    fn ask<T>(&self, request: libc::Ioctl, argument: &mut T) -> io::Result<()> {
        let argument = std::ptr::from_mut(argument);
        // SAFETY: the kernel reads and writes one `T`, which is borrowed exclusively for the call.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), request, argument) })
    }

    /// Receives one frame; a frame longer than all buffers together is truncated.
    pub(super) fn read(&self, buffers: &mut [IoSliceMut<'_>]) -> Result<usize, Errno> {
        readv(&self.0, buffers)
    }

    /// Sends one frame.
    pub(super) fn write(&self, segments: &[IoSlice<'_>]) -> Result<usize, Errno> {
        writev(&self.0, segments)
    }
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result >= 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
