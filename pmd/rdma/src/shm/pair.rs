//! A queue pair: executes, receives and gives events when the program calls it.
//!
//! There is no loop, and no queue of events: a request's event is made when the program takes it, and a
//! message is taken out of the inbox then. A program that takes no events stops its peer.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::fence;
use std::time::Duration;

use pollux_pmd::Cause;
use rustix::event::Timespec;
use rustix::thread::futex;

use super::inbox::{Inbox, Progress, State};
use super::link::{Connection, OwnPair, wake};
use super::requester::{Environment, Requester, Tables};
use super::responder::{Outcome, Responder};
use super::seat::Seat;
use super::violation::Violation;
use crate::address::{Psn, QpKind, QpNumber};
use crate::event::{Event, Failed, Status};
use crate::queue_pair::QueuePairDriver;
use crate::work_queue::Descriptor;

/// Bytes that one call copies at most.
const PORTION: usize = 1 << 20;
/// Calls without an event, about a microsecond, for each look at the peer's progress. Its entries say it
/// too, and a line that is read all the time costs the peer a transfer to write.
const LOOK: u32 = 256;

/// How far a queue pair that has failed is.
#[derive(Clone, Copy)]
enum Ending {
    /// It has not failed.
    Open,
    /// The event of the oldest request is next.
    Request(Status, Status),
    /// The event of the failure is next.
    Failure(Status),
    /// Requests and receives are flushed.
    Flush,
}

/// A queue pair as its program drives it. Aligned: what other threads write is in other cache lines.
#[repr(align(128))]
pub(super) struct Pair {
    own: Arc<OwnPair>,
    qp: QpNumber,
    requester: Requester,
    responder: Responder,
    tables: Tables,
    /// The peer's queue pair is connected to this one.
    is_accepted: bool,
    /// Calls since the last event.
    idle: u32,
    ending: Ending,
    seat: Seat,
    connection: Arc<Connection>,
}

impl Pair {
    pub(super) fn new(
        own: Arc<OwnPair>,
        qp: QpNumber,
        kind: QpKind,
        receives: usize,
        tables: Tables,
        mut seat: Seat,
        connection: Arc<Connection>,
    ) -> Self {
        let responder = Responder::new(kind, receives, seat.take_tally(), seat.access());
        Self {
            own,
            qp,
            requester: Requester::new(kind),
            responder,
            tables,
            is_accepted: false,
            idle: 0,
            ending: Ending::Open,
            seat,
            connection,
        }
    }

    /// Whether there are requests to be executed, or progress that the peer does not know.
    #[inline]
    fn has_work(&self) -> bool {
        self.requester.has_requests() || self.responder.has_news()
    }

    /// Whether a call finds nothing: the entry that a waiting program looks at is empty, and there is nothing
    /// to be done here. Progress and end of the peer are looked at every [`LOOK`] calls.
    #[inline]
    fn is_quiet(&self) -> bool {
        !self.idle.wrapping_add(1).is_multiple_of(LOOK)
            && self.is_open()
            && !self.requester.has_event()
            && !self.has_work()
            && !self.responder.has_entry(&self.own.inbox)
    }

    /// Executes requests and shows receives; wakes the peer if that is news for it.
    fn advance(&mut self) {
        if !matches!(self.ending, Ending::Open) {
            return;
        }
        let Some(peer) = self.own.peer.get() else {
            return;
        };
        let mut is_news = false;
        if self.requester.is_busy() && self.is_accepted(peer.number) {
            let Some(peer) = self.own.peer.get() else {
                return;
            };
            let mut environment = Environment {
                tables: &mut self.tables,
                inbox: &peer.inbox,
                progress: self.responder.progress(),
            };
            match self.requester.execute(&mut environment, PORTION) {
                Ok(false) => {}
                Ok(true) => {
                    fence(SeqCst);
                    self.responder.set_told();
                    is_news = true;
                }
                Err(violation) => return self.violated(violation),
            }
        }
        is_news |= self.responder.tell(&self.own.inbox);
        if is_news {
            self.notify();
        }
    }

    /// Whether the peer's queue pair is connected to this one. Until then requests wait.
    fn is_accepted(&mut self, peer: u32) -> bool {
        if self.is_accepted {
            return true;
        }
        let partner = self.own.peer.get().map_or(0, |peer| peer.inbox.partner());
        self.is_accepted = partner == self.own.number;
        if partner != 0 && !self.is_accepted {
            tracing::debug!(peer, partner, "the peer is connected to another queue pair");
            self.fail(Status::RemoteInvalidRequest, true);
        }
        self.is_accepted
    }

    /// Wakes the peer if it sleeps.
    fn notify(&self) {
        let Some(peer) = self.own.peer.get() else {
            return;
        };
        if peer.inbox.is_asleep() {
            wake(&peer.inbox);
        }
    }

    /// The next message or completion.
    #[inline]
    fn next(&mut self) -> Option<Event> {
        if let Some(done) = self.requester.complete(self.qp) {
            return Some(Event::Done(done));
        }
        if let Some(status) = self.requester.is_failing() {
            self.fail(status, true);
            return None;
        }
        let peer = self.own.peer.get()?;
        // Before the inbox is looked into: what the peer did before its end is there.
        let end = self.end_of(&peer.inbox);
        let requester = &mut self.requester;
        let learn = |progress: Progress| requester.learn(progress);
        let own = &self.own.inbox;
        match self
            .responder
            .receive(self.qp, own, &mut self.tables.own, learn)
        {
            Outcome::Received(received) => return Some(Event::Received(received)),
            Outcome::Failed(received) => {
                self.fail(received.status, false);
                return Some(Event::Received(received));
            }
            Outcome::Violation(violation) => {
                self.violated(violation);
                return None;
            }
            Outcome::Nothing => {}
        }
        self.idle = self.idle.wrapping_add(1);
        if self.requester.is_busy() && (self.idle.is_multiple_of(LOOK) || end.is_some()) {
            let learned = self.requester.learn(peer.inbox.progress());
            if let Err(violation) = learned {
                self.violated(violation);
                return None;
            }
            if let Some(done) = self.requester.complete(self.qp) {
                return Some(Event::Done(done));
            }
        }
        match end {
            Some(Ok(status)) => {
                let is_request = status != Status::PeerGone && self.requester.is_with_peer();
                self.fail(status, is_request);
            }
            Some(Err(violation)) => self.violated(violation),
            None => {}
        }
        None
    }

    /// How the peer has ended, if it has.
    #[inline]
    fn end_of(&self, inbox: &Inbox) -> Option<Result<Status, Violation>> {
        // In this order: what the peer has said before its end is there.
        let is_gone = self.connection.link.is_gone();
        match inbox.state() {
            State::Open if is_gone => Some(Ok(Status::PeerGone)),
            State::Open => None,
            State::Destroyed => Some(Ok(Status::PeerGone)),
            State::Failed(code) => {
                let status = Status::ALL.get(code as usize).copied();
                let status = status.filter(|status| {
                    matches!(
                        status,
                        Status::RemoteInvalidRequest | Status::RemoteOperation
                    )
                });
                Some(status.ok_or(Violation::State))
            }
        }
    }

    fn violated(&mut self, violation: Violation) {
        self.seat.count(violation);
        self.fail(Status::RemoteOperation, false);
    }

    /// Fails: for the oldest request, if `is_request`.
    fn fail(&mut self, status: Status, is_request: bool) {
        // What the peer's open request is told.
        let answer = match status {
            Status::LocalLength => Status::RemoteInvalidRequest,
            _ => Status::RemoteOperation,
        };
        self.own.has_failed.store(true, Release);
        self.responder.abandon(Cause::Aborted);
        self.own.inbox.set_state(State::Failed(answer as u32));
        self.ending = if is_request && self.requester.is_busy() {
            Ending::Request(status, status)
        } else {
            Ending::Failure(status)
        };
        self.notify();
    }

    /// The next event of a queue pair that has failed.
    fn flush(&mut self) -> Option<Event> {
        if let Ending::Request(status, failure) = self.ending {
            self.ending = Ending::Failure(failure);
            if let Some(done) = self.requester.finish(self.qp, status) {
                return Some(Event::Done(done));
            }
        }
        if let Ending::Failure(status) = self.ending {
            self.ending = Ending::Flush;
            let (qp, psn) = (self.qp, Psn::default());
            return Some(Event::Failed(Failed { qp, status, psn }));
        }
        if let Some(done) = self.requester.finish(self.qp, Status::Flushed) {
            return Some(Event::Done(done));
        }
        self.responder.flush(self.qp).map(Event::Received)
    }

    fn is_open(&self) -> bool {
        matches!(self.ending, Ending::Open)
    }

    /// Whether there is nothing to do before the peer does something.
    fn is_idle(&self) -> bool {
        let is_waiting = self.is_open() && !self.requester.has_more;
        let is_failing = self.requester.is_failing().is_some();
        let Some(peer) = self.own.peer.get() else {
            return is_waiting;
        };
        let is_accepted = self.is_accepted || peer.inbox.partner() == 0;
        is_waiting
            && !is_failing
            && is_accepted
            && !self.responder.has_entry(&self.own.inbox)
            && (!self.requester.is_busy() || self.requester.knows(peer.inbox.progress()))
            && self.end_of(&peer.inbox).is_none()
    }
}

impl QueuePairDriver for Pair {
    fn post(&mut self, descriptor: Descriptor, data: &[u8]) -> bool {
        self.requester.poster.post(descriptor, data)
    }

    fn post_receive(&mut self, descriptor: Descriptor) -> bool {
        self.responder.post(&descriptor)
    }

    fn doorbell(&mut self) {
        self.requester.poster.ring();
        self.responder.show();
        self.advance();
    }

    #[inline]
    fn poll_event(&mut self) -> Option<Event> {
        if self.is_quiet() {
            self.idle = self.idle.wrapping_add(1);
            return None;
        }
        // What the call before has taken: told now, since most often an answer has told it meanwhile. It is
        // told before a message that may fail.
        if self.responder.has_news() {
            self.advance();
        }
        let mut event = None;
        if self.is_open() {
            event = self.next();
            let has_work = match event {
                Some(_) => self.requester.has_requests(),
                None => self.has_work(),
            };
            if has_work {
                self.advance();
            }
        }
        if event.is_none() && !self.is_open() {
            event = self.flush();
        }
        if event.is_some() {
            self.idle = 0;
        }
        event
    }

    fn sleep(&mut self, timeout: Option<Duration>) {
        let sleeping = self.own.inbox.sleeping();
        sleeping.store(1, Relaxed);
        // Before what the peer may have written is looked at (`Inbox::is_asleep`).
        fence(SeqCst);
        if self.is_idle() {
            let timeout = timeout.map(|timeout| Timespec {
                tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
                tv_nsec: timeout.subsec_nanos().into(),
            });
            // It ends early when the word is not 1 any more, or by a signal; the caller looks again.
            let _ = futex::wait(sleeping, futex::Flags::empty(), 1, timeout.as_ref());
        }
        sleeping.store(0, Relaxed);
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.responder.abandon(Cause::Aborted);
        self.seat.give_tally(self.responder.take_tally());
        // How it failed stays there for the peer.
        if self.is_open() {
            // What was taken is done, for the peer too.
            self.responder.tell(&self.own.inbox);
            self.own.inbox.set_state(State::Destroyed);
            self.notify();
        }
        self.connection.link.destroy(&self.own);
    }
}
