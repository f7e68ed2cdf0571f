//! System calls of an XDP socket: the kernel's Documentation/networking/af_xdp.rst.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::abi;
use super::ring::{Consumer, Entry, Layout, Producer};
use crate::drivers::step::Step;

/// An XDP socket, closed on drop.
pub(super) struct Socket(OwnedFd);

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Counters of dropped frames and of empty rings.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Statistics {
    /// Frames without a buffer, or longer than one.
    pub(super) dropped: u64,
    /// Frames for which the RX ring was full.
    pub(super) ring_full: u64,
    /// Times that FILL was empty when a buffer was needed.
    pub(super) fill_empty: u64,
    /// Invalid addresses in FILL and TX.
    pub(super) invalid: u64,
}

impl Socket {
    /// An unbound socket.
    pub(super) fn new() -> Result<Self, Step> {
        // SAFETY: no pointers; the descriptor is new, so it has no other owner.
        let fd = unsafe {
            let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
            let fd = libc::socket(libc::AF_XDP, flags, 0);
            if fd < 0 {
                let error = io::Error::last_os_error();
                return Err(("cannot open an XDP socket", error));
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Self(fd))
    }

    /// An invalid socket, for tests: every call on it fails.
    #[cfg(any(test, fuzzing))]
    pub(super) fn dummy(fd: OwnedFd) -> Self {
        Self(fd)
    }

    fn set<T: Copy>(&self, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
        // SAFETY: the kernel reads `size_of::<T>()` bytes of a `T` that is borrowed for the call.
        let result = unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                level,
                name,
                std::ptr::from_ref(value).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Reads an XDP option made of integers; returns the number of bytes that the kernel wrote.
    fn get<const N: usize>(&self, name: libc::c_int, out: &mut [u64; N]) -> io::Result<usize> {
        let mut len = size_of_val(out) as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` bytes to the integers, which are borrowed
        // exclusively for the call; any bits are valid integers.
        let result = unsafe {
            let to = out.as_mut_ptr().cast();
            libc::getsockopt(self.0.as_raw_fd(), libc::SOL_XDP, name, to, &raw mut len)
        };
        if result == 0 {
            Ok(len as usize)
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Registers memory as the UMEM. The kernel pins it, and writes into posted buffers.
    pub(super) fn register(&self, umem: &libc::xdp_umem_reg) -> Result<(), Step> {
        self.set(libc::SOL_XDP, libc::XDP_UMEM_REG, umem)
            .map_err(|error| ("cannot register the pool's memory", error))
    }

    /// Creates a ring without mapping it.
    pub(super) fn reserve(&self, kind: &Kind, size: u32) -> Result<(), Step> {
        self.set(libc::SOL_XDP, kind.option, &size)
            .map_err(|error| ("cannot get memory for a ring", error))
    }

    /// Location of the parts of the four rings: RX, TX, FILL, COMPLETION.
    fn layouts(&self) -> io::Result<[Layout; 4]> {
        let mut words = [0_u64; 16];
        let written = self.get(libc::XDP_MMAP_OFFSETS, &mut words)?;
        // Without flags, the offsets are those of a kernel before 5.4.
        if written != size_of_val(&words) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let layout = |ring: usize| {
            let [producer, consumer, desc, flags] = std::array::from_fn(|i| words[ring * 4 + i]);
            Layout::of(libc::xdp_ring_offset {
                producer,
                consumer,
                desc,
                flags,
            })
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
        };
        Ok([layout(0)?, layout(1)?, layout(2)?, layout(3)?])
    }

    fn ring<R>(
        &self,
        kind: &Kind,
        size: u32,
        map: impl FnOnce(BorrowedFd<'_>, u64, Layout, u32) -> io::Result<R>,
    ) -> Result<R, Step> {
        self.reserve(kind, size)?;
        self.layouts()
            .and_then(|layouts| map(self.as_fd(), kind.offset, layouts[kind.at], size))
            .map_err(|error| ("cannot map a ring", error))
    }

    /// Creates and maps a ring that the kernel reads.
    pub(super) fn producer<T: Entry>(&self, kind: &Kind, size: u32) -> Result<Producer<T>, Step> {
        self.ring(kind, size, Producer::map)
    }

    /// Creates and maps a ring that the kernel writes.
    pub(super) fn consumer<T: Entry>(&self, kind: &Kind, size: u32) -> Result<Consumer<T>, Step> {
        self.ring(kind, size, Consumer::map)
    }

    /// Makes the kernel poll the NIC's queue in this process's own calls, for at most `usec` each.
    pub(super) fn busy_poll(&self, usec: u32) -> Result<(), Step> {
        let set = |name, value: u32| self.set(libc::SOL_SOCKET, name, &value);
        set(abi::SO_PREFER_BUSY_POLL, 1)
            .and_then(|()| set(libc::SO_BUSY_POLL, usec))
            .and_then(|()| set(abi::SO_BUSY_POLL_BUDGET, 64))
            .map_err(|error| ("cannot switch to busy polling", error))
    }

    /// Lets one call send as many frames as the TX ring has, where the kernel supports it (6.17);
    /// the limit is 32 otherwise.
    pub(super) fn widen_tx(&self, frames: u32) {
        let _ = self.set(libc::SOL_XDP, abi::XDP_MAX_TX_SKB_BUDGET, &frames);
    }

    /// Binds to a queue of an interface. With `first`, shares the UMEM of that socket, and its
    /// `flags`.
    pub(super) fn bind(
        &self,
        interface: i32,
        queue: u32,
        flags: u16,
        first: Option<&Socket>,
    ) -> io::Result<()> {
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: first.map_or(flags, |_| libc::XDP_SHARED_UMEM),
            sxdp_ifindex: interface as u32,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: first.map_or(0, |first| first.0.as_raw_fd() as u32),
        };
        // SAFETY: the kernel reads a `sockaddr_xdp` that lives for the call.
        let result = unsafe {
            libc::bind(
                self.0.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_xdp>() as libc::socklen_t,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Whether the NIC accesses the UMEM directly.
    pub(super) fn is_zero_copy(&self) -> bool {
        let mut flags = [0];
        let read = self.get(libc::XDP_OPTIONS, &mut flags);
        read.is_ok() && flags[0] as u32 & libc::XDP_OPTIONS_ZEROCOPY != 0
    }

    /// Whether the kernel has unbound the socket, because its interface was removed, and has
    /// released the pool of its queue. True once.
    pub(super) fn was_unbound(&self) -> bool {
        // Only xsk_notifier (net/xdp/xsk.c) sets an error on such a socket. It holds the socket's
        // mutex from before that until the pool is cleared, and XDP_STATISTICS takes it.
        let error = rustix::net::sockopt::socket_error(&self.0);
        error == Ok(Err(rustix::io::Errno::NETDOWN)) && self.statistics().is_some()
    }

    /// The counters since the creation of the socket.
    pub(super) fn statistics(&self) -> Option<Statistics> {
        // `struct xdp_statistics`; a kernel before 5.9 has the first three fields.
        let mut words = [0; 6];
        self.get(libc::XDP_STATISTICS, &mut words).ok()?;
        let [dropped, rx_invalid, tx_invalid, ring_full, fill_empty, _] = words;
        Some(Statistics {
            dropped,
            ring_full,
            fill_empty,
            invalid: rx_invalid + tx_invalid,
        })
    }

    /// Makes the kernel send the frames in TX.
    pub(super) fn kick_tx(&self) -> io::Result<()> {
        let (fd, flags) = (self.0.as_raw_fd(), libc::MSG_DONTWAIT);
        // SAFETY: no data and no address are passed.
        let result = unsafe { libc::sendto(fd, std::ptr::null(), 0, flags, std::ptr::null(), 0) };
        if result >= 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Makes the kernel receive: read FILL, or poll the NIC's queue.
    pub(super) fn kick_rx(&self) {
        let (fd, flags) = (self.0.as_raw_fd(), libc::MSG_DONTWAIT);
        let none = std::ptr::null_mut();
        // The result is ignored: the rings and the link carry the information.
        // SAFETY: no data and no address are passed.
        let _ = unsafe { libc::recvfrom(fd, none, 0, flags, none.cast(), none.cast()) };
    }
}

/// One of a socket's four rings: the option that creates it, the offset of its mapping, and its
/// index among the layouts.
pub(super) struct Kind {
    option: libc::c_int,
    offset: u64,
    at: usize,
}

pub(super) const RX: Kind = Kind {
    option: libc::XDP_RX_RING,
    offset: libc::XDP_PGOFF_RX_RING as u64,
    at: 0,
};
pub(super) const TX: Kind = Kind {
    option: libc::XDP_TX_RING,
    offset: libc::XDP_PGOFF_TX_RING as u64,
    at: 1,
};
pub(super) const FILL: Kind = Kind {
    option: libc::XDP_UMEM_FILL_RING,
    offset: libc::XDP_UMEM_PGOFF_FILL_RING,
    at: 2,
};
pub(super) const COMPLETION: Kind = Kind {
    option: libc::XDP_UMEM_COMPLETION_RING,
    offset: libc::XDP_UMEM_PGOFF_COMPLETION_RING,
    at: 3,
};
