//! Execution of the packets of a message: in order, with one copy.

use pollux_pmd::net::roce::{Operation, Packet, Part};

use super::Responder;
use crate::access::Access;
use crate::address::Psn;
use crate::event::Status;
use crate::roce::message::{Context, Refusal, begin, check, target};
use crate::work_queue::Place;

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
        let packets = taken.ok_or(Refusal::TooManyReads)?;
        self.msn = self.msn.wrapping_add(1);
        Ok(packets)
    }
}
