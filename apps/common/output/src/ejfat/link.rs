//! Links: how datagrams leave, by a socket of the kernel or by a port.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Where a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// The load balancer, or a receiver.
    Data,
    /// Its control plane.
    Control,
}

/// The result of sending a datagram.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Yes,
    /// There is no room now.
    Full,
    /// It was not sent: the receiver's host has refused an earlier one. Once told, the error is gone.
    Refused,
    /// It cannot be sent.
    Failed(String),
}

/// Numbers of events that were sent, and that were not although the link took all of their datagrams.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcomes {
    pub(super) sent: u64,
    pub(super) failed: u64,
}

/// A way for datagrams. It never waits.
pub(super) trait Link: Send {
    /// Whether datagrams can leave: addresses are resolved, the link is up.
    fn is_ready(&self) -> bool {
        true
    }

    /// The datagrams to [`Peer::Data`] since the last call were those of an event, or if `is_whole` is
    /// false of one that was given up. Returns whether the outcome of the whole one comes later, with
    /// [`outcomes`](Self::outcomes); it was sent otherwise.
    fn end_event(&mut self, is_whole: bool) -> bool {
        let _ = is_whole;
        false
    }

    /// Outcomes that have become known since the last call.
    fn outcomes(&mut self) -> Outcomes {
        Outcomes::default()
    }

    /// Sends a datagram.
    fn send(&mut self, to: Peer, datagram: &[u8]) -> Sent;

    /// Takes what has come back; whether the receiver's host has refused a datagram.
    fn poll(&mut self) -> bool;

    /// Ends, after the last datagram; returns the outcomes of all events that had none.
    fn close(self: Box<Self>) -> (Outcomes, Result<(), String>) {
        (Outcomes::default(), Ok(()))
    }
}

/// Sockets of the kernel.
pub(super) struct UdpLink {
    data: UdpSocket,
    control: Option<UdpSocket>,
}

impl UdpLink {
    pub(super) fn new(data: SocketAddr, control: Option<SocketAddr>) -> io::Result<Self> {
        Ok(Self {
            data: connected(data)?,
            control: control.map(connected).transpose()?,
        })
    }
}

/// A socket with one peer: the kernel reports what its host refuses.
fn connected(to: SocketAddr) -> io::Result<UdpSocket> {
    let any = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let open = || {
        let socket = UdpSocket::bind(any)?;
        socket.set_nonblocking(true)?;
        socket.connect(to)?;
        Ok(socket)
    };
    open().map_err(|error: io::Error| {
        io::Error::new(error.kind(), format!("no socket for {to}: {error}"))
    })
}

impl Link for UdpLink {
    fn send(&mut self, to: Peer, datagram: &[u8]) -> Sent {
        let socket = match (to, &self.control) {
            (Peer::Control, Some(control)) => control,
            _ => &self.data,
        };
        match socket.send(datagram) {
            Ok(_) => Sent::Yes,
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Sent::Full,
                // ENOBUFS: a queue of the kernel is full.
                _ if error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) => {
                    Sent::Full
                }
                ErrorKind::ConnectionRefused => Sent::Refused,
                _ => Sent::Failed(error.to_string()),
            },
        }
    }

    fn poll(&mut self) -> bool {
        let error = self.data.take_error().ok().flatten();
        error.is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    }
}
