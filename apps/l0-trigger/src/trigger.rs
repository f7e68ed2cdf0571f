//! The poll loop of the trigger: receive, run the pipeline, answer; all on one core.

use std::sync::Arc;

use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{Burst, Mbuf};
use pollux_na62::l0::{Decision, Frame, L0Stats};
use pollux_pipelines::{Batch, Moment, Pipeline};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::lcore::idle::Idle;
use pollux_pmd::{Clock, RxQueue};

use crate::clock::RunClock;
use crate::groups;
use crate::outlet::Outlet;
use crate::receiver::Receiver;
use crate::replay::{self, Pending};

/// Most frames that are taken from a queue at a time.
pub const MAX_BURST: usize = 32;

/// How often counters outside the process are read, and an unknown station is asked for.
const CHORES: Ns = Ns(100_000_000);

/// Longest sleep of an idle loop: events are closed by the clock too, some of them while nothing
/// comes.
pub const SLEEP: Ns = Ns(100_000);

/// A receive queue of the trigger.
pub struct Input {
    pub rx: RxQueue,
    /// Place of its port on the command line.
    pub place: usize,
    /// Its driver enters the kernel, where frames may be lost uncounted for a while.
    pub kernel_backed: bool,
    /// Frames of a recording that wait for their turn.
    pub pending: Pending,
}

/// All that the loop owns.
pub struct Trigger {
    pub inputs: Vec<Input>,
    pub receiver: Receiver,
    pub pipeline: Pipeline<Frame, Decision>,
    pub stats: Arc<L0Stats>,
    pub outlet: Outlet,
    /// Frames to take from a queue at a time.
    pub burst: usize,
    /// All inputs are recordings: order and deadlines follow capture time.
    pub recorded: bool,
    /// Stop after so many events.
    pub max_events: Option<u64>,
    pub stop: StopFlag,
    pub clock: RunClock,
    /// What the loop does while nothing comes.
    pub idle: Idle,
}

/// Why the loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was told to.
    Stopped,
    /// All inputs came to their end.
    Exhausted,
    /// It has built as many events as were asked for.
    Enough,
}

/// What the loop gives back.
pub struct Finished {
    pub inputs: Vec<Input>,
    pub outlet: Outlet,
    pub end: End,
}

impl Trigger {
    /// Polls until there is a reason to end, then brings all that is under way to its end.
    pub fn run(mut self) -> Finished {
        let start = self.clock.now();
        let end = self.work(start, &mut Batch::with_capacity(MAX_BURST));
        self.pipeline.finish(&mut self.outlet);
        self.outlet.flush();
        self.receiver.finish(&mut self.outlet.cache);
        let Outlet { sides, cache, .. } = &mut self.outlet;
        let clock = &self.clock;
        groups::leave(sides, cache, || clock.to_ns(clock.now().since(start)));
        // What a recording had read ahead goes with its queue, uncounted by the pipeline.
        for input in &mut self.inputs {
            input.pending.abort(&mut self.receiver.tally);
        }
        Finished {
            inputs: self.inputs,
            outlet: self.outlet,
            end,
        }
    }

    /// The loop itself, whose time begins at `start`: nothing but work. `frames` holds a burst.
    fn work(&mut self, start: Tsc, frames: &mut Batch<Frame>) -> End {
        let chores = self.clock.to_cycles(CHORES);
        let mut next_chores = start;
        loop {
            if self.stop.is_set() {
                return End::Stopped;
            }
            let now = self.outlet.jitter.tick();
            let busy = if self.recorded {
                self.replay(frames)
            } else {
                self.poll(now, self.moment(start, now), frames)
            };
            if busy {
                let queues = self.inputs.iter_mut().map(|input| &mut input.rx);
                self.idle.worked(queues);
            } else {
                if self.inputs.iter().all(|input| input.rx.state().is_final()) {
                    return End::Exhausted;
                }
                let queues = self.inputs.iter_mut().map(|input| &mut input.rx);
                if self.idle.rest(&self.clock, queues) {
                    self.outlet.jitter.skip();
                }
            }
            // Not by decisions: how many are still with workers differs from run to run.
            let built = self.stats.events.built.get();
            if self.max_events.is_some_and(|max| built >= max) {
                return End::Enough;
            }
            if now >= next_chores {
                next_chores = Tsc(now.0 + chores);
                self.chores(self.moment(start, now));
            }
        }
    }

    fn moment(&self, start: Tsc, now: Tsc) -> Moment {
        Moment(self.clock.to_ns(now.since(start)).0)
    }

    /// One round over live queues, which began at `time`; whether there was anything to do.
    #[inline]
    fn poll(&mut self, time: Tsc, now: Moment, frames: &mut Batch<Frame>) -> bool {
        let mut busy = false;
        for input in &mut self.inputs {
            let mut burst = Burst::<MAX_BURST>::new();
            let outlet = &mut self.outlet;
            let (rx, most) = (&mut input.rx, self.burst);
            if rx.rx_at(time, &mut outlet.cache, &mut burst, most) == 0 {
                continue;
            }
            busy = true;
            burst.iter().for_each(Mbuf::expect_read);
            burst.take_all(|mbuf| {
                let (sides, cache) = (&mut outlet.sides, &mut outlet.cache);
                let taken = self.receiver.take(mbuf, now, input.place, sides, cache);
                if let Some(frame) = taken {
                    // It fits: a batch holds a burst.
                    let _ = frames.push(frame);
                }
            });
            Self::advance(&mut self.pipeline, &mut self.receiver, outlet, frames);
        }
        self.pipeline.tick(now, &mut self.outlet);
        self.outlet.flush();
        let Outlet { sides, cache, .. } = &mut self.outlet;
        for side in sides {
            side.report_groups(Ns(now.0), cache);
        }
        busy
    }

    /// One round over recordings: the next frames in the order of capture. Answers leave in full
    /// packets, the same however fast frames are read, unless there is nothing to be read yet.
    fn replay(&mut self, frames: &mut Batch<Frame>) -> bool {
        let mut read = false;
        while !frames.is_full() {
            for input in &mut self.inputs {
                if input.pending.is_empty() && !input.rx.state().is_final() {
                    let outlet = &mut self.outlet;
                    // Every queue must be able to show its next frame: when buffers are few, none
                    // reads further ahead.
                    let pool = outlet.cache.pool();
                    let scarce = !pool.has(pool.buffers() / 2);
                    let ahead = if scarce { 1 } else { self.burst };
                    let mut burst = Burst::<MAX_BURST>::new();
                    read |= input.rx.rx_up_to(&mut outlet.cache, &mut burst, ahead) > 0;
                    burst.take_all(|mbuf| {
                        let at = Moment(mbuf.wire_time().unwrap_or_default().0);
                        let (sides, cache) = (&mut outlet.sides, &mut outlet.cache);
                        let taken = self.receiver.take(mbuf, at, input.place, sides, cache);
                        if let Some(frame) = taken {
                            input.pending.push(frame);
                        }
                    });
                }
                if input.pending.is_empty() && !input.rx.state().is_final() {
                    // It paces itself, or waits for buffers, or had only frames that are none of
                    // ours: its next frame may be the earliest.
                    let busy = !frames.is_empty();
                    Self::advance(
                        &mut self.pipeline,
                        &mut self.receiver,
                        &mut self.outlet,
                        frames,
                    );
                    // Nor does an answer wait for what is to come, nor what workers have done. No
                    // time goes by in a recording but that of its frames.
                    if !read {
                        self.pipeline.tick(Moment(0), &mut self.outlet);
                        self.outlet.flush();
                    }
                    return busy || read;
                }
            }
            let Some(frame) = replay::earliest(&mut self.inputs) else {
                break;
            };
            // It fits: the batch is not full.
            let _ = frames.push(frame);
        }
        let busy = !frames.is_empty();
        Self::advance(
            &mut self.pipeline,
            &mut self.receiver,
            &mut self.outlet,
            frames,
        );
        busy || read
    }

    /// Takes frames through the pipeline, and their buffers back.
    #[inline]
    fn advance(
        pipeline: &mut Pipeline<Frame, Decision>,
        receiver: &mut Receiver,
        outlet: &mut Outlet,
        frames: &mut Batch<Frame>,
    ) {
        if let Some(peer) = &mut receiver.peer
            && let Some((template, place)) = peer.news(&outlet.sides)
        {
            outlet.answer.set_peer(template);
            outlet.answer_by = place;
        }
        if frames.is_empty() {
            return;
        }
        pipeline.process(frames, outlet);
        for frame in frames.drain() {
            outlet.cache.free(frame.mbuf);
        }
    }

    #[cold]
    fn chores(&mut self, now: Moment) {
        for input in self.inputs.iter_mut().filter(|input| input.kernel_backed) {
            input.rx.sync_counters();
        }
        let Outlet { sides, cache, .. } = &mut self.outlet;
        for side in &mut *sides {
            side.retry(cache);
        }
        self.receiver.ask_for_peer(sides, cache);
        // No time goes by in a recording but that of its frames.
        if !self.recorded {
            self.receiver.expire(now, cache);
        }
    }
}

#[cfg(test)]
mod standstill;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::Cli;
    use crate::outputs::Naming;
    use crate::plan::Plan;
    use crate::setup::Setup;
    use clap::Parser;
    use pollux_mempool::{BurstMut, PoolCache};
    use pollux_pmd::driver::{Capabilities, Description, Driver, Queues, RxDriver, TxDriver};
    use pollux_pmd::ledger::Sent;
    use pollux_pmd::{PortConfig, PortError, Registry, TscClock};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A port of the kernel's on which nothing comes. Counts how often it is told to send nothing.
    #[derive(Clone, Default)]
    struct Slow(Arc<AtomicU64>);

    impl Driver for Slow {
        fn capabilities(&self) -> Capabilities {
            let null = Registry::builtin().open("null").unwrap();
            Capabilities {
                kernel_backed: true,
                ..null.capabilities()
            }
        }

        fn start(&mut self, _: &PortConfig, _: u16) -> Result<Queues, PortError> {
            Ok(Queues {
                rx: vec![Box::new(self.clone())],
                tx: vec![Box::new(self.clone())],
            })
        }
    }

    impl RxDriver for Slow {
        fn rx(
            &mut self,
            _: &mut PoolCache,
            _: &mut BurstMut<'_>,
            _: &mut pollux_pmd::driver::Origin,
            _: &mut pollux_pmd::Tally,
        ) -> usize {
            0
        }
    }

    impl TxDriver for Slow {
        fn tx(&mut self, _: &mut PoolCache, burst: &mut BurstMut<'_>, _: &mut Sent) -> usize {
            assert!(burst.is_empty());
            self.0.fetch_add(1, Ordering::Relaxed);
            0
        }
    }

    /// What the kernel had no room for at first goes out, though nothing else is sent.
    #[test]
    fn chores_try_again_to_send() {
        let (mut registry, slow) = (Registry::builtin(), Slow::default());
        let tries = Arc::clone(&slow.0);
        registry.register(Description::new("slow", "nothing comes"), move |_| {
            Ok(Box::new(slow.clone()))
        });
        let cli = Cli::parse_from(["l0-trigger", "--port", "slow", "--port", "slow"]);
        let plan = Plan::new(&cli, &registry).unwrap();
        let outputs = Naming::of(&cli).unwrap().name(None).unwrap();
        let clock = RunClock::Tsc(TscClock::get());
        let setup = Setup::new(&cli, &plan, &outputs, &registry, clock, &StopFlag::new());
        let mut trigger = setup.unwrap().trigger;
        trigger.chores(Moment(0));
        assert_eq!(tries.load(Ordering::Relaxed), 2, "each port once");
    }

    /// The loop of the demonstration, from its first round to its last: it neither allocates, nor
    /// frees, nor enters the kernel. Over ports with the kernel below, and in a replay, which waits
    /// for its recorder, it does enter the kernel.
    #[test]
    fn the_loop_does_nothing_but_work() {
        assert_quiet("0");
    }

    /// Nor does it for the workers, who go on until they are told to end.
    #[test]
    fn the_loop_does_nothing_but_work_with_a_worker() {
        assert_quiet("1");
    }

    /// Has the workers end, whatever comes before.
    struct Ends(Vec<StopFlag>);

    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.iter().for_each(StopFlag::stop);
        }
    }

    fn assert_quiet(workers: &str) {
        const EVENTS: u64 = 20_000;
        let directory = tempfile::tempdir().unwrap();
        let records = directory.path().join("records");
        let events = EVENTS.to_string();
        let arguments = [
            "l0-trigger",
            "--workers",
            workers,
            "--http",
            "127.0.0.1:0",
            "--events",
            &events,
            "--events-out",
        ];
        let arguments = arguments
            .iter()
            .map(AsRef::as_ref)
            .chain([records.as_os_str()]);
        let (cli, registry) = (Cli::parse_from(arguments), Registry::builtin());
        let mut plan = Plan::new(&cli, &registry).unwrap();
        let outputs = Naming::of(&cli).unwrap().name(None).unwrap();
        // As on CPUs of their own, however few there are: a loop that shares one gives way.
        plan.trigger_cpu = plan.trigger_cpu.or(Some(0));
        let stop = StopFlag::new();
        let clock = RunClock::Tsc(TscClock::get());
        let Setup {
            mut trigger,
            workers,
            boards,
            ports,
            collector,
            ..
        } = Setup::new(&cli, &plan, &outputs, &registry, clock, &stop).unwrap();
        let (mut boards, halt) = (boards.unwrap(), trigger.stop.clone());

        let (trigger, noise) = std::thread::scope(|scope| {
            // On a thread that nobody listens to: what the boards do is theirs.
            scope.spawn(move || {
                assert!(boards.run().complete);
                halt.stop();
            });
            let _ends = Ends(workers.iter().map(|worker| worker.stop.clone()).collect());
            for mut worker in workers {
                scope.spawn(move || worker.run());
            }
            pollux_quiet::listen(move |ear| {
                let mut frames = Batch::with_capacity(MAX_BURST);
                let start = trigger.clock.now();
                let end = ear.during(|| {
                    let end = trigger.work(start, &mut frames);
                    trigger.pipeline.finish(&mut trigger.outlet);
                    end
                });
                assert_eq!(end, End::Stopped);
                trigger
            })
        });
        noise.assert_none();
        assert_eq!(trigger.outlet.decisions, EVENTS);
        assert!(trigger.outlet.taps.len() == 2 && !trigger.outlet.answer.is_unresolved());
        assert!(collector.unwrap().collect(), "no event for the page");
        drop(ports);
    }
}
