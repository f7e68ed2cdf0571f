//! Responder: executes the peer's requests in order, and answers them (InfiniBand, 9.7.4, 9.7.5 and 9.8).

mod execute;

use pollux_mempool::time::Ns;
use pollux_pmd::net::roce::{Aeth, Bth, NakCode, Opcode, Operation, Packet, Syndrome};
use zerocopy::IntoBytes;

use super::connection::Connection;
use super::drops::{Drop, Failure};
use super::events::Events;
use super::message::{Context, MAX_MESSAGE, Message, Refusal};
use super::output::Output;
use super::reads::Reads;
use crate::access::{Access, Key, RemoteBuffer};
use crate::address::{Psn, QpNumber};
use crate::event::{Event, Received, Status};
use crate::registrations::Session;
use crate::work_queue::Worker;

/// An answer that is due.
#[derive(Clone, Copy)]
enum Reply {
    /// All before the expected packet is done.
    Ack,
    /// A packet is refused.
    Refuse(Syndrome, Psn),
}

/// The responder of a queue pair.
pub(super) struct Responder {
    receives: Worker<0>,
    /// Number of the next packet.
    expected: Psn,
    /// Messages that are complete.
    msn: u32,
    /// The message of which the next packet is a part.
    message: Option<Message>,
    reads: Reads,
    reply: Option<Reply>,
    /// Packets behind a missing or refused one are dropped without another refusal.
    is_refusing: bool,
    /// The rest of the message is discarded, of an unreliable connection.
    is_discarding: bool,
    /// Missed packets that no event has told, of an unreliable connection.
    missed: u32,
}

impl Responder {
    pub(super) fn new(receives: Worker<0>) -> Self {
        Self {
            receives,
            expected: Psn::default(),
            msn: 0,
            message: None,
            reads: Reads::new(),
            reply: None,
            is_refusing: false,
            is_discarding: false,
            missed: 0,
        }
    }

    /// Number of the first packet.
    pub(super) fn expect(&mut self, psn: Psn) {
        self.expected = psn;
    }

    /// Takes a request of a reliable connection. An error is why it is dropped, and why the queue pair
    /// fails, if it does.
    pub(super) fn take(
        &mut self,
        packet: &Packet<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), (Drop, Option<Failure>)> {
        let psn = Psn::new(packet.bth.psn());
        let ahead = psn.since(self.expected);
        if ahead < 0 {
            return self.repeat(packet, context).map_err(|drop| (drop, None));
        }
        if ahead > 0 {
            if !self.is_refusing {
                // One refusal for each gap (9.7.5.2.8).
                self.is_refusing = true;
                let syndrome = Syndrome::Nak(NakCode::Sequence);
                self.reply = Some(Reply::Refuse(syndrome, self.expected));
            }
            return Err((Drop::Gap, None));
        }
        let refusal = match self.execute(packet, context) {
            Ok(packets) => {
                self.expected = self.expected.after(packets);
                self.is_refusing = false;
                if is_read(packet) {
                    // Its response acknowledges all before it.
                    self.reply = None;
                } else if packet.bth.ack_request() || self.reply.is_some() {
                    self.reply = Some(Reply::Ack);
                }
                return Ok(());
            }
            Err(refusal) => refusal,
        };
        let syndrome = match refusal {
            Refusal::NotReady | Refusal::TooManyReads => {
                Syndrome::NotReady(context.connection.rnr_timer)
            }
            Refusal::Invalid | Refusal::TooLong => Syndrome::Nak(NakCode::InvalidRequest),
            Refusal::Access => Syndrome::Nak(NakCode::RemoteAccess),
            Refusal::LocalAccess => Syndrome::Nak(NakCode::RemoteOperation),
        };
        self.is_refusing = true;
        self.reply = Some(Reply::Refuse(syndrome, psn));
        let failure = refusal.status().map(|status| Failure { status, psn });
        if let Some(Failure { status, .. }) = failure {
            self.fail_receive(refusal, status, context);
        }
        Err((refusal.drop(), failure))
    }

    /// Takes a request of an unreliable connection.
    pub(super) fn take_unreliable(
        &mut self,
        packet: &Packet<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), Drop> {
        let psn = Psn::new(packet.bth.psn());
        let ahead = psn.since(self.expected);
        if ahead < 0 {
            return Err(Drop::Duplicate);
        }
        self.expected = psn.after(1);
        self.missed = self.missed.saturating_add(ahead.cast_unsigned());
        if ahead > 0 {
            context.counts.missed(ahead.cast_unsigned());
            self.is_discarding = true;
        }
        if packet.opcode.part().begins() {
            self.message = None;
            self.is_discarding = false;
        } else if self.is_discarding {
            self.message = None;
            return Err(Drop::Gap);
        }
        let executed = self.execute(packet, context);
        executed.map(drop).map_err(|refusal| {
            self.message = None;
            self.is_discarding = true;
            refusal.drop()
        })
    }

    /// A request that has come before: it is acknowledged again; a READ is read again (9.7.5.1.2).
    fn repeat(&mut self, packet: &Packet<'_>, context: &mut Context<'_>) -> Result<(), Drop> {
        let Some(reth) = packet.reth().filter(|_| is_read(packet)) else {
            self.reply.get_or_insert(Reply::Ack);
            return Err(Drop::Duplicate);
        };
        let (first, mtu) = (Psn::new(packet.bth.psn()), context.connection.mtu);
        let bytes = reth.length.get();
        let remote = RemoteBuffer {
            address: reth.address.get(),
            key: Key(reth.key.get()),
        };
        if bytes > MAX_MESSAGE || first.after(mtu.packets(bytes)).since(self.expected) > 0 {
            return Err(Drop::InvalidRequest);
        }
        let access = || {
            context
                .session
                .remote(remote, u64::from(bytes), Access::READ)
        };
        if bytes > 0 && access().is_err() {
            return Err(Drop::Access);
        }
        let is_taken = self.reads.repeat(first, remote, bytes, mtu);
        is_taken.then_some(()).ok_or(Drop::TooManyReads)
    }

    /// Whether something is to be sent.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        self.reply.is_some() || !self.reads.is_empty()
    }

    /// Sends up to `most` responses, and returns how many.
    pub(super) fn send(
        &mut self,
        connection: &mut Connection,
        out: &mut Output,
        session: &Session<'_>,
        (now, most): (Ns, u32),
    ) -> Result<u32, Failure> {
        let Some(headers) = connection.headers(now, out) else {
            return Ok(0);
        };
        let portion = (self.msn, most);
        let sent = self.reads.send(connection, &headers, out, session, portion);
        let mut sent = sent.inspect_err(|failure| {
            let syndrome = Syndrome::Nak(NakCode::RemoteAccess);
            self.reply = Some(Reply::Refuse(syndrome, failure.psn));
        })?;
        // An acknowledgement is one of all before it: it waits for the responses.
        if let (Some(reply), true) = (self.reply, self.reads.is_empty()) {
            let (syndrome, psn) = match reply {
                Reply::Ack => (Syndrome::ACK, self.expected.after(u32::MAX)),
                Reply::Refuse(syndrome, psn) => (syndrome, psn),
            };
            let bth = Bth::new(Opcode::RcAcknowledge, connection.peer.get(), psn.get());
            let aeth = Aeth::new(syndrome.code(), self.msn);
            if out.send(&headers, bth, &[aeth.as_bytes()], 0, |_| true) {
                self.reply = None;
                sent += 1;
            }
        }
        Ok(sent)
    }

    /// Writes the event of the oldest receive and takes it off the queue; false if there is none, or no
    /// room.
    pub(super) fn finish_oldest(
        &mut self,
        qp: QpNumber,
        events: &mut Events,
        (bytes, immediate, is_put): (u32, Option<u32>, bool),
        status: Status,
    ) -> bool {
        let Some((receive, _)) = self.receives.get(0) else {
            return false;
        };
        let event = Event::Received(Received {
            qp,
            cookie: receive.cookie,
            bytes,
            immediate,
            is_put,
            missed: self.missed,
            status,
        });
        if !events.push(event) {
            return false;
        }
        self.missed = 0;
        self.receives.finish();
        true
    }

    /// A message that does not fit its receive, or finds no memory there, uses it up.
    fn fail_receive(&mut self, refusal: Refusal, status: Status, context: &mut Context<'_>) {
        if matches!(refusal, Refusal::TooLong | Refusal::LocalAccess) {
            // Without room the receive is flushed with the others.
            self.finish_oldest(context.qp, context.events, (0, None, false), status);
        }
    }
}

fn is_read(packet: &Packet<'_>) -> bool {
    packet.opcode.operation() == Operation::ReadRequest
}
