//! Execution of the packets of a message: checks of the responder, and copies (InfiniBand, 9.7.4.1).

use pollux_pmd::net::roce::{Operation, Packet, Part};

use super::{Context, MAX_MESSAGE, Responder};
use crate::access::{Access, Key, RemoteBuffer};
use crate::address::Psn;
use crate::event::Status;
use crate::roce::drops::Drop;
use crate::work_queue::Place;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No receive, or no room for an event.
    NotReady,
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
            Self::Invalid | Self::TooLong => Drop::InvalidRequest,
            Self::Access => Drop::Access,
            Self::LocalAccess => Drop::LocalAccess,
        }
    }

    /// Why the queue pair fails, if it does.
    pub(super) fn status(self) -> Option<Status> {
        match self {
            Self::NotReady => None,
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
    operation: Operation,
    /// Bytes that are where they should be.
    done: u32,
    /// Bytes of a WRITE.
    len: u32,
    /// Where a WRITE goes.
    to: RemoteBuffer,
}

impl Responder {
    /// Executes a packet that is the expected one. Returns the sequence numbers that it takes. A refusal
    /// leaves everything as it was.
    #[inline]
    pub(super) fn execute(
        &mut self,
        packet: &Packet<'_>,
        context: &mut Context<'_>,
    ) -> Result<u32, Refusal> {
        match packet.opcode.operation() {
            Operation::Send | Operation::Write => self.execute_data(packet, context),
            Operation::ReadRequest => self.execute_read(packet, context),
            _ => Err(Refusal::Invalid),
        }
    }

    #[inline]
    fn execute_data(
        &mut self,
        packet: &Packet<'_>,
        context: &mut Context<'_>,
    ) -> Result<u32, Refusal> {
        let (operation, part) = (packet.opcode.operation(), packet.opcode.part());
        let (payload, mtu) = (packet.payload, context.connection.mtu.bytes());
        let is_length = match part {
            Part::First | Part::Middle => payload.len() == mtu,
            Part::Last => (1..=mtu).contains(&payload.len()),
            Part::Only => payload.len() <= mtu,
        };
        let is_next = match self.message {
            Some(message) => !part.begins() && message.operation == operation,
            None => part.begins(),
        };
        if !is_length || !is_next {
            return Err(Refusal::Invalid);
        }
        let is_send = operation == Operation::Send;
        let has_event = part.ends() && (is_send || packet.opcode.has_immediate());
        if has_event && !context.events.has_room() {
            return Err(Refusal::NotReady);
        }
        if (is_send || has_event) && self.receives.len() == 0 {
            return Err(Refusal::NotReady);
        }
        let mut message = match self.message {
            Some(message) => message,
            None => begin(packet, context)?,
        };
        // Both are below 2^31 and an MTU more.
        let end = message.done + payload.len() as u32;
        if is_send {
            self.copy_to_receive(message.done, payload, context)?;
        } else {
            if end > message.len || part.ends() && end != message.len {
                return Err(Refusal::Invalid);
            }
            if !payload.is_empty() {
                let (at, len) = (message.to.at(u64::from(message.done)), payload.len());
                let to = context.session.remote(at, len as u64, Access::WRITE);
                to.map_err(|_| Refusal::Access)?.write(payload);
            }
        }
        message.done = end;
        self.message = Some(message).filter(|_| !part.ends());
        if part.ends() {
            self.msn = self.msn.wrapping_add(1);
        }
        if has_event {
            let what = (end, packet.immediate(), !is_send);
            // There is a receive and room for the event: checked above.
            self.finish_oldest(context.qp, context.events, what, Status::Ok);
        }
        Ok(1)
    }

    #[inline]
    fn copy_to_receive(
        &self,
        done: u32,
        payload: &[u8],
        context: &Context<'_>,
    ) -> Result<(), Refusal> {
        let (receive, _) = self.receives.get(0).ok_or(Refusal::NotReady)?;
        if done as usize + payload.len() > receive.bytes as usize {
            return Err(Refusal::TooLong);
        }
        if payload.is_empty() {
            return Ok(());
        }
        let Place::Buffer(key, start) = receive.place else {
            return Err(Refusal::LocalAccess);
        };
        let at = start
            .checked_add(u64::from(done))
            .ok_or(Refusal::LocalAccess)?;
        let to = context.session.local(key, at, payload.len() as u64);
        to.map_err(|_| Refusal::LocalAccess)?.write(payload);
        Ok(())
    }

    fn execute_read(
        &mut self,
        packet: &Packet<'_>,
        context: &mut Context<'_>,
    ) -> Result<u32, Refusal> {
        if self.message.is_some() || !packet.payload.is_empty() {
            return Err(Refusal::Invalid);
        }
        let (remote, bytes) = target(packet)?;
        check(remote, bytes, Access::READ, context)?;
        let first = Psn::new(packet.bth.psn());
        let mtu = context.connection.mtu;
        let taken = self.reads.push(first, remote, bytes, mtu);
        let packets = taken.ok_or(Refusal::NotReady)?;
        self.msn = self.msn.wrapping_add(1);
        Ok(packets)
    }
}

/// The message that begins with a packet.
#[inline]
fn begin(packet: &Packet<'_>, context: &Context<'_>) -> Result<Message, Refusal> {
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
fn target(packet: &Packet<'_>) -> Result<(RemoteBuffer, u32), Refusal> {
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
fn check(
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
