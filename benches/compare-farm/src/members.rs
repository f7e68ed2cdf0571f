//! Members of a loop, and what `farm run` has them do: the numbers are its defaults.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use pollux_farm::carrier::{Arrival, Carrier};
use pollux_farm::feeder::{self, Feeder, mockup::Mockup};
use pollux_farm::members;
use pollux_farm::node::{self, Built, Node, Step, Work};
use pollux_farm::results::{self, Results};
use pollux_farm::scheduler::{self, Scheduler, Source};
use pollux_farm::time::Time;
use pollux_farm::topology::{Feeders, Topology};
use pollux_farm::wire::payload::{padded, table_len};
use pollux_pmd::mempool::time::Tsc;
use pollux_pmd::{Clock as _, TscClock};

use crate::room::Payload;
use crate::share::{Share, nodes, part};
use crate::sockets::Sockets;

/// Number of the run in messages.
const RUN: u32 = 1;
/// Events, or packs of events, that are triggered and not decided, at most.
const IN_FLIGHT: usize = 4096;
/// What was not answered is sent again.
const TIMEOUT: Time = Time::from_ns(50_000_000);
/// A member that is silent is excluded.
const SILENCE: Time = Time::from_ns(2_000_000_000);
/// An incomplete pack waits for more triggers.
const PACK_WAIT: Time = Time::from_ns(1_000_000);
/// Packs of events that are triggered in one round at most.
const TRIGGERS: usize = 64;
/// Bytes of fragments under way that stay in the second-level cache of a core.
const CACHED: usize = 512 << 10;
/// Bytes of a fragment beside its data.
const HEADERS: usize = 256;
/// Messages between two readings of the clock.
const READ_CLOCK: usize = 32;
/// Messages of a round at most.
const ROUND: usize = 512;
/// One event in so many is accepted.
const ACCEPTED: u64 = 25;
/// Longest time without a decision.
const PATIENCE: Time = Time::from_ns(20_000_000_000);

/// What the loops tell each other beside the messages: beginning and end.
#[derive(Default)]
pub(crate) struct Control {
    ready: AtomicUsize,
    done: AtomicBool,
}

/// What a loop has done.
#[derive(Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) triggered: u64,
    pub(crate) decided: u64,
    pub(crate) incomplete: u64,
    pub(crate) in_order: bool,
    pub(crate) checked: u64,
    pub(crate) wrong: u64,
    pub(crate) resent: u64,
    pub(crate) datagrams: u64,
    pub(crate) calls: u64,
    /// From the first trigger to the last decision.
    pub(crate) duration: Time,
}

impl Default for Outcome {
    fn default() -> Self {
        Self {
            triggered: 0,
            decided: 0,
            incomplete: 0,
            in_order: true,
            checked: 0,
            wrong: 0,
            resent: 0,
            datagrams: 0,
            calls: 0,
            duration: Time::ZERO,
        }
    }
}

impl Outcome {
    pub(crate) fn add(&mut self, other: &Self) {
        self.triggered += other.triggered;
        self.decided += other.decided;
        self.incomplete += other.incomplete;
        self.in_order &= other.in_order;
        self.checked += other.checked;
        self.wrong += other.wrong;
        self.resent += other.resent;
        self.datagrams += other.datagrams;
        self.calls += other.calls;
        self.duration = self.duration.max(other.duration);
    }
}

/// Compares fragments with the mock-up words, and decides.
struct Check {
    store: Mockup,
    checked: u64,
    wrong: u64,
}

impl Work<Option<Payload>> for Check {
    fn work(&mut self, _now: Time, built: &Built<'_, Option<Payload>>) -> Step {
        for payload in built.fragments.iter().flatten().flatten() {
            let compared = self.store.compare(built.event, built.count, payload);
            self.checked += compared.checked;
            self.wrong += compared.wrong;
        }
        let mut accepted = 0;
        let mut n = (ACCEPTED - built.event % ACCEPTED) % ACCEPTED;
        while n < u64::from(built.count) {
            accepted |= 1 << n;
            n += ACCEPTED;
        }
        Step::Decide(accepted)
    }
}

type Farm = members::Members<Scheduler, Results, Feeder<Mockup>, Node<Option<Payload>, Check>>;

/// A loop.
pub(crate) struct Members {
    carrier: Sockets,
    farm: Farm,
    control: Arc<Control>,
    share: Share,
    /// Undecided packs up to which new ones are triggered.
    window: u64,
    seen: u64,
    next: u64,
    is_closed: bool,
    began: Option<Time>,
    ended: Time,
    outcome: Outcome,
}

impl Members {
    pub(crate) fn new(
        share: &Share,
        topology: &Topology,
        carrier: Sockets,
        control: Arc<Control>,
    ) -> Result<Self> {
        let Share { number, loops, .. } = *share;
        let data = padded(share.fragment).unwrap_or(0) * u32::from(share.pack);
        let slot = data + table_len(share.pack);
        let cached = loops * CACHED / ((slot as usize + HEADERS) * topology.feeders());
        let window = cached.max(4 * topology.columns() * loops);
        let store = Mockup::new(share.fragment, 0);
        let (feeders, numbers) = (
            part(topology.feeders(), number, loops),
            nodes(topology.nodes(), number, loops),
        );
        let now = Time::ZERO;
        let feeder = |id: usize| {
            let config = feeder::Config {
                run: RUN,
                id: id as u8,
                slot,
                in_flight: IN_FLIGHT,
                bypass_above: slot,
                beat: TIMEOUT,
            };
            Ok(Feeder::new(config, topology, store, now)?)
        };
        let node = |id| {
            let config = node::Config {
                run: RUN,
                id,
                slot,
                workers: 1,
                beat: TIMEOUT,
            };
            let work = Check {
                store,
                checked: 0,
                wrong: 0,
            };
            Ok(Node::new(config, topology, work, now)?)
        };
        let scheduler = || {
            let config = scheduler::Config {
                pack: share.pack,
                pack_wait: PACK_WAIT,
                in_flight: IN_FLIGHT,
                pending: IN_FLIGHT,
                ring_timeout: TIMEOUT,
                event_timeout: TIMEOUT,
                tries: 40,
                silence: SILENCE,
                second: Feeders::NONE,
                ..scheduler::Config::new(RUN, topology.clone())
            };
            Scheduler::new(config, now)
        };
        let results = || {
            let config = results::Config {
                run: RUN,
                in_flight: IN_FLIGHT,
                beat: TIMEOUT,
            };
            Results::new(config, topology, now)
        };
        Ok(Self {
            carrier,
            farm: Farm {
                scheduler: (number == 0).then(scheduler).transpose()?,
                results: (number + 1 == loops).then(results).transpose()?,
                first_feeder: feeders.start,
                feeders: feeders.map(feeder).collect::<Result<_>>()?,
                node_numbers: numbers,
                nodes: numbers.iter().map(node).collect::<Result<_>>()?,
                due: Time::ZERO,
            },
            control,
            share: *share,
            window: window as u64,
            seen: 0,
            next: 0,
            is_closed: false,
            began: None,
            ended: Time::ZERO,
            outcome: Outcome::default(),
        })
    }

    /// Polls the members until the run is over.
    pub(crate) fn run(&mut self, clock: TscClock, start: Tsc) -> Result<()> {
        // Release: pairs with the acquire of the scheduler's loop: its sockets are there.
        self.control.ready.fetch_add(1, Ordering::Release);
        let now = || Time::from_ns(clock.to_ns(clock.now().since(start)).0);
        // Acquire: pairs with the release of the scheduler's loop at the end.
        while !self.control.done.load(Ordering::Acquire) {
            self.round(&now);
            if let Some(error) = self.carrier.failure.take() {
                self.control.done.store(true, Ordering::Release);
                return Err(error);
            }
            if self.farm.scheduler.is_some() && now() - self.ended > PATIENCE {
                self.control.done.store(true, Ordering::Release);
                ensure!(
                    false,
                    "no event was decided for {} s",
                    PATIENCE.ps() / 1_000_000_000_000
                );
            }
        }
        Ok(())
    }

    fn round(&mut self, clock: &impl Fn() -> Time) {
        let (mut now, mut delivered) = (clock(), 0_usize);
        while delivered < ROUND
            && let Some(arrival) = self.carrier.next()
        {
            delivered += 1;
            if delivered.is_multiple_of(READ_CLOCK) {
                now = clock();
            }
            self.deliver(now, arrival);
        }
        self.farm.poll(now, &mut self.carrier);
        self.trigger(now);
        self.carrier.flush();
    }

    fn deliver(&mut self, now: Time, arrival: Arrival<Payload>) {
        self.farm.deliver(now, arrival, &mut self.carrier);
        if let Some(scheduler) = &self.farm.scheduler
            && scheduler.decided() > self.seen
        {
            self.seen = scheduler.decided();
            self.ended = now;
        }
        if let Some(results) = &mut self.farm.results {
            while let Some(decision) = results.fetch() {
                let count = u64::from(decision.count);
                self.outcome.in_order &= decision.event == self.next;
                self.next = decision.event + count;
                self.outcome.decided += count;
                if !decision.missing.is_empty() || decision.absent > 0 {
                    self.outcome.incomplete += count;
                }
            }
        }
    }

    /// Triggers as many events as the farm takes, and notices the end.
    fn trigger(&mut self, now: Time) {
        let Some(scheduler) = &mut self.farm.scheduler else {
            return;
        };
        // Acquire: pairs with the release of each loop that is ready.
        if self.control.ready.load(Ordering::Acquire) < self.share.loops {
            return;
        }
        if self.began.is_none() {
            self.began = Some(now);
            self.ended = now;
        }
        let mut left = self.share.events - scheduler.counters().triggers.taken;
        if left == 0 {
            if !self.is_closed {
                self.is_closed = true;
                scheduler.close(now, &mut self.carrier);
            }
            if scheduler.is_idle() {
                // Release: pairs with the acquire of each loop.
                self.control.done.store(true, Ordering::Release);
            }
            return;
        }
        for _ in 0..TRIGGERS {
            let undecided = scheduler.triggered() - scheduler.decided();
            let is_full = scheduler.in_flight() >= IN_FLIGHT || undecided >= self.window;
            if left == 0 || is_full || scheduler.pending() > 0 {
                return;
            }
            let count = u64::from(self.share.pack).min(left) as u16;
            let taken = scheduler.trigger(Source::Internal, count, now, &mut self.carrier);
            left -= u64::from(taken);
        }
    }

    /// What the loop has done.
    pub(crate) fn outcome(mut self) -> Outcome {
        let mut outcome = self.outcome;
        for node in &mut self.farm.nodes {
            outcome.checked += node.work().checked;
            outcome.wrong += node.work().wrong;
        }
        if let Some(scheduler) = &self.farm.scheduler {
            outcome.triggered = scheduler.counters().triggers.taken;
            outcome.resent = scheduler.counters().flow.resent;
            outcome.duration = self.ended - self.began.unwrap_or(self.ended);
        }
        outcome.datagrams = self.carrier.datagrams;
        outcome.calls = self.carrier.calls;
        outcome
    }
}
