//! Packet sockets (packet(7)), for all drivers of interfaces.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::driver::filter::{Filter, Multicast};
use crate::drivers::step::Step;

/// A raw packet socket that receives nothing before it is bound.
pub(in crate::drivers) fn open() -> Result<OwnedFd, Step> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)
        .map_err(|error| ("cannot open a packet socket", error.into()))
}

/// Sets an option of a socket to a plain value.
pub(in crate::drivers) fn set<T: Copy>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes of a `T` that is borrowed for the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
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

/// Makes the interface receive what the filter accepts, until the socket is closed.
pub(in crate::drivers) fn join(
    socket: BorrowedFd<'_>,
    index: i32,
    filter: &Filter,
) -> Result<(), Step> {
    let join = |what, kind, group: &[u8]| {
        let mut request = libc::packet_mreq {
            mr_ifindex: index,
            mr_type: kind as u16,
            mr_alen: group.len() as u16,
            mr_address: [0; 8],
        };
        request.mr_address[..group.len()].copy_from_slice(group);
        let (level, name) = (libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP);
        set(socket, level, name, &request).map_err(|error| (what, error))
    };
    if filter.promiscuous {
        let what = "cannot switch to promiscuous mode";
        join(what, libc::PACKET_MR_PROMISC, &[])?;
    }
    let what = "cannot receive multicast addresses";
    match &filter.multicast {
        Multicast::All => join(what, libc::PACKET_MR_ALLMULTI, &[]),
        Multicast::Listed(groups) => groups
            .iter()
            .try_for_each(|group| join(what, libc::PACKET_MR_MULTICAST, &group.0)),
    }
}

/// Receive filter of an interface, for a driver that receives its frames by other means; active
/// until it is dropped.
pub(in crate::drivers) struct Membership(#[expect(dead_code, reason = "held")] OwnedFd);

impl Membership {
    /// `None` if the filter has no entries.
    pub(in crate::drivers) fn new(index: i32, filter: &Filter) -> Result<Option<Self>, Step> {
        if *filter == Filter::default() {
            return Ok(None);
        }
        let socket = open()?;
        join(socket.as_fd(), index, filter)?;
        Ok(Some(Self(socket)))
    }
}
