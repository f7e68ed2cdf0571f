//! Requester: sends the packets of requests, and repeats them until they are acknowledged
//! (InfiniBand, 9.7.3 to 9.7.6).
//!
//! Requests have packet sequence numbers from their first sending on. A cursor stands at the next packet
//! to be sent; a loss sets it back to the first packet that is not acknowledged (go-back-N). A READ has as
//! many numbers as its response has packets, and is one packet itself: set back, it asks for the rest.
//!
//! A responder may read memory after it has executed later requests, and does so when a response was lost
//! (InfiniBand, 9.5: order behind a READ is kept by a fence alone). So a SEND or WRITE is not started while
//! a READ lacks responses: each has the fence.

mod responses;

use pollux_mempool::time::Ns;
use pollux_pmd::net::UdpTemplate;
use pollux_pmd::net::roce::{Bth, ImmDt, Opcode, Operation as Wire, Part, Reth, Service};
use zerocopy::IntoBytes;

use super::connection::Connection;
use super::drops::Failure;
use super::events::Events;
use super::output::Output;
use super::retry::Retries;
use crate::access::RemoteBuffer;
use crate::address::{Psn, QpKind, QpNumber};
use crate::event::{Done, Event, Operation, Status};
use crate::queue_pair::QueuePair;
use crate::registrations::Session;
use crate::work_queue::{Descriptor, IMMEDIATE, Place, Worker};

/// Packets that may be sent and not acknowledged: half a MiB at the largest MTU.
const WINDOW: i32 = 128;
/// An acknowledgement is requested every so many packets, so that the window never stands still.
const ACK_INTERVAL: u32 = 32;
/// Most packets from the first that is not acknowledged to the last of a request: numbers compare over
/// half of their range.
const HALF: u32 = 1 << 23;

/// Sequence numbers of a request that has been started.
#[derive(Clone, Copy, Default)]
struct Numbers {
    first: Psn,
    packets: u32,
    /// Packets of the response that have come, of a READ.
    received: u32,
}

/// The requester of a queue pair. Requests are counted from the oldest that is not done.
pub(super) struct Requester {
    queue: Worker,
    numbers: [Numbers; QueuePair::REQUESTS],
    /// Place of the oldest request in `numbers`.
    oldest: u32,
    /// Requests that have numbers.
    started: u32,
    /// Requests whose event waits for room, the oldest ones.
    completed: u32,
    /// READs that have numbers and lack responses.
    reads: u32,
    /// The cursor: a request, and a packet of it.
    at: u32,
    packet: u32,
    /// Number of the next new packet.
    next: Psn,
    /// First number that is not acknowledged.
    unacknowledged: Psn,
    /// The number after the highest that was sent.
    sent_end: Psn,
    retries: Retries,
}

impl Requester {
    pub(super) fn new(queue: Worker, psn: Psn) -> Self {
        Self {
            queue,
            numbers: [Numbers::default(); QueuePair::REQUESTS],
            oldest: 0,
            started: 0,
            completed: 0,
            reads: 0,
            at: 0,
            packet: 0,
            next: psn,
            unacknowledged: psn,
            sent_end: psn,
            retries: Retries::default(),
        }
    }

    /// The number of the first packet, before any is sent.
    pub(super) fn begin(&mut self, psn: Psn) {
        (self.next, self.unacknowledged, self.sent_end) = (psn, psn, psn);
    }

    /// Sequence number of the oldest packet that is not acknowledged, or else of the next.
    pub(super) fn oldest(&self) -> Psn {
        self.unacknowledged
    }

    /// The numbers of a started request.
    fn numbers(&mut self, n: u32) -> &mut Numbers {
        &mut self.numbers[self.oldest.wrapping_add(n) as usize % QueuePair::REQUESTS]
    }

    /// Whether there is a packet to be sent, as far as requests go.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        self.at < self.started || self.at < self.queue.len()
    }

    /// Sends up to `most` packets, and returns how many.
    #[inline]
    pub(super) fn send(
        &mut self,
        kind: QpKind,
        connection: &mut Connection,
        out: &mut Output,
        session: &Session<'_>,
        (now, most): (Ns, u32),
    ) -> Result<u32, Failure> {
        if !self.has_work() || self.retries.is_waiting(now) {
            return Ok(0);
        }
        let Some(headers) = connection.headers(now, out) else {
            // The peer does not answer by ARP: the time runs as for an acknowledgement.
            self.retries.arm(now, connection.timeout);
            return Ok(0);
        };
        let mut sent = 0;
        while sent < most && self.has_work() {
            if !self.send_packet(kind, connection, &headers, out, session)? {
                break;
            }
            sent += 1;
        }
        // Also for packets that the port does not take, while its link is down.
        if kind == QpKind::Reliable && (sent > 0 || self.has_work()) {
            self.retries.arm(now, connection.timeout);
        }
        Ok(sent)
    }

    /// Sends the packet at the cursor; false if it has to wait.
    #[inline]
    fn send_packet(
        &mut self,
        kind: QpKind,
        connection: &Connection,
        headers: &UdpTemplate,
        out: &mut Output,
        session: &Session<'_>,
    ) -> Result<bool, Failure> {
        let mtu = connection.mtu;
        let descriptor = match self.queue.get(self.at) {
            Some((descriptor, _)) => *descriptor,
            None => return Ok(false),
        };
        if self.at == self.started && !self.start(&descriptor, connection) {
            return Ok(false);
        }
        let numbers = *self.numbers(self.at);
        let is_read = descriptor.operation == Operation::Get;
        let packet = if is_read {
            numbers.received
        } else {
            self.packet
        };
        let psn = numbers.first.after(packet);
        if psn.since(self.unacknowledged) >= WINDOW {
            return Ok(false);
        }
        let end = if is_read { numbers.packets } else { packet + 1 };
        let is_sent = if is_read {
            let bth = Bth::new(Opcode::RcReadRequest, connection.peer.get(), psn.get());
            let done = u64::from(packet) * mtu.bytes() as u64;
            let left = u64::from(descriptor.bytes).saturating_sub(done) as u32;
            let reth = reth(descriptor.remote.at(done), left);
            out.send(
                headers,
                bth.with_ack_request(true),
                &[reth.as_bytes()],
                0,
                |_| true,
            )
        } else {
            let place = (packet, numbers.packets);
            self.send_data(
                kind,
                connection,
                headers,
                out,
                session,
                &descriptor,
                place,
                psn,
            )?
        };
        if !is_sent {
            return Ok(false);
        }
        let is_repeated = psn.since(self.sent_end) < 0;
        out.counts.request(is_repeated);
        let behind = numbers.first.after(end);
        if !is_repeated {
            self.sent_end = behind;
        }
        self.packet = end;
        if end >= numbers.packets {
            self.at += 1;
            self.packet = 0;
        }
        if kind == QpKind::Unreliable {
            // Sent is done.
            self.completed = self.at;
            self.unacknowledged = behind;
        }
        Ok(true)
    }

    /// Gives the next request its numbers; false if it has to wait.
    fn start(&mut self, descriptor: &Descriptor, connection: &Connection) -> bool {
        let packets = connection.mtu.packets(descriptor.bytes);
        let in_flight = self.next.since(self.unacknowledged).cast_unsigned();
        if in_flight.saturating_add(packets) > HALF {
            return false;
        }
        let is_read = descriptor.operation == Operation::Get;
        // READs keep their order among themselves; all else is executed before them, unless it waits.
        let most = if is_read { connection.reads } else { 1 };
        if self.reads >= most {
            return false;
        }
        self.reads += u32::from(is_read);
        *self.numbers(self.started) = Numbers {
            first: self.next,
            packets,
            received: 0,
        };
        self.started += 1;
        self.packet = 0;
        self.next = self.next.after(packets);
        true
    }

    /// Sends a packet of a SEND or WRITE; false if it has to wait.
    #[inline]
    #[allow(clippy::too_many_arguments)] // called once, inlined
    fn send_data(
        &self,
        kind: QpKind,
        connection: &Connection,
        headers: &UdpTemplate,
        out: &mut Output,
        session: &Session<'_>,
        descriptor: &Descriptor,
        (packet, packets): (u32, u32),
        psn: Psn,
    ) -> Result<bool, Failure> {
        let mtu = connection.mtu.bytes() as u64;
        let offset = u64::from(packet) * mtu;
        let len = mtu.min(u64::from(descriptor.bytes).saturating_sub(offset));
        let part = Part::of(packet, packets);
        let (service, wire) = match (kind, descriptor.operation) {
            (QpKind::Reliable, Operation::Put) => (Service::Reliable, Wire::Write),
            (QpKind::Reliable, _) => (Service::Reliable, Wire::Send),
            (QpKind::Unreliable, Operation::Put) => (Service::Unreliable, Wire::Write),
            (QpKind::Unreliable, _) => (Service::Unreliable, Wire::Send),
        };
        let immediate = descriptor.immediate.filter(|_| part.ends());
        let Some(opcode) = Opcode::message(service, wire, part, immediate.is_some()) else {
            return Ok(false);
        };
        let asks = part.ends() || packet % ACK_INTERVAL == ACK_INTERVAL - 1;
        let bth = Bth::new(opcode, connection.peer.get(), psn.get())
            .with_ack_request(asks && kind == QpKind::Reliable)
            .with_solicited(part.ends() && (immediate.is_some() || wire == Wire::Send));
        let reth = reth(descriptor.remote, descriptor.bytes);
        let number = ImmDt {
            data: immediate.unwrap_or(0).into(),
        };
        let reth = if opcode.has_reth() {
            reth.as_bytes()
        } else {
            &[]
        };
        let number = if immediate.is_some() {
            number.as_bytes()
        } else {
            &[]
        };
        let extended = &[reth, number];
        let len = len as usize;
        match descriptor.place {
            Place::Slot => {
                let data = self.queue.get(self.at).map_or(&[][..], |(_, data)| data);
                let offset = (offset as usize).min(IMMEDIATE);
                let data = data.get(offset..offset + len).unwrap_or_default();
                Ok(out.send(headers, bth, extended, len, |to| {
                    let is_whole = data.len() == to.len();
                    if is_whole {
                        to.copy_from_slice(data);
                    }
                    is_whole
                }))
            }
            Place::Buffer(..) if descriptor.bytes == 0 => {
                Ok(out.send(headers, bth, extended, 0, |_| true))
            }
            Place::Buffer(key, start) => {
                let local = start.checked_add(offset);
                let data = local.and_then(|at| session.local(key, at, len as u64).ok());
                match data {
                    Some(data) => Ok(out.send(headers, bth, extended, len, |to| {
                        data.read(to);
                        true
                    })),
                    // Requests before it may still be done: it fails once it is the oldest.
                    None if self.at > self.completed => Ok(false),
                    None => Err(Failure {
                        status: Status::LocalAccess,
                        psn,
                    }),
                }
            }
        }
    }

    /// Sets the cursor back to the first packet that is not acknowledged.
    fn go_back(&mut self) {
        self.at = self.started;
        self.packet = 0;
        for n in self.completed..self.started {
            let numbers = *self.numbers(n);
            let behind = self.unacknowledged.since(numbers.first);
            if behind < numbers.packets.cast_signed() {
                self.at = n;
                self.packet = behind.max(0).cast_unsigned();
                return;
            }
        }
    }

    /// Moves the cursor to the first packet that is not acknowledged, if it stands before it.
    fn skip_acknowledged(&mut self) {
        let numbers = *self.numbers(self.at);
        let is_behind = self.at < self.completed
            || self.at < self.started
                && self.unacknowledged.since(numbers.first.after(self.packet)) > 0;
        if is_behind {
            self.go_back();
        }
    }

    /// Writes the events of requests that are complete, as far as there is room.
    #[inline]
    pub(super) fn finish(&mut self, qp: QpNumber, events: &mut Events) {
        while self.completed > 0 && self.finish_oldest(qp, events, Status::Ok) {
            self.completed -= 1;
        }
    }

    /// Gives the oldest request that is not complete up; false if there is none, or no room for its event.
    pub(super) fn fail_oldest(
        &mut self,
        qp: QpNumber,
        events: &mut Events,
        status: Status,
    ) -> bool {
        self.finish(qp, events);
        self.completed == 0 && self.finish_oldest(qp, events, status)
    }

    /// Writes the event of the oldest request and takes it off the queue; false if there is none, or no
    /// room.
    fn finish_oldest(&mut self, qp: QpNumber, events: &mut Events, status: Status) -> bool {
        let Some((request, _)) = self.queue.get(0) else {
            return false;
        };
        let event = Event::Done(Done {
            qp,
            cookie: request.cookie,
            operation: request.operation,
            bytes: request.bytes,
            status,
        });
        if !events.push(event) {
            return false;
        }
        self.queue.finish();
        self.oldest = self.oldest.wrapping_add(1);
        self.started = self.started.saturating_sub(1);
        self.at = self.at.saturating_sub(1);
        true
    }
}

fn reth(remote: RemoteBuffer, length: u32) -> Reth {
    Reth {
        address: remote.address.into(),
        key: remote.key.0.into(),
        length: length.into(),
    }
}
