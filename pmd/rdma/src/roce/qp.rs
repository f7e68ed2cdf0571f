//! A queue pair in the loop: its state, and the way of its packets.

use std::net::Ipv4Addr;

use pollux_mempool::time::Ns;
use pollux_pmd::net::MacAddr;
use pollux_pmd::net::roce::{Bth, Opcode, Operation, Packet, Service};

use super::congestion::Congestion;
use super::connection::Connection;
use super::drops::{Drop, Failure};
use super::events::Events;
use super::message::Context;
use super::output::Output;
use super::requester::Requester;
use super::responder::Responder;
use crate::address::{Psn, QpKind, QpNumber};
use crate::event::{Event, Failed, Status};
use crate::registrations::Session;

/// Most packets that a queue pair sends in a poll, each of requests and of responses: its neighbours wait
/// no longer than that.
const PORTION: u32 = 32;

/// Bit of the BTH that makes a packet a congestion notification.
const BACKWARD: u32 = 1 << 30;
/// Reserved bytes of a congestion notification.
const NOTIFICATION: [u8; 16] = [0; 16];

/// State of a queue pair.
enum State {
    /// Receives may be posted.
    Unconnected,
    Connected(Connection),
    /// Of the connection an answer may have to be sent; the event of the failure may wait for room.
    Failed(Connection, Option<Failure>),
}

/// Where a packet comes from.
#[derive(Clone, Copy)]
pub(super) struct Source {
    pub(super) ip: Ipv4Addr,
    pub(super) mac: MacAddr,
    /// A bottleneck has marked it.
    pub(super) is_marked: bool,
}

/// A queue pair.
pub(super) struct Qp {
    pub(super) number: QpNumber,
    kind: QpKind,
    state: State,
    requester: Requester,
    responder: Responder,
    events: Events,
    congestion: Congestion,
}

impl Qp {
    pub(super) fn new(
        number: QpNumber,
        kind: QpKind,
        requester: Requester,
        responder: Responder,
        events: Events,
        congestion: Congestion,
    ) -> Self {
        Self {
            number,
            kind,
            state: State::Unconnected,
            requester,
            responder,
            events,
            congestion,
        }
    }

    /// Connects it; the peer's first packet has the number `first`.
    pub(super) fn connect(&mut self, connection: Connection, first: Psn) {
        if matches!(self.state, State::Unconnected) {
            self.responder.expect(first);
            if let Some(psn) = connection.first_psn {
                self.requester.begin(psn);
            }
            self.state = State::Connected(connection);
        }
    }

    /// Learns the MAC address of a host, if it is the peer.
    pub(super) fn observe_host(&mut self, ip: Ipv4Addr, mac: MacAddr) {
        if let State::Connected(connection) | State::Failed(connection, _) = &mut self.state {
            connection.observe_host(ip, mac);
        }
    }

    /// Takes a packet.
    #[inline]
    pub(super) fn take(
        &mut self,
        packet: &Packet<'_>,
        source: Source,
        session: &Session<'_>,
        out: &mut Output,
        now: Ns,
    ) -> Result<(), Drop> {
        let State::Connected(connection) = &mut self.state else {
            return Err(Drop::UnknownQp);
        };
        if source.ip != connection.ip {
            return Err(Drop::Source);
        }
        if !connection.is_resolved() {
            connection.observe_host(source.ip, source.mac);
        }
        match (packet.opcode.service(), self.kind) {
            (Service::Reliable, QpKind::Reliable) | (Service::Unreliable, QpKind::Unreliable) => {}
            (Service::Congestion, _) => {
                out.counts.notified();
                self.congestion.cut(now);
                return Ok(());
            }
            _ => return Err(Drop::Transport),
        }
        if source.is_marked {
            out.counts.marked();
            self.congestion.mark(now);
        }
        let failure = match packet.opcode.operation() {
            Operation::Acknowledge => {
                let counts = &mut out.counts;
                self.requester
                    .acknowledge(packet, connection, counts, now)?
            }
            Operation::ReadResponse => self
                .requester
                .read_response(packet, connection, session, now)?,
            Operation::AtomicAcknowledge => return Err(Drop::Unexpected),
            _ => {
                let mut context = Context {
                    qp: self.number,
                    connection,
                    session,
                    events: &mut self.events,
                    counts: &mut out.counts,
                };
                let taken = match self.kind {
                    QpKind::Reliable => self.responder.take(packet, &mut context),
                    QpKind::Unreliable => {
                        let taken = self.responder.take_unreliable(packet, &mut context);
                        taken.map_err(|drop| (drop, None))
                    }
                };
                let Err((drop, failure)) = taken else {
                    return Ok(());
                };
                if let Some(failure) = failure {
                    self.fail(failure);
                }
                return Err(drop);
            }
        };
        if let Some(failure) = failure {
            self.fail_request(failure);
        }
        Ok(())
    }

    /// Runs timers, and sends a portion of what is due. Returns whether something was sent.
    #[inline]
    pub(super) fn run(&mut self, session: &Session<'_>, out: &mut Output, now: Ns) -> bool {
        let sent = match &mut self.state {
            State::Unconnected => return false,
            State::Connected(connection) => {
                let counts = &mut out.counts;
                match self.requester.run_timers(connection, counts, now) {
                    Some(failure) => {
                        self.fail_request(failure);
                        0
                    }
                    None => self.send(session, out, now),
                }
            }
            State::Failed(connection, _) => {
                let portion = (now, PORTION);
                let sent = if self.responder.has_work() {
                    self.responder.send(connection, out, session, portion)
                } else {
                    Ok(0)
                };
                self.flush();
                sent.unwrap_or(0)
            }
        };
        self.requester.finish(self.number, &mut self.events);
        self.events.announce();
        sent > 0
    }

    /// Sends what is due: a portion, or at a rate that was cut packet by packet.
    #[inline]
    fn send(&mut self, session: &Session<'_>, out: &mut Output, now: Ns) -> u32 {
        if self.congestion.is_notification_due() {
            self.notify(out, now);
        }
        let mut sent = 0;
        while sent < PORTION {
            let most = self.congestion.allowance(now, PORTION);
            let before = out.bytes;
            let more = self.send_up_to(session, out, (now, most));
            self.congestion.sent(out.bytes.wrapping_sub(before), now);
            sent += more;
            if most != 1 || more == 0 {
                break;
            }
        }
        sent
    }

    /// Sends up to so many packets of requests and as many of responses; an acknowledgement waits for no
    /// time.
    #[inline]
    fn send_up_to(
        &mut self,
        session: &Session<'_>,
        out: &mut Output,
        (now, most): (Ns, u32),
    ) -> u32 {
        let State::Connected(connection) = &mut self.state else {
            return 0;
        };
        let mut responses = 0;
        if self.responder.has_work() {
            match self.responder.send(connection, out, session, (now, most)) {
                Ok(sent) => responses = sent,
                Err(failure) => {
                    self.fail(failure);
                    return 1;
                }
            }
        }
        if most == 0 {
            return responses;
        }
        let requests = self
            .requester
            .send(self.kind, connection, out, session, (now, most));
        match requests {
            Ok(sent) => responses + sent,
            Err(failure) => {
                self.fail_request(failure);
                1
            }
        }
    }

    /// Sends a congestion notification, unless it has to wait for room.
    #[cold]
    fn notify(&mut self, out: &mut Output, now: Ns) {
        if let State::Connected(connection) = &mut self.state
            && notify(connection, out, now)
        {
            self.congestion.notification_sent(now);
        }
    }

    /// The next time at which something is due.
    pub(super) fn next_deadline(&self) -> Option<Ns> {
        let held = self.congestion.held_until();
        let held = held.filter(|_| self.requester.has_work() || self.responder.has_work());
        self.requester.next_deadline().into_iter().chain(held).min()
    }

    /// The rate in bit/s to which congestion has cut it.
    pub(super) fn rate(&self) -> Option<f64> {
        self.congestion.rate()
    }

    /// Fails with the oldest request.
    #[cold]
    fn fail_request(&mut self, failure: Failure) {
        let (number, events) = (self.number, &mut self.events);
        self.requester.finish(number, events);
        // Without room for its event it is flushed with the others.
        self.requester.fail_oldest(number, events, failure.status);
        self.fail(failure);
    }

    #[cold]
    fn fail(&mut self, failure: Failure) {
        let state = std::mem::replace(&mut self.state, State::Unconnected);
        self.state = match state {
            State::Connected(connection) => State::Failed(connection, Some(failure)),
            other => other,
        };
        self.requester.stop();
        self.congestion.stop();
    }

    /// Ends with its loop: the program is told, as far as there is room for events, and what it has posted
    /// is given up.
    pub(super) fn end(&mut self) {
        let (status, psn) = (Status::Flushed, self.requester.oldest());
        match self.state {
            State::Unconnected => {
                let failed = Failed {
                    qp: self.number,
                    status,
                    psn,
                };
                self.events.push(Event::Failed(failed));
            }
            State::Connected(_) => self.fail(Failure { status, psn }),
            State::Failed(..) => {}
        }
        self.flush();
        self.events.announce();
    }

    /// Writes the event of the failure, then those of the requests and receives that are given up, as far
    /// as there is room.
    fn flush(&mut self) {
        let State::Failed(_, failure) = &mut self.state else {
            return;
        };
        let (qp, events) = (self.number, &mut self.events);
        if let Some(Failure { status, psn }) = *failure {
            if !events.push(Event::Failed(Failed { qp, status, psn })) {
                return;
            }
            *failure = None;
        }
        self.requester.finish(qp, events);
        while self.requester.fail_oldest(qp, events, Status::Flushed) {}
        let none = (0, None, false);
        while self
            .responder
            .finish_oldest(qp, events, none, Status::Flushed)
        {}
    }
}

/// Sends a congestion notification; false if it has to wait.
#[cold]
fn notify(connection: &mut Connection, out: &mut Output, now: Ns) -> bool {
    let Some(headers) = connection.headers(now, out) else {
        return false;
    };
    let mut bth = Bth::new(Opcode::Congestion, connection.peer.get(), 0);
    bth.congestion_qp = (bth.congestion_qp.get() | BACKWARD).into();
    out.send(&headers, bth, &[&NOTIFICATION], 0, |_| true)
}
