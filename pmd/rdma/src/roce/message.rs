//! Messages that a responder takes: their checks, and why they are refused (InfiniBand, 9.7.4.1).

use pollux_pmd::net::roce::{Operation, Packet, Part};

use super::connection::Connection;
use super::counts::Counts;
use super::drops::Drop;
use super::events::Events;
use crate::access::{Access, Key, RemoteBuffer};
use crate::address::QpNumber;
use crate::event::Status;
use crate::registrations::Session;

/// Most bytes of a message.
pub(super) const MAX_MESSAGE: u32 = 1 << 31;

/// What a responder needs of its queue pair.
pub(super) struct Context<'a> {
    pub(super) qp: QpNumber,
    pub(super) connection: &'a Connection,
    pub(super) session: &'a Session<'a>,
    pub(super) events: &'a mut Events,
    pub(super) counts: &'a mut Counts,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No receive, or no room for an event.
    NotReady,
    /// As many READs wait for their responses as a responder keeps.
    TooManyReads,
    /// Not executed, or its packets contradict each other.
    Invalid,
    /// Wrong key, range or rights.
    Access,
    /// Longer than its receive.
    TooLong,
    /// The receive's own memory is not registered.
    LocalAccess,
}

impl Refusal {
    pub(super) fn drop(self) -> Drop {
        match self {
            Self::NotReady => Drop::NotReady,
            Self::TooManyReads => Drop::TooManyReads,
            Self::Invalid | Self::TooLong => Drop::InvalidRequest,
            Self::Access => Drop::Access,
            Self::LocalAccess => Drop::LocalAccess,
        }
    }

    /// Why the queue pair fails, if it does.
    pub(super) fn status(self) -> Option<Status> {
        match self {
            Self::NotReady | Self::TooManyReads => None,
            Self::Invalid => Some(Status::RemoteInvalidRequest),
            Self::Access => Some(Status::RemoteAccess),
            Self::TooLong => Some(Status::LocalLength),
            Self::LocalAccess => Some(Status::LocalAccess),
        }
    }
}

/// A message of which packets have come.
#[derive(Clone, Copy)]
pub(super) struct Message {
    pub(super) operation: Operation,
    /// Bytes that are where they should be.
    pub(super) done: u32,
    /// Bytes of a WRITE.
    pub(super) len: u32,
    /// Where a WRITE goes.
    pub(super) to: RemoteBuffer,
}

/// The message that begins with a packet.
#[inline]
pub(super) fn begin(packet: &Packet<'_>, context: &Context<'_>) -> Result<Message, Refusal> {
    let operation = packet.opcode.operation();
    let mut message = Message {
        operation,
        done: 0,
        len: 0,
        to: RemoteBuffer {
            address: 0,
            key: Key(0),
        },
    };
    if operation == Operation::Write {
        let (to, len) = target(packet)?;
        let mtu = context.connection.mtu.bytes();
        if packet.opcode.part() == Part::First && len as usize <= mtu {
            return Err(Refusal::Invalid);
        }
        check(to, len, Access::WRITE, context)?;
        (message.to, message.len) = (to, len);
    }
    Ok(message)
}

/// The range of a WRITE or READ.
#[inline]
pub(super) fn target(packet: &Packet<'_>) -> Result<(RemoteBuffer, u32), Refusal> {
    let reth = packet.reth().ok_or(Refusal::Invalid)?;
    let bytes = reth.length.get();
    if bytes > MAX_MESSAGE {
        return Err(Refusal::Invalid);
    }
    let remote = RemoteBuffer {
        address: reth.address.get(),
        key: Key(reth.key.get()),
    };
    Ok((remote, bytes))
}

/// Checks a range; without bytes any key will do (9.7.4.1.5).
#[inline]
pub(super) fn check(
    remote: RemoteBuffer,
    bytes: u32,
    needed: Access,
    context: &Context<'_>,
) -> Result<(), Refusal> {
    if bytes == 0 {
        return Ok(());
    }
    let found = context.session.remote(remote, u64::from(bytes), needed);
    found.map(drop).map_err(|_| Refusal::Access)
}
