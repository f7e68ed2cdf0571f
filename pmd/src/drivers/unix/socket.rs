//! The datagram socket of a port (unix(7)): bound to the port's path, it sends to the peer's.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{
    AddressFamily, MMsgHdr, SendAncillaryBuffer, SendFlags, Shutdown, SocketAddrAny,
    SocketAddrUnix, SocketFlags, SocketType, bind, connect, sendmmsg, shutdown, socket_with,
    sockopt,
};

/// Maximum number of frames of one system call.
pub(super) const BATCH: usize = 32;

/// Maximum number of buffers of the frames of one system call.
pub(super) const SLICES: usize = 2 * BATCH;

/// A socket without an address.
pub(super) fn unbound() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)
}

/// The bound socket; dropping it removes its file.
pub(super) struct Socket {
    fd: OwnedFd,
    path: PathBuf,
    /// Device and inode of the file that `bind` made.
    file: (u64, u64),
    peer: SocketAddrAny,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The file of another program, if this one's was removed and the path reused.
        if identity(&self.path).is_ok_and(|file| file == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Socket {
    /// Binds a socket to a path. `capacity`: bytes of frames that may wait at the peer, as far as
    /// the kernel permits (net.core.wmem_max).
    pub(super) fn bind(path: &Path, peer: &SocketAddrUnix, capacity: usize) -> io::Result<Self> {
        let (fd, address) = (unbound()?, SocketAddrUnix::new(path)?);
        match bind(&fd, &address) {
            // The file of a program that was killed: it is a socket, and none is bound to it.
            Err(Errno::ADDRINUSE) if is_stale(path, &address)? => {
                fs::remove_file(path)?;
                bind(&fd, &address)?;
            }
            other => other?,
        }
        let socket = Self {
            fd,
            path: path.into(),
            file: identity(path)?,
            peer: peer.as_any(),
        };
        sockopt::set_socket_send_buffer_size(&socket.fd, capacity)?;
        Ok(socket)
    }

    /// Receives frames, each into two buffers that follow each other, and stores their lengths,
    /// which are larger than the buffers if a frame did not fit. Returns the number of frames.
    pub(super) fn receive(
        &self,
        buffers: &mut [[IoSliceMut<'_>; 2]],
        lens: &mut [usize; BATCH],
    ) -> Result<usize, Errno> {
        let mut each = buffers.iter_mut();
        let mut messages: [libc::mmsghdr; BATCH] = std::array::from_fn(|_| {
            let buffers = each.next().map_or(&mut [][..], |two| &mut two[..]);
            libc::mmsghdr {
                msg_hdr: libc::msghdr {
                    msg_name: std::ptr::null_mut(),
                    msg_namelen: 0,
                    // An `IoSliceMut` has the layout of an `iovec`.
                    msg_iov: buffers.as_mut_ptr().cast(),
                    msg_iovlen: buffers.len(),
                    msg_control: std::ptr::null_mut(),
                    msg_controllen: 0,
                    msg_flags: 0,
                },
                msg_len: 0,
            }
        });
        let count = buffers.len().min(BATCH);
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: `count` headers are valid; each points to the slices of one element of `buffers`,
        // which is borrowed exclusively for the call, as are the bytes that the slices borrow.
        let received = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr(),
                count as libc::c_uint,
                flags,
                std::ptr::null_mut(),
            )
        };
        let Ok(received) = usize::try_from(received) else {
            return Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO));
        };
        for (len, message) in lens.iter_mut().zip(&messages[..received.min(count)]) {
            *len = message.msg_len as usize;
        }
        Ok(received.min(count))
    }

    /// Sends frames to the peer, and returns how many of them. `segments` has the number of slices
    /// of each. An error concerns the first frame.
    pub(super) fn send(&self, slices: &[IoSlice<'_>], segments: &[usize]) -> Result<usize, Errno> {
        let mut controls: [SendAncillaryBuffer<'_, '_, '_>; BATCH] =
            std::array::from_fn(|_| SendAncillaryBuffer::default());
        let (mut rest, mut segments_of) = (slices, segments.iter());
        let mut messages = controls.each_mut().map(|control| {
            let count = segments_of.next().copied().unwrap_or_default();
            let (frame, others) = rest.split_at(count.min(rest.len()));
            rest = others;
            MMsgHdr::new_with_addr(&self.peer, frame, control)
        });
        let messages = &mut messages[..segments.len().min(BATCH)];
        sendmmsg(&self.fd, messages, SendFlags::DONTWAIT)
    }

    /// Ends reception: a peer that sends gets an error (EPIPE).
    pub(super) fn shut(&self) -> Result<(), Errno> {
        shutdown(&self.fd, Shutdown::Read)
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let file = path.symlink_metadata()?;
    Ok((file.dev(), file.ino()))
}

/// Whether a path is a socket's that no program has bound.
fn is_stale(path: &Path, address: &SocketAddrUnix) -> io::Result<bool> {
    let is_socket = path.symlink_metadata()?.file_type().is_socket();
    Ok(is_socket && connect(unbound()?, address) == Err(Errno::CONNREFUSED))
}
