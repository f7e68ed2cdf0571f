//! What a program tells the connection manager, and what it hears of it.

use std::fmt;
use std::net::Ipv4Addr;

use crate::address::{Mtu, QpAddress, QpNumber};
use crate::endpoint::PathOptions;

/// Name of a connection: its number in the table (low eight bits) and 24 random bits, new each time. It
/// is the communication identifier of this end (InfiniBand, 12.6.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId(pub(super) u32);

/// Eight hexadecimal digits.
impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// What this end brings into a connection.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Number of its queue pair.
    pub qp: QpNumber,
    /// Its side of the path: `gets` is the initiator depth. The passive end takes the MTU, and how often it
    /// repeats requests, of the active one.
    pub path: PathOptions,
    /// GETs of the peer that it answers at a time (responder resources).
    pub answers: u8,
}

/// What both ends have agreed upon: connect the queue pair with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The peer's queue pair.
    pub peer: QpAddress,
    /// The path: the smaller numbers of both, and `first_psn`.
    pub path: PathOptions,
}

/// What the connection manager reports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CmEvent {
    /// A peer asks for a connection: [accept](super::ConnectionManager::accept) it, connect the queue pair
    /// and [confirm](super::ConnectionManager::confirm), or [reject](super::ConnectionManager::reject) it.
    Requested {
        /// The connection.
        id: ConnectionId,
        /// Address of the peer.
        peer: Ipv4Addr,
        /// The port that it asks for.
        port: u16,
        /// MTU of the path.
        mtu: Mtu,
        /// 56 bytes for the program, as far as the peer uses them.
        private: Box<[u8]>,
    },
    /// The peer has accepted: connect the queue pair, then [confirm](super::ConnectionManager::confirm).
    Accepted {
        /// The connection.
        id: ConnectionId,
        /// What to connect the queue pair with.
        agreed: Agreed,
        /// 196 bytes for the program, as far as the peer uses them.
        private: Box<[u8]>,
    },
    /// The peer has confirmed what this end accepted. Its packets may come before.
    Established {
        /// The connection.
        id: ConnectionId,
    },
    /// The connection is over before it began: the peer rejects it, or does not answer.
    Failed {
        /// The connection.
        id: ConnectionId,
        /// Why.
        why: Failure,
    },
    /// The connection is over: either end has asked for it, or the peer knows it no more.
    Disconnected {
        /// The connection.
        id: ConnectionId,
    },
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The peer does not answer.
    #[error("the peer does not answer: check its address, and that it listens")]
    NoAnswer,
    /// The program did not accept, reject or confirm in time.
    #[error("the program did not answer within 60 s")]
    TooLate,
    /// The peer rejects.
    #[error("the peer rejects: {reason}")]
    Rejected {
        /// Why.
        reason: Reason,
        /// 148 bytes for the program, as far as the peer uses them.
        private: Box<[u8]>,
    },
    /// The peer's answer has a value that a connection cannot have.
    #[error("the peer's answer has an invalid {0}")]
    Answer(&'static str),
}

/// Reason of a rejection (InfiniBand, table 109).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason(pub u16);

impl Reason {
    /// No resources.
    pub const NO_RESOURCES: Self = Self(3);
    /// No answer in time.
    pub const TIMEOUT: Self = Self(4);
    /// The request is not supported.
    pub const UNSUPPORTED: Self = Self(5);
    /// The communication identifier is unknown.
    pub const INVALID_ID: Self = Self(6);
    /// The service is unknown: no program listens on the port.
    pub const INVALID_SERVICE: Self = Self(8);
    /// The transport service is not supported.
    pub const INVALID_TRANSPORT: Self = Self(9);
    /// A connection of the same queue pair exists.
    pub const STALE: Self = Self(10);
    /// The GID is not of this path.
    pub const INVALID_GID: Self = Self(12);
    /// The MTU is not supported.
    pub const INVALID_MTU: Self = Self(26);
    /// The program rejects.
    pub const CONSUMER: Self = Self(28);
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Self::NO_RESOURCES => "it has no resources for another connection",
            Self::TIMEOUT => "it had no answer in time",
            Self::UNSUPPORTED => "it does not support the request",
            Self::INVALID_ID => "it does not know the connection",
            Self::INVALID_SERVICE => "no program listens on the port",
            Self::INVALID_TRANSPORT => "it does not support the transport service",
            Self::STALE => "it has a connection of the same queue pair",
            Self::INVALID_GID => "the GID is not that of the path",
            Self::INVALID_MTU => "it does not support the MTU",
            Self::CONSUMER => "its program refused",
            Self(reason) => return write!(f, "reason {reason} (InfiniBand, table 109)"),
        };
        f.write_str(text)
    }
}

/// Why a call of the connection manager was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CmError {
    /// The table is full.
    #[error("all {0} connections are in use: end one, or make the connection manager with more")]
    TooMany(usize),
    /// The connection is over, or is not in the state that the call needs.
    #[error("connection {0} is over, or is not at the step where this is possible")]
    State(ConnectionId),
    /// More data for the peer's program than the message holds.
    #[error("{len} B of private data: the message holds {most} B")]
    PrivateData {
        /// Bytes.
        len: usize,
        /// Most bytes.
        most: usize,
    },
    /// An option is out of its limits.
    #[error("{option} = {value}: give {allowed}")]
    Option {
        /// The option.
        option: &'static str,
        /// Its value.
        value: usize,
        /// What is allowed.
        allowed: &'static str,
    },
    /// No random bits could be had.
    #[error("the system has no random bits")]
    Random,
}

/// Datagrams that the connection manager received and did not act upon, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CmDrops {
    /// Not a message of communication management, or of another version.
    pub malformed: u64,
    /// For a connection that does not exist, or of another host.
    pub unknown: u64,
    /// Received before, or out of its order.
    pub duplicate: u64,
    /// An answer that found no room on its way out.
    pub no_room: u64,
}
