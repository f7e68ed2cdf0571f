//! Test setup of `pollux bench`: started ports on which consecutive trials run.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use pollux_app::Failure;
use pollux_app::metrics::Watch;
use pollux_app::ports::{self, PortView};
use pollux_pmd::lcore::{self, Lcore, StopFlag};
use pollux_pmd::mempool::{Burst, Mempool, PoolCache};
use pollux_pmd::net::ParseOptions;
use pollux_pmd::port::{Port, Started};
use pollux_pmd::{LatencyHistogram, Ledger, RxQueue, Tally, TscClock, TxQueue};

use super::trial::{Losses, Trial};
use crate::generate::{Flows, Outputs, Rate, Sender};
use crate::payload::Content;
use crate::supervisor::{Begun, Rig, Supervisor};
use crate::verify::{Checker, Until};

/// Buffers in the local cache of each loop.
pub(super) const CACHE: usize = 512;

/// Polling interval of the main thread.
const NAP: Duration = Duration::from_millis(2);

/// Time beyond twice its duration after which the sender of a trial is stopped.
const PATIENCE: Duration = Duration::from_secs(1);

/// Longest wait for a link.
const LINK: Duration = Duration::from_secs(10);

/// Number of flows that a header can encode. Each trial uses flows of its own, so that a late frame
/// is not counted in the next trial.
const NUMBERS: u32 = 1 << u16::BITS;

/// Parameters of a trial.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// Frames a second.
    pub(super) rate: f64,
    /// Length of a frame, without check sequence.
    pub(super) bytes: u16,
    pub(super) duration: Duration,
    /// Wait for further frames after the last received one.
    pub(super) settle: Duration,
}

impl Plan {
    /// Frames to be sent: the same number by each loop.
    fn frames(&self, loops: usize) -> u64 {
        let frames = (self.rate * self.duration.as_secs_f64()).round().max(1.0) as u64;
        frames.next_multiple_of(loops as u64)
    }
}

/// Ports on which trials run.
pub(super) struct Stand<'a> {
    supervisor: &'a Supervisor,
    begun: &'a Begun,
    pool: Mempool,
    /// Used by the main thread on the transmit queues between two trials.
    cache: PoolCache,
    content: Arc<Content>,
    /// Flows of each sender, as at the beginning of the first trial.
    flows: Vec<Flows>,
    ports: Vec<Port<Started>>,
    views: Vec<PortView>,
    tx: Vec<TxQueue>,
    rx: Vec<RxQueue>,
    ledger: Ledger,
    /// Tally of the receiver, over all trials.
    tally: Tally,
    trials: u32,
    watch: Watch,
}

impl<'a> Stand<'a> {
    /// Takes the ports of the rig: the first one sends, the last one receives.
    pub(super) fn new(
        (supervisor, begun): (&'a Supervisor, &'a Begun),
        (rig, mut ledger): (Rig, Ledger),
        pool: Mempool,
        content: Content,
        flows: Vec<Flows>,
    ) -> anyhow::Result<Self> {
        let tally = Tally::new();
        ledger.add("receiver", tally.view());
        let watch = supervisor.watch(&rig.views, &ledger)?;
        Ok(Self {
            supervisor,
            begun,
            cache: pool.cache(CACHE).context("no packet buffers")?,
            pool,
            content: Arc::new(content),
            flows,
            ports: rig.ports,
            views: rig.views,
            tx: rig.tx.into_iter().flatten().collect(),
            rx: rig.rx.into_iter().flatten().collect(),
            ledger,
            tally,
            trials: 0,
            watch,
        })
    }

    /// Waits until all links are up. Returns false if the run ends before.
    pub(super) fn wait_for_links(&self) -> anyhow::Result<bool> {
        let since = Instant::now();
        while let Some(port) = self.ports.iter().find(|port| !port.link().up) {
            if self.is_over() {
                return Ok(false);
            }
            if since.elapsed() > LINK {
                return Err(anyhow!(
                    "the link of port {} is down: set it up, or start its peer",
                    port.spec()
                ));
            }
            std::thread::sleep(NAP);
        }
        Ok(true)
    }

    /// Whether the run is over.
    pub(super) fn is_over(&self) -> bool {
        self.supervisor.is_over(self.begun)
    }

    /// Runs a trial, and adds the latencies of its frames to `latency`. Returns no trial if the run
    /// ends before the trial is complete.
    pub(super) fn trial(
        &mut self,
        plan: Plan,
        latency: LatencyHistogram,
    ) -> Result<(Option<Trial>, LatencyHistogram), Failure> {
        let loops = self.flows.len();
        let frames = plan.frames(loops);
        let flows: usize = self.flows.iter().map(Flows::len).sum();
        let turns = NUMBERS / flows as u32;
        let first = (self.trials % turns * flows as u32) as u16;
        self.trials += 1;
        let (sending, receiving) = (StopFlag::new(), StopFlag::new());
        let until = Until {
            count: Some(frames),
            wait: None,
            idle: None,
        };
        let checker = Checker::new(
            std::mem::take(&mut self.rx),
            self.pool.cache(CACHE).context("no packet buffers")?,
            Arc::clone(&self.content),
            ParseOptions::default(),
            first..=first + (flows - 1) as u16,
            until,
            receiving.clone(),
        );
        let checker = checker.adding_to(std::mem::take(&mut self.tally), latency);
        let before = (self.ledger.balance(), self.sent());
        let senders = self.senders(plan, first, &sending)?;

        let core = |i| self.supervisor.cores().get(i).copied();
        let (polls, polling) = mpsc::channel();
        let receiver = lcore::launch("receiver", core(loops), move || {
            // The main thread waits for it. If it were gone, the message would not matter.
            let _ = polls.send(());
            checker.run()
        });
        let receiver = receiver.map_err(anyhow::Error::new)?;
        // The senders start when the receiver polls. A receiver that could not be pinned never
        // sends the message, and `recv` fails when its thread ends.
        let _ = polling.recv();
        let stop = || {
            sending.stop();
            receiving.stop();
        };
        let launched = senders
            .into_iter()
            .enumerate()
            .map(|(i, sender)| lcore::launch("sender", core(i), move || sender.run()));
        let launched: Result<Vec<_>, _> = launched.collect();
        // A sender that cannot start must stop those that run.
        let senders = launched.inspect_err(|_| stop());
        let senders = senders.map_err(anyhow::Error::new)?;
        lcore::keep_off(self.supervisor.cores());

        let begin = Instant::now();
        while !senders.iter().all(Lcore::is_finished) {
            if self.is_over() || begin.elapsed() > 2 * plan.duration + PATIENCE {
                sending.stop();
            }
            if !self.watch.keep(&self.ports) {
                self.supervisor.stop.stop();
            }
            std::thread::sleep(NAP);
        }
        let sent: Result<Vec<_>, _> = senders.into_iter().map(Lcore::join).collect();
        let sent = sent.inspect_err(|_| stop()).map_err(anyhow::Error::new)?;
        let (mut unsent, mut span_s, mut sender_taken_s) = (0, 0_f64, 0_f64);
        for (i, sent) in sent.into_iter().enumerate() {
            self.tx.extend(sent.tx);
            unsent += sent.unsent;
            // Each loop's schedule is offset behind those of the loops before it.
            span_s = span_s.max(sent.span_s - i as f64 / plan.rate);
            sender_taken_s = sender_taken_s.max(sent.taken_s);
        }
        let all_sent = |stand: &Self| stand.sent() - before.1 >= frames - unsent;
        let (mut since, mut came) = (Instant::now(), 0);
        while !(receiver.is_finished() && all_sent(self))
            && since.elapsed() < plan.settle
            && !self.is_over()
        {
            self.kick();
            std::thread::sleep(NAP);
            let now = self.ledger.balance().from_wire;
            if now != came {
                (since, came) = (Instant::now(), now);
            }
        }
        receiving.stop();
        let checked = receiver.join().map_err(anyhow::Error::new)?;
        (self.rx, self.tally) = (checked.queues, checked.tally);

        let trial = Trial {
            rate: plan.rate,
            frames,
            sent: (self.sent() - before.1).min(frames),
            span_s,
            sender_taken_s,
            receiver_taken_s: checked.taken_s,
            received: checked.sequence.unique.min(frames),
            corrupt: checked.counts.corrupt,
            dropped: Losses::between(&before.0, &self.ledger.balance()),
        };
        let complete = !self.is_over();
        Ok((complete.then_some(trial), checked.counts.latency))
    }

    /// The loops that send a trial's frames: one for each queue, which it owns.
    fn senders(
        &mut self,
        plan: Plan,
        first: u16,
        sending: &StopFlag,
    ) -> anyhow::Result<Vec<Sender>> {
        let loops = self.flows.len();
        let mut senders = Vec::new();
        for (i, (tx, flows)) in self.tx.drain(..).zip(&self.flows).enumerate() {
            senders.push(Sender {
                tx: Outputs::new(vec![tx]).context("a loop has no queue")?,
                cache: self.pool.cache(CACHE).context("no packet buffers")?,
                flows: flows.clone().numbered_from(first),
                sizes: [plan.bytes].into(),
                size: 0,
                content: Arc::clone(&self.content),
                rate: Rate::Frames(plan.rate).share(loops),
                place: (i, loops),
                together: None,
                left: plan.frames(loops) / loops as u64,
                stop: sending.clone(),
                clock: TscClock::get(),
            });
        }
        Ok(senders)
    }

    /// Calls the drivers, so that they complete frames that they have accepted but not sent.
    fn kick(&mut self) {
        for tx in &mut self.tx {
            tx.tx(&mut self.cache, &mut Burst::<1>::new());
        }
    }

    /// Frames that the ports have transmitted.
    fn sent(&self) -> u64 {
        self.views
            .iter()
            .map(|view| view.traffic().tx_packets)
            .sum()
    }

    /// Stops the ports.
    pub(super) fn stop(self) -> (Ledger, Vec<PortView>, Result<(), pollux_pmd::PortError>) {
        let stopped = ports::stop(self.ports, self.rx, self.tx);
        (self.ledger, self.views, stopped)
    }
}
