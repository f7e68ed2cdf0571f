//! System calls of a packet socket: packet(7).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::ring::{Geometry, Ring};
use crate::drivers::interface::packet;
use crate::drivers::step::Step;

/// A raw packet socket, closed on drop, which also ends its memberships and leaves its fan-out
/// group.
pub(super) struct Socket(OwnedFd);

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Socket {
    /// A socket that receives nothing before it is bound.
    pub(super) fn new() -> Result<Self, Step> {
        let socket = Self(packet::open()?);
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        socket.set("select TPACKET_V2", libc::PACKET_VERSION, &version)?;
        Ok(socket)
    }

    /// Sets a packet option to a plain value; `what` is for the message.
    pub(super) fn set<T: Copy>(
        &self,
        what: &'static str,
        name: libc::c_int,
        value: &T,
    ) -> Result<(), Step> {
        self.set_at(libc::SOL_PACKET, name, value)
            .map_err(|error| (what, error))
    }

    fn set_at<T: Copy>(&self, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
        packet::set(self.as_fd(), level, name, value)
    }

    /// Reads a packet option.
    fn get(&self, name: libc::c_int, out: &mut [u32]) -> io::Result<()> {
        let mut len = size_of_val(out) as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` bytes to the integers, which are borrowed
        // exclusively for the call; any bits are valid integers.
        let result = unsafe {
            let to = out.as_mut_ptr().cast();
            libc::getsockopt(self.0.as_raw_fd(), libc::SOL_PACKET, name, to, &raw mut len)
        };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Creates the socket's ring and maps it.
    pub(super) fn ring(&self, name: libc::c_int, geometry: Geometry) -> Result<Ring, Step> {
        let what = "cannot get memory for a packet ring";
        let request = geometry
            .request()
            .ok_or((what, io::ErrorKind::InvalidInput.into()))?;
        self.set(what, name, &request)?;
        Ring::map(self, geometry).map_err(|error| ("cannot map a packet ring", error))
    }

    /// Binds to an interface; `protocol` 0 sends only, ETH_P_ALL receives all frames.
    pub(super) fn bind(&self, index: i32, protocol: libc::c_int) -> Result<(), Step> {
        // SAFETY: an address of zeros is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (protocol as u16).to_be();
        address.sll_ifindex = index;
        // SAFETY: the kernel reads a `sockaddr_ll` that lives for the call.
        let result = unsafe {
            libc::bind(
                self.0.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(("cannot bind to the interface", io::Error::last_os_error()))
        }
    }

    /// Joins the fan-out group of `first`, or creates a group.
    pub(super) fn fan_out(&self, mode: u32, first: Option<&Socket>) -> Result<(), Step> {
        let what = "cannot distribute the frames over several queues";
        // A group has a flag of its own for this; the flag of the sockets has no effect in it.
        let mode = mode | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
        let group = match first {
            None => (mode | libc::PACKET_FANOUT_FLAG_UNIQUEID) << 16,
            Some(first) => {
                let mut group = [0];
                first
                    .get(libc::PACKET_FANOUT, &mut group)
                    .map_err(|error| (what, error))?;
                mode << 16 | group[0] & 0xffff
            }
        };
        self.set(what, libc::PACKET_FANOUT, &group)
    }

    /// Stops reception: attaches a filter that accepts nothing.
    pub(super) fn shut(&self) -> Result<(), Step> {
        // BPF_RET | BPF_K with zero bytes to keep.
        let mut nothing = libc::sock_filter {
            code: 0x06,
            jt: 0,
            jf: 0,
            k: 0,
        };
        let program = libc::sock_fprog {
            len: 1,
            filter: &raw mut nothing,
        };
        // The kernel copies the program during the call.
        self.set_at(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
            .map_err(|error| ("cannot filter frames", error))
    }

    /// Resumes reception.
    pub(super) fn open_up(&self) -> Result<(), Step> {
        self.set_at(libc::SOL_SOCKET, libc::SO_DETACH_FILTER, &0)
            .map_err(|error| ("cannot receive frames", error))
    }

    /// Number of frames that the kernel had for this socket since the last call, and how many of
    /// them it has dropped.
    pub(super) fn take_counts(&self) -> (u64, u64) {
        // `tpacket_stats`: all frames, those dropped included, then the dropped ones.
        let mut stats = [0; 2];
        // Fails for a closed socket only.
        let _ = self.get(libc::PACKET_STATISTICS, &mut stats);
        (stats[0].into(), stats[1].into())
    }

    /// Makes the kernel send the frames in the ring; does not wait.
    pub(super) fn kick(&self) -> io::Result<()> {
        let fd = self.0.as_raw_fd();
        // SAFETY: no data and no address are passed.
        let result = unsafe {
            libc::sendto(
                fd,
                std::ptr::null(),
                0,
                libc::MSG_DONTWAIT,
                std::ptr::null(),
                0,
            )
        };
        if result >= 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}
