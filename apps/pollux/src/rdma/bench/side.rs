//! A loop of a measurement: the requester's or the responder's.

use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use pollux_pmd::LatencyHistogram;
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::mempool::time::Ns;
use pollux_rdma::{Event, Get, Message, Operation, Payload, Put, QueuePair, Receive, Refusal};

use super::ends::{End, Poller};
use super::patience::Patience;
use super::plan::Plan;
use super::shared::Shared;

/// Share of a trial before the part that counts.
const WARM_UP: u64 = 10;
/// Polls without an answer between two looks at the time.
const LOOK: u32 = 1 << 16;

/// A loop.
pub(super) struct Side {
    plan: Plan,
    pub(super) poller: Poller,
    pub(super) end: End,
    shared: Arc<Shared>,
    stop: StopFlag,
    pub(super) latencies: LatencyHistogram,
    /// Requests so far, and those of them that are done.
    posted: u64,
    done: u64,
    /// Events of the other end's requests.
    received: u64,
    patience: Patience,
}

impl Side {
    pub(super) fn new(
        plan: Plan,
        poller: Poller,
        end: End,
        shared: Arc<Shared>,
        stop: StopFlag,
    ) -> Self {
        Self {
            plan,
            patience: Patience::new(poller.now()),
            poller,
            end,
            shared,
            stop,
            latencies: LatencyHistogram::new(),
            posted: 0,
            done: 0,
            received: 0,
        }
    }

    /// Posts a request, without the doorbell.
    #[inline]
    fn post(&mut self) -> Result<()> {
        let Self { plan, end, .. } = self;
        let (cookie, whole) = (self.posted, end.buffer.part(0, plan.bytes));
        let payload = if end.data.len() <= QueuePair::IMMEDIATE {
            Payload::Immediate(&end.data)
        } else {
            Payload::Indirect(whole)
        };
        let refused = |refusal: Refusal| anyhow!("a request was not taken: {refusal}");
        match plan.operation {
            Operation::Put => {
                let request = Put {
                    cookie,
                    payload,
                    to: end.remote,
                    // The other end waits for it.
                    immediate: (!plan.is_rate).then_some(0),
                };
                end.qp.put(request).map_err(|why| refused(why.refusal))?;
            }
            Operation::Get => {
                let (from, to) = (end.remote, whole);
                end.qp.get(Get { cookie, from, to })?;
            }
            Operation::Send => {
                let immediate = None;
                let request = Message {
                    cookie,
                    payload,
                    immediate,
                };
                end.qp.send(request).map_err(|why| refused(why.refusal))?;
            }
        }
        self.posted += 1;
        Ok(())
    }

    /// Polls, and takes all events.
    #[inline]
    fn poll(&mut self) -> Result<()> {
        self.poller.poll();
        while self.take()? {}
        Ok(())
    }

    /// Takes an event; false if there is none. A receive that is used up is posted again, with the next
    /// doorbell.
    #[inline]
    fn take(&mut self) -> Result<bool> {
        let Some(event) = self.end.qp.poll_event() else {
            return Ok(false);
        };
        let status = match event {
            Event::Done(done) => {
                self.done += 1;
                done.status
            }
            Event::Received(received) => {
                self.received += 1;
                let (cookie, to) = (received.cookie, self.end.buffer.part(0, self.plan.bytes));
                self.end.qp.post_receive(Receive { cookie, to })?;
                received.status
            }
            Event::Failed(failed) => failed.status,
        };
        if status != pollux_rdma::Status::Ok {
            bail!("the queue pair has failed: {status}");
        }
        Ok(true)
    }

    /// Whether neither a signal nor a failure of the other end ends the run. What has already come is taken
    /// at the end: a failure of this end may be the cause of the other's.
    #[inline]
    fn goes_on(&mut self) -> Result<bool> {
        let ends = self.stop.is_set() || self.shared.has_failed();
        if ends {
            self.poll()?;
        }
        Ok(!ends)
    }

    /// Fails if nothing has come from the other end for too long.
    #[inline]
    fn expect_progress(&mut self, now: Ns) -> Result<()> {
        let (events, poller) = (self.done + self.received, &self.poller);
        self.patience.look(now, || events + poller.delivered())
    }

    /// Requests, for the time of a trial and until one is done; how many counted, and in which time. `None`
    /// if the run ends before.
    pub(super) fn request(&mut self) -> Result<Option<(u64, Ns)>> {
        let measured = self.measure();
        self.shared.end();
        let measured = measured?;
        self.settle()?;
        Ok(measured)
    }

    fn measure(&mut self) -> Result<Option<(u64, Ns)>> {
        let trial = self.plan.trial.as_nanos() as u64;
        let mut now = self.poller.now();
        let warm = now.0.saturating_add(trial / WARM_UP);
        // Requests that were done, and when: the first that does not count, and the last.
        let mut finished = 0;
        let (mut first, mut last) = (None, (0, now));
        while self.goes_on()? {
            let before = finished;
            if self.plan.is_rate {
                self.fill()?;
                now = self.poller.now();
                finished = self.done;
            } else if let Some(end) = self.exchange(now, first.is_some())? {
                now = end;
                finished += 1;
            }
            self.expect_progress(now)?;
            if finished == before {
                continue;
            }
            last = (finished, now);
            match first {
                Some((_, Ns(begin))) if now.0 - begin >= trial => break,
                None if now.0 >= warm => first = Some(last),
                _ => {}
            }
        }
        let measured = first.map(|(n, begin)| (last.0 - n, Ns(last.1.0 - begin.0)));
        Ok(measured.filter(|&(count, _)| count > 0))
    }

    /// Posts as many requests as may be in flight, and takes what is done.
    #[inline]
    fn fill(&mut self) -> Result<()> {
        let depth = u64::from(self.plan.depth);
        let before = self.posted;
        while self.posted - self.done < depth {
            self.post()?;
        }
        if self.posted > before {
            self.end.qp.doorbell();
        }
        self.poll()
    }

    /// One request, and what it waits for, from the end of the one before on. The clock is read once: that
    /// takes a good part of the time that a message takes. `None` if the run ends before.
    #[inline]
    fn exchange(&mut self, begin: Ns, counts: bool) -> Result<Option<Ns>> {
        let received = self.received;
        self.post()?;
        self.end.qp.doorbell();
        let is_get = self.plan.operation == Operation::Get;
        let waits = |side: &Self| {
            if is_get {
                side.done < side.posted
            } else {
                side.received == received
            }
        };
        let mut polls = 0_u32;
        while waits(self) {
            self.poller.poll();
            // Others wait until the next request is posted.
            while waits(self) && self.take()? {}
            polls = polls.wrapping_add(1);
            if polls.is_multiple_of(LOOK) {
                if !self.goes_on()? {
                    return Ok(None);
                }
                self.expect_progress(self.poller.now())?;
            }
        }
        let end = self.poller.now();
        if counts {
            self.latencies.record(end.0 - begin.0);
        }
        Ok(Some(end))
    }

    /// Answers until the requester has ended.
    pub(super) fn respond(&mut self) -> Result<()> {
        let answers = !self.plan.is_rate && self.plan.operation != Operation::Get;
        while !self.shared.is_over() && self.goes_on()? {
            let received = self.received;
            self.poller.poll();
            // An answer does not wait for other events.
            while self.take()? && !(answers && self.received > received) {}
            if self.received > received {
                if answers {
                    self.post()?;
                }
                // Shows the receives as well.
                self.end.qp.doorbell();
            }
        }
        self.settle()
    }

    /// Goes on until neither end waits for anything of the other.
    fn settle(&mut self) -> Result<()> {
        let mut is_idle = false;
        while !self.shared.is_idle() && self.goes_on()? {
            self.end.qp.doorbell();
            self.poll()?;
            if !is_idle && self.done == self.posted {
                is_idle = true;
                self.shared.wait_for_nothing();
            }
            if !is_idle {
                self.expect_progress(self.poller.now())?;
            }
        }
        Ok(())
    }
}
