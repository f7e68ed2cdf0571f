//! Through the kernel's UDP sockets: no driver, no privilege, any interface.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use pollux_na62::formats::hits::{MAGIC, MAX_FRAME};
use pollux_pmd::{Cause, Ledger, Tally};
use socket2::{Domain, Protocol, Socket, Type};

use super::api::{Link, SentCounts};
use crate::check::DecisionCheck;
use crate::config::EmulatorConfig;
use crate::frames::Frame;

/// What the kernel is asked to buffer each way, in bytes; it may grant less.
const BUFFER: usize = 4 << 20;
/// Packets taken at once.
const BURST: usize = 32;

/// Why a socket cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("UDP socket {address}: {what}: {source}")]
pub struct SocketError {
    address: SocketAddrV4,
    what: &'static str,
    source: io::Error,
}

/// A link through one socket for each board, and one for decisions.
pub struct SocketLink {
    boards: Vec<UdpSocket>,
    decisions: UdpSocket,
    scratch: Box<[u8; 2048]>,
    sent: SentCounts,
    tally: Tally,
}

impl SocketLink {
    /// Opens the sockets of a configuration.
    ///
    /// # Errors
    /// An address that is not this host's, a port that is taken, or a trigger without a route.
    pub fn open(config: &EmulatorConfig) -> Result<Self, SocketError> {
        let ip = config.addresses.src_ip.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let board = |board| {
            let (src, dst) = config.endpoints(board);
            connect(SocketAddrV4::new(ip, src.socket.port()), dst.socket)
        };
        Ok(Self {
            boards: (0..config.boards).map(board).collect::<Result<_, _>>()?,
            decisions: bind(SocketAddrV4::new(ip, config.addresses.decision_port))?,
            scratch: Box::new([0; 2048]),
            sent: SentCounts::default(),
            tally: Tally::new(),
        })
    }
}

/// Opens a socket at `local` for datagrams to `peer`, that does not wait.
pub(crate) fn connect(local: SocketAddrV4, peer: SocketAddrV4) -> Result<UdpSocket, SocketError> {
    let socket = bind(local)?;
    let what = "no route to the receiver (is its address right?)";
    let source = |source| SocketError {
        address: peer,
        what,
        source,
    };
    socket.connect(peer).map_err(source)?;
    Ok(socket)
}

fn bind(address: SocketAddrV4) -> Result<UdpSocket, SocketError> {
    let open = || {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        // More than the system allows is granted in part, so there is nothing to do on refusal.
        let _ = socket.set_send_buffer_size(BUFFER);
        let _ = socket.set_recv_buffer_size(BUFFER);
        socket.bind(&address.into())?;
        Ok(socket.into())
    };
    let what = "cannot be bound (another program, or an address that is not this host's?)";
    open().map_err(|source| SocketError {
        address,
        what,
        source,
    })
}

impl Link for SocketLink {
    fn offer(&mut self, frame: &Frame) -> bool {
        let Some(socket) = self.boards.get(usize::from(frame.board)) else {
            self.sent.errors += 1;
            return true;
        };
        let mut payload = frame.payload();
        if let Some((at, bits)) = frame.corrupt {
            // The kernel makes the checksum, so the byte is one that every receiver checks.
            let copy = &mut self.scratch[..payload.len()];
            copy.copy_from_slice(payload);
            copy[usize::from(at) % MAGIC.len()] ^= bits;
            payload = copy;
        }
        let mut result = socket.send(payload);
        if matches!(&result, Err(error) if error.kind() == ErrorKind::ConnectionRefused) {
            // The kernel reports what became of an earlier frame, and sends this one only now.
            self.sent.refused += 1;
            result = socket.send(payload);
        }
        match result {
            Ok(_) => self.sent.count(payload.len() as u64, frame.hits),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(_) => self.sent.errors += 1,
        }
        true
    }

    fn flush(&mut self) -> usize {
        0
    }

    fn poll(&mut self, check: &mut DecisionCheck) {
        for _ in 0..BURST {
            let Ok(len) = self.decisions.recv(&mut self.scratch[..]) else {
                return;
            };
            self.tally.count_from_wire(1, len as u64);
            match check.packet(&self.scratch[..len]) {
                Ok(()) => self.tally.count_delivered(1),
                Err(_) => self.tally.count_dropped(Cause::Malformed, 1),
            }
        }
    }

    fn is_live(&self) -> bool {
        true
    }

    fn can_receive(&self) -> bool {
        true
    }

    fn sent(&self) -> SentCounts {
        self.sent
    }

    fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::new();
        ledger.add("decisions", self.tally.view());
        ledger
    }
}

const _: () = assert!(MAX_FRAME <= 2048);
