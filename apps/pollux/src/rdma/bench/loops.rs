//! The two loops of a measurement: one posts requests, the other answers them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use anyhow::{Result, anyhow, bail};
use pollux_pmd::lcore::{self, StopFlag};
use pollux_pmd::mempool::time::Ns;
use pollux_pmd::{LatencyHistogram, LatencyView};
use pollux_rdma::{Event, Get, Message, Operation, Payload, Put, QueuePair, Receive, Refusal};

use super::ends::{End, Ends, Pair, Poller};
use super::plan::Plan;

/// Share of a trial before the part that counts.
const WARM_UP: u32 = 10;
/// How long there may be nothing before the measurement has failed.
const PATIENCE: u64 = 10_000_000_000;
/// Polls without an answer between two looks at the time.
const LOOK: u32 = 1 << 16;

/// Result of a measurement.
pub(super) struct Outcome {
    /// Requests that were done in the part that counts, and its duration.
    pub(super) count: u64,
    pub(super) elapsed: Ns,
    /// Time of each, of a latency.
    pub(super) latencies: LatencyView,
    pub(super) pair: Pair,
}

/// What the loops know of each other.
#[derive(Default)]
struct Shared {
    /// The requester posts no more.
    is_over: AtomicBool,
    /// Loops that wait for nothing.
    idle: AtomicU32,
}

/// Runs both loops, each on its CPU.
pub(super) fn run(
    plan: Plan,
    ends: &mut Ends,
    pair: Pair,
    cores: &[Option<usize>],
    stop: &StopFlag,
) -> Result<Outcome> {
    let Some([first, second]) = ends.pollers.take() else {
        bail!("an end of the bench is missing");
    };
    let core = |n: usize| cores.get(n).copied().flatten();
    let shared = Arc::new(Shared::default());
    let [requester, responder] = pair.0;
    let (other, flag) = (Arc::clone(&shared), stop.clone());
    let answering = lcore::launch("responder", core(1), move || {
        let mut side = Side::new(plan, second, responder, other, flag);
        (side.respond(), side)
    })?;
    let flag = stop.clone();
    let requesting = lcore::launch("requester", core(0), move || {
        let mut side = Side::new(plan, first, requester, shared, flag);
        let measured = side.request();
        side.shared.is_over.store(true, Ordering::Release);
        (
            measured.and_then(|measured| side.settle().map(|()| measured)),
            side,
        )
    })?;
    let (measured, first) = requesting.join()?;
    let (answered, second) = answering.join()?;
    ends.pollers = Some([first.poller, second.poller]);
    let ((count, elapsed), ()) = (measured?, answered?);
    let latencies = first.latencies.view();
    Ok(Outcome {
        count,
        elapsed,
        latencies,
        pair: Pair([first.end, second.end]),
    })
}

/// A loop.
struct Side {
    plan: Plan,
    poller: Poller,
    end: End,
    shared: Arc<Shared>,
    stop: StopFlag,
    latencies: LatencyHistogram,
    /// Requests so far, and those of them that are done.
    posted: u64,
    done: u64,
    /// Events of the other end's requests.
    received: u64,
}

impl Side {
    fn new(plan: Plan, poller: Poller, end: End, shared: Arc<Shared>, stop: StopFlag) -> Self {
        Self {
            plan,
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

    /// Requests, for the time of a trial; how many counted, and in which time.
    fn request(&mut self) -> Result<(u64, Ns)> {
        let trial = self.plan.trial.as_nanos() as u64;
        let begin = self.poller.now().0;
        let warm = begin + trial / u64::from(WARM_UP);
        let (mut now, mut first, mut seen) = (begin, None, (begin, 0));
        loop {
            if self.plan.is_rate {
                self.fill()?;
                now = self.poller.now().0;
            } else {
                now = self.exchange(Ns(now), first.is_some())?.0;
            }
            if self.done > seen.1 {
                seen = (now, self.done);
            } else if now - seen.0 > PATIENCE {
                bail!("no request was done within {} s", PATIENCE / 1_000_000_000);
            }
            let (at, done) = *first.get_or_insert((now, self.done));
            if now < warm {
                first = None;
            } else if now - at >= trial || self.stop.is_set() {
                return Ok((self.done - done, Ns(now - at)));
            }
        }
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
    /// takes a good part of the time that a message takes.
    #[inline]
    fn exchange(&mut self, begin: Ns, counts: bool) -> Result<Ns> {
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
            if polls.is_multiple_of(LOOK) && self.poller.now().0 - begin.0 > PATIENCE {
                bail!("no answer within {} s", PATIENCE / 1_000_000_000);
            }
        }
        let end = self.poller.now();
        if counts {
            self.latencies.record(end.0 - begin.0);
        }
        Ok(end)
    }

    /// Answers until the requester has ended.
    fn respond(&mut self) -> Result<()> {
        let answers = !self.plan.is_rate && self.plan.operation != Operation::Get;
        while !self.shared.is_over.load(Ordering::Acquire) {
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
        let begin = self.poller.now();
        let mut is_idle = false;
        while self.shared.idle.load(Ordering::Acquire) < 2 {
            self.end.qp.doorbell();
            self.poll()?;
            if !is_idle && self.done == self.posted {
                is_idle = true;
                self.shared.idle.fetch_add(1, Ordering::Release);
            }
            if self.poller.now().0 - begin.0 > PATIENCE {
                return Err(anyhow!("the other end does not come to its end"));
            }
        }
        Ok(())
    }
}
