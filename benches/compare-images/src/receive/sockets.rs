//! Sockets of the kernel: many datagrams a call into buffers, and from there to the images.

use std::io;
use std::mem::zeroed;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use libc::{iovec, mmsghdr};
use pollux_images::formats::{HEADER_LEN, Header};
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::packets::{BURST, Images, PACKETS, PIXELS, Receive, Take};
use super::sender::Transmit;

/// Bytes that may wait in the socket: far more than those in flight, with the kernel's overhead.
const BUFFER: libc::c_int = 32 << 20;
/// Microseconds that a read may poll the device, where that has an effect.
const BUSY_POLL: libc::c_int = 50;
/// Images that are filled in turn.
const IMAGES: usize = 8;
/// Bytes of a datagram.
const DATAGRAM: usize = HEADER_LEN + PIXELS;
/// Bytes of a receive buffer.
const ROOM: usize = 9216;

const NOWHERE: iovec = iovec {
    iov_base: null_mut(),
    iov_len: 0,
};

/// Sets an option of a socket.
fn set(socket: &UdpSocket, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let len = size_of_val(&value) as libc::socklen_t;
    let value = (&raw const value).cast();
    // SAFETY: an integer that lives for the call is read.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value, len) };
    if result == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

/// Headers of messages, each with `pieces` of the places.
fn messages(places: &mut [iovec], pieces: usize) -> [mmsghdr; BURST] {
    let mut places = places.chunks_mut(pieces);
    std::array::from_fn(|_| {
        // SAFETY: integers, and pointers that may be null.
        let mut message: mmsghdr = unsafe { zeroed() };
        if let Some(pieces) = places.next() {
            message.msg_hdr.msg_iov = pieces.as_mut_ptr();
            message.msg_hdr.msg_iovlen = pieces.len();
        }
        message
    })
}

/// An image that is being filled.
struct Filled {
    number: u64,
    packets: usize,
    pixels: Vec<u8>,
}

/// A socket, and the images that its datagrams are copied to.
pub(super) struct SocketReceiver {
    socket: UdpSocket,
    buffers: Vec<u8>,
    images: Vec<Filled>,
}

impl SocketReceiver {
    /// Binds a socket in this namespace, to a free UDP port if `port` is 0.
    pub(super) fn bind(ip: [u8; 4], port: u16) -> Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::from(ip), port))?;
        set(&socket, libc::SO_RCVBUFFORCE, BUFFER).context("SO_RCVBUFFORCE, which needs root")?;
        set(&socket, libc::SO_BUSY_POLL, BUSY_POLL)?;
        let image = || Filled {
            number: 0,
            packets: 0,
            pixels: vec![0; PACKETS * PIXELS],
        };
        Ok(Self {
            socket,
            buffers: vec![0; BURST * ROOM],
            images: (0..IMAGES).map(|_| image()).collect(),
        })
    }
}

impl Receive for SocketReceiver {
    fn poll(&mut self, take: Take) -> Result<usize> {
        let mut places = [NOWHERE; BURST];
        for (place, buffer) in places.iter_mut().zip(self.buffers.chunks_mut(ROOM)) {
            place.iov_base = buffer.as_mut_ptr().cast();
            place.iov_len = buffer.len();
        }
        let mut messages = messages(&mut places, 1);
        // SAFETY: as many messages as there are buffers, each with the address of one that lives for
        // the call and has no other user.
        let count = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                messages.as_mut_ptr(),
                BURST as libc::c_uint,
                libc::MSG_DONTWAIT,
                null_mut(),
            )
        };
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock => Ok(0),
                _ => Err(error.into()),
            };
        };
        for (message, buffer) in messages[..count].iter().zip(self.buffers.chunks(ROOM)) {
            let datagram = &buffer[..message.msg_len as usize];
            ensure!(
                datagram.len() == DATAGRAM,
                "a datagram of {} B",
                datagram.len()
            );
            let (header, pixels) = Header::ref_from_prefix(datagram).ok().context("a header")?;
            let (number, packet) = (
                header.frame_number.get(),
                header.packet_number.get() as usize,
            );
            let image = &mut self.images[number as usize % IMAGES];
            if image.number != number {
                (image.number, image.packets) = (number, 0);
            }
            ensure!(packet < PACKETS, "packet {packet} of an image");
            image.pixels[packet * PIXELS..][..PIXELS].copy_from_slice(pixels);
            image.packets += 1;
            if image.packets == PACKETS {
                take(&image.pixels)?;
            }
        }
        Ok(count)
    }
}

/// A socket that sends to a receiver of this namespace.
pub(super) struct SocketTransmit {
    socket: UdpSocket,
    images: Arc<Images>,
    headers: Vec<Header>,
}

impl SocketTransmit {
    pub(super) fn new(receiver: &SocketReceiver, images: &Arc<Images>) -> Result<Self> {
        let to = receiver.socket.local_addr()?;
        let socket = UdpSocket::bind((to.ip(), 0))?;
        socket.connect(to)?;
        Ok(Self {
            socket,
            images: Arc::clone(images),
            headers: vec![images.header; BURST],
        })
    }
}

impl Transmit for SocketTransmit {
    fn send(&mut self, first: u64, count: usize) -> Result<()> {
        let mut places = [NOWHERE; 2 * BURST];
        let pieces = places.as_chunks_mut::<2>().0.iter_mut();
        for ((n, place), header) in (first..).zip(pieces).zip(&mut self.headers).take(count) {
            let (of_packet, pixels) = self.images.packet(n);
            *header = of_packet;
            place[0].iov_base = header.as_mut_bytes().as_mut_ptr().cast();
            place[0].iov_len = HEADER_LEN;
            place[1].iov_base = pixels.as_ptr().cast_mut().cast();
            place[1].iov_len = pixels.len();
        }
        let mut messages = messages(&mut places, 2);
        let mut sent = 0;
        while sent < count {
            let rest = &mut messages[sent..count];
            // SAFETY: as many messages as there are, each with the places of a header and of pixels
            // that live for the call, and that are only read.
            let more = unsafe {
                libc::sendmmsg(
                    self.socket.as_raw_fd(),
                    rest.as_mut_ptr(),
                    rest.len() as libc::c_uint,
                    0,
                )
            };
            sent += usize::try_from(more).map_err(|_| io::Error::last_os_error())?;
        }
        Ok(())
    }
}
