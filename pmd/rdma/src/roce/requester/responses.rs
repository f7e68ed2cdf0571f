//! What a requester does with responses and with their absence.

use pollux_mempool::time::Ns;
use pollux_pmd::net::roce::{Aeth, NakCode, Packet, Syndrome};

use super::Requester;
use crate::address::Psn;
use crate::event::{Operation, Status};
use crate::registrations::Session;
use crate::roce::connection::Connection;
use crate::roce::counts::Counts;
use crate::roce::drops::{Drop, Failure};
use crate::work_queue::Place;

impl Requester {
    /// Takes an acknowledgement. An error is a packet that is dropped; a failure that of the queue pair.
    pub(in crate::roce) fn acknowledge(
        &mut self,
        packet: &Packet<'_>,
        connection: &Connection,
        counts: &mut Counts,
        now: Ns,
    ) -> Result<Option<Failure>, Drop> {
        let psn = Psn::new(packet.bth.psn());
        let syndrome = packet.aeth().map(Aeth::syndrome);
        let syndrome = syndrome.and_then(Syndrome::from_code);
        let syndrome = syndrome.ok_or(Drop::Unexpected)?;
        self.check_in_flight(psn)?;
        // A refusal acknowledges all before it (9.7.5.2.1).
        let end = match syndrome {
            Syndrome::Ack { .. } => psn.after(1),
            Syndrome::NotReady(_) | Syndrome::Nak(_) => psn,
        };
        let (is_progress, has_lost_response) = self.advance(end);
        if is_progress {
            self.progress(connection, now);
        }
        let failed = |status| Ok(Some(Failure { status, psn }));
        match syndrome {
            // Acknowledged beyond a READ: its responses were lost (9.7.5.1.1, implied NAK).
            Syndrome::Ack { .. } | Syndrome::Nak(NakCode::Sequence) if has_lost_response => {
                self.ask_again(connection)
            }
            Syndrome::Ack { .. } => Ok(None),
            Syndrome::Nak(NakCode::Sequence) => self.ask_again(connection),
            Syndrome::NotReady(timer) => {
                if self.retries.is_waiting(now) {
                    return Err(Drop::Duplicate);
                }
                counts.not_ready();
                let until = Ns(now.0.saturating_add(timer.time().0));
                if !self.retries.wait(until, connection.rnr_retry) {
                    return failed(Status::RnrRetryExceeded);
                }
                self.go_back();
                Ok(None)
            }
            Syndrome::Nak(NakCode::InvalidRequest) => failed(Status::RemoteInvalidRequest),
            Syndrome::Nak(NakCode::RemoteAccess) => failed(Status::RemoteAccess),
            Syndrome::Nak(NakCode::RemoteOperation) => failed(Status::RemoteOperation),
        }
    }

    /// Takes a packet of a READ response.
    pub(in crate::roce) fn read_response(
        &mut self,
        packet: &Packet<'_>,
        connection: &Connection,
        session: &Session<'_>,
        now: Ns,
    ) -> Result<Option<Failure>, Drop> {
        let psn = Psn::new(packet.bth.psn());
        if let Some(aeth) = packet.aeth()
            && !matches!(
                Syndrome::from_code(aeth.syndrome()),
                Some(Syndrome::Ack { .. })
            )
        {
            return Err(Drop::Unexpected);
        }
        self.check_in_flight(psn)?;
        let (n, bytes, place) = self.oldest_read().ok_or(Drop::Unexpected)?;
        let numbers = *self.numbers(n);
        let ahead = psn.since(numbers.first.after(numbers.received));
        if ahead < 0 {
            return Err(Drop::Unexpected);
        }
        if ahead > 0 {
            let failure = self.ask_again(connection)?;
            return failure.map_or(Err(Drop::Gap), |failure| Ok(Some(failure)));
        }
        let mtu = connection.mtu.bytes() as u32;
        let done = numbers.received.wrapping_mul(mtu);
        let len = bytes.saturating_sub(done).min(mtu);
        let is_last = numbers.received + 1 == numbers.packets;
        if packet.payload.len() != len as usize || packet.opcode.part().ends() != is_last {
            let status = Status::LocalLength;
            return Ok(Some(Failure { status, psn }));
        }
        if let (Place::Buffer(key, start), 1..) = (place, len) {
            let at = start.saturating_add(u64::from(done));
            let Ok(to) = session.local(key, at, u64::from(len)) else {
                let status = Status::LocalAccess;
                return Ok(Some(Failure { status, psn }));
            };
            to.write(packet.payload);
        }
        // All requests before the READ are done: responses come in order.
        self.completed = n;
        self.numbers(n).received += 1;
        self.unacknowledged = psn.after(1);
        if is_last {
            self.completed = n + 1;
            self.reads = self.reads.saturating_sub(1);
        }
        self.progress(connection, now);
        Ok(None)
    }

    /// Repeats requests whose acknowledgement is overdue.
    #[inline]
    pub(in crate::roce) fn run_timers(
        &mut self,
        connection: &Connection,
        counts: &mut Counts,
        now: Ns,
    ) -> Option<Failure> {
        if !self.retries.is_overdue(now) {
            return None;
        }
        counts.timeout();
        self.go_back();
        let is_left = self.retries.repeat(connection.retry);
        (!is_left).then_some(Failure {
            status: Status::RetryExceeded,
            psn: self.unacknowledged,
        })
    }

    /// The next time at which something is due.
    pub(in crate::roce) fn next_deadline(&self) -> Option<Ns> {
        self.retries.next()
    }

    /// Gives the requests up.
    pub(in crate::roce) fn stop(&mut self) {
        self.retries.stop();
    }

    fn check_in_flight(&self, psn: Psn) -> Result<(), Drop> {
        if psn.since(self.sent_end) >= 0 {
            return Err(Drop::Unexpected);
        }
        if psn.since(self.unacknowledged) < 0 {
            return Err(Drop::Duplicate);
        }
        Ok(())
    }

    /// The oldest READ that lacks responses: its place, its bytes and where they go.
    fn oldest_read(&self) -> Option<(u32, u32, Place)> {
        (self.completed..self.started).find_map(|n| {
            let (request, _) = self.queue.get(n)?;
            let is_read = request.operation == Operation::Get;
            is_read.then_some((n, request.bytes, request.place))
        })
    }

    fn is_read(&self, n: u32) -> bool {
        let request = self.queue.get(n);
        request.is_some_and(|(request, _)| request.operation == Operation::Get)
    }

    /// Takes all numbers before `end` as acknowledged. Returns whether that is news, and whether it is
    /// beyond a READ that lacks responses.
    fn advance(&mut self, end: Psn) -> (bool, bool) {
        let mut is_progress = false;
        while self.completed < self.started {
            let numbers = *self.numbers(self.completed);
            if end.since(self.unacknowledged) <= 0 {
                break;
            }
            if self.is_read(self.completed) {
                return (is_progress, true);
            }
            let behind = numbers.first.after(numbers.packets);
            if end.since(behind) < 0 {
                self.unacknowledged = end;
                return (true, false);
            }
            self.unacknowledged = behind;
            self.completed += 1;
            is_progress = true;
        }
        (is_progress, false)
    }

    fn progress(&mut self, connection: &Connection, now: Ns) {
        let is_in_flight = self.unacknowledged != self.sent_end;
        self.retries.progress(now, connection.timeout, is_in_flight);
        self.skip_acknowledged();
    }

    /// Repeats what is not acknowledged, once until there is progress or the time is over.
    fn ask_again(&mut self, connection: &Connection) -> Result<Option<Failure>, Drop> {
        if self.retries.is_gap_asked {
            return Err(Drop::Gap);
        }
        self.retries.is_gap_asked = true;
        self.go_back();
        let is_left = self.retries.repeat(connection.retry);
        Ok((!is_left).then_some(Failure {
            status: Status::RetryExceeded,
            psn: self.unacknowledged,
        }))
    }
}
