//! Sockets of the kernel, as fast as they can be had: one for each board, many datagrams a call,
//! straight into packet buffers, without waiting, and with room for all that may be under way.

use std::io;
use std::mem::zeroed;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::ptr::null_mut;

use libc::{iovec, mmsghdr};
use pollux_mempool::time::Tsc;
use pollux_mempool::{Burst, PoolCache};
use pollux_na62::l0::Frame;
use pollux_pipelines::{Batch, Moment};
use pollux_pmd::net::UDP_HEADERS;
use pollux_pmd::stream::StreamId;

use super::failure::Failure;
use super::traffic::{BOARDS, BURST, PORT, Traffic};

/// Bytes that may wait in a socket: far more than what may be under way takes, with the kernel's
/// overhead of about 1 KiB for each datagram.
const BUFFER: libc::c_int = 32 << 20;
/// Microseconds that a read may poll the device, where that has an effect.
const BUSY_POLL: libc::c_int = 50;

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

/// The boards' sockets at an address of this namespace.
pub(super) fn receivers(ip: [u8; 4]) -> Result<Receivers, Failure> {
    let sockets: Result<Vec<_>, io::Error> = (0..BOARDS)
        .map(|board| {
            let socket = UdpSocket::bind((Ipv4Addr::from(ip), PORT + u16::from(board)))?;
            set(&socket, libc::SO_RCVBUFFORCE, BUFFER)?;
            set(&socket, libc::SO_BUSY_POLL, BUSY_POLL)?;
            Ok(socket)
        })
        .collect();
    Ok(Receivers {
        sockets: sockets?,
        next: 0,
        buffers: Burst::new(),
    })
}

/// Receivers and senders on the loopback interface.
pub(super) fn pairs() -> Result<(Receivers, Senders), Failure> {
    let receivers = receivers(Ipv4Addr::LOCALHOST.octets())?;
    let sockets: Result<Vec<_>, io::Error> = (0..BOARDS)
        .map(|board| {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.connect((Ipv4Addr::LOCALHOST, PORT + u16::from(board)))?;
            Ok(socket)
        })
        .collect();
    let senders = Senders {
        sockets: sockets?,
        next: 0,
        payloads: (0..BURST).map(|_| Vec::with_capacity(2048)).collect(),
    };
    Ok((receivers, senders))
}

/// Headers of messages into, or out of, these places.
fn messages(places: &mut [iovec; BURST]) -> [mmsghdr; BURST] {
    let mut places = places.iter_mut();
    std::array::from_fn(|_| {
        // SAFETY: integers, and pointers that may be null.
        let mut message: mmsghdr = unsafe { zeroed() };
        message.msg_hdr.msg_iov = places.next().map_or(null_mut(), |place| place);
        message.msg_hdr.msg_iovlen = 1;
        message
    })
}

const NOWHERE: iovec = iovec {
    iov_base: null_mut(),
    iov_len: 0,
};

pub(super) struct Receivers {
    sockets: Vec<UdpSocket>,
    next: usize,
    /// Buffers that datagrams may be put into, all as long as they can be.
    buffers: Burst<BURST>,
}

impl Receivers {
    /// Takes what the next socket has, up to a burst.
    pub(super) fn take(
        &mut self,
        cache: &mut PoolCache,
        frames: &mut Batch<Frame>,
        now: Tsc,
    ) -> Result<(), Failure> {
        let old = self.buffers.len();
        cache.alloc_burst(&mut self.buffers, BURST - old);
        for mbuf in &mut self.buffers[old..] {
            // All the room that there is.
            let room = mbuf.tailroom();
            let _ = mbuf.append(room);
        }
        let mut places = [NOWHERE; BURST];
        for (place, mbuf) in places.iter_mut().zip(self.buffers.iter_mut()) {
            let data = mbuf.data_mut();
            place.iov_len = data.len();
            place.iov_base = data.as_mut_ptr().cast();
        }
        let mut messages = messages(&mut places);
        let board = self.next;
        self.next = (board + 1) % self.sockets.len();
        // SAFETY: as many messages as there are buffers, each with the address of one that lives
        // for the call and has no other user.
        let count = unsafe {
            libc::recvmmsg(
                self.sockets[board].as_raw_fd(),
                messages.as_mut_ptr(),
                self.buffers.len() as libc::c_uint,
                libc::MSG_DONTWAIT,
                null_mut(),
            )
        };
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock => Ok(()),
                _ => Err(error.into()),
            };
        };
        let mut messages = messages.iter();
        self.buffers.take_front(count, |mut mbuf| {
            mbuf.set_arrival(now);
            let frame = Frame {
                mbuf,
                stream: StreamId(board as u16),
                offset: 0,
                len: messages.next().map_or(0, |message| message.msg_len as u16),
                at: Moment(1),
            };
            // It fits: a batch holds a burst.
            let _ = frames.push(frame);
        });
        Ok(())
    }
}

pub(super) struct Senders {
    sockets: Vec<UdpSocket>,
    next: usize,
    payloads: Vec<Vec<u8>>,
}

impl Senders {
    /// Sends a burst of the next board's datagrams; how many.
    pub(super) fn send(&mut self, traffic: &mut Traffic) -> Result<u64, Failure> {
        let board = self.next;
        self.next = (board + 1) % self.sockets.len();
        let mut places = [NOWHERE; BURST];
        for (place, payload) in places.iter_mut().zip(&mut self.payloads) {
            payload.clear();
            payload.extend_from_slice(&traffic.next_of(board)[UDP_HEADERS..]);
            place.iov_len = payload.len();
            place.iov_base = payload.as_mut_ptr().cast();
        }
        let mut messages = messages(&mut places);
        let mut sent = 0;
        while sent < BURST {
            let rest = &mut messages[sent..];
            // SAFETY: as many messages as there are, each with the place of a payload that lives
            // for the call.
            let count = unsafe {
                libc::sendmmsg(
                    self.sockets[board].as_raw_fd(),
                    rest.as_mut_ptr(),
                    rest.len() as libc::c_uint,
                    0,
                )
            };
            sent += usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        }
        Ok(BURST as u64)
    }
}
