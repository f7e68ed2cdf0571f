//! The receive loops of `--rx-loops`: they poll the queues for the trigger's loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use pollux_mempool::Mempool;
use pollux_mempool::time::{Ns, Tsc};
use pollux_pmd::endpoint::{Lane, ReceiveCounts, ReceiveLoop};
use pollux_pmd::lcore::idle::Idle;
use pollux_pmd::lcore::{self, JitterMeter, Lcore, StopFlag};
use pollux_pmd::{Clock, LatencyView, Ledger, RxQueue, TallyView};

use crate::cli::Cli;
use crate::clock::RunClock;
use crate::input::{Input, Source};
use crate::plan::Plan;
use crate::poll_loop::{self, MAX_BURST, ReceiveLoops, SLEEP};

/// Free buffers that a receive loop keeps for itself.
const CACHE: usize = 128;

/// How often counters outside the process are read, and incomplete datagrams expire.
const CHORES: Ns = Ns(100_000_000);

/// How long a loop that has to end is waited for.
const END: Duration = Duration::from_secs(5);

/// A receive loop before its launch.
pub struct Runner {
    receive: ReceiveLoop,
    idle: Idle,
    clock: RunClock,
    jitter: JitterMeter<RunClock>,
    stop: StopFlag,
    recorded: bool,
    /// It shares its CPU with other loops.
    gives_way: bool,
}

/// What a receive loop counts.
pub struct ReceiveView {
    /// As in the list of cores.
    pub name: String,
    pub counts: Arc<ReceiveCounts>,
    /// Frames that it dropped.
    pub tally: TallyView,
    /// For how long at a time it was kept from polling, its own work included.
    pub gaps: LatencyView,
}

impl ReceiveView {
    /// Frames that it dropped, for whatever cause.
    pub fn dropped(&self) -> u64 {
        self.tally.balance().dropped_total()
    }
}

/// Name of receive loop `n`.
pub fn name(n: usize) -> String {
    format!("receiver {n}")
}

/// The receive loops of the plan, and what the trigger's loop has to know of them. The queues of the
/// inputs go to them in turn; the inputs have lanes then.
pub fn of(
    cli: &Cli,
    plan: &Plan,
    inputs: &mut Vec<Input>,
    pool: &Mempool,
    (recorded, clock): (bool, &RunClock),
    ledger: &mut Ledger,
) -> Result<(Vec<Runner>, Option<ReceiveLoops>)> {
    if plan.receive_cpus.is_empty() {
        return Ok((Vec::new(), None));
    }
    let loops = ReceiveLoops {
        stop: StopFlag::new(),
        gives_way: plan.shares_cpus(),
    };
    let run = (recorded, clock, &loops.stop);
    let runners = share_out(cli, plan, inputs, pool, run, ledger)?;
    Ok((runners, Some(loops)))
}

fn share_out(
    cli: &Cli,
    plan: &Plan,
    inputs: &mut Vec<Input>,
    pool: &Mempool,
    (recorded, clock, stop): (bool, &RunClock, &StopFlag),
    ledger: &mut Ledger,
) -> Result<Vec<Runner>> {
    let (loops, queues) = (plan.receive_cpus.len(), inputs.len());
    ensure!(
        queues >= loops,
        "--rx-loops {loops}: the ports have {queues} receive queues, and each loop needs one: fewer \
         loops, --queues, or rps=N in the spec of a port whose device has one queue"
    );
    // What lies in lanes and caches leaves half of the buffers to the rings and the rest.
    let held = poll_loop::CACHE + loops * CACHE + queues * (Lane::FRAMES + MAX_BURST);
    let least = 2 * held;
    ensure!(
        pool.buffers() >= least,
        "--rx-loops {loops}: memory.buffers = {}: {queues} receive queues need at least {least}",
        pool.buffers()
    );
    let ports = plan.ports.len();
    let mut receive = Vec::new();
    for n in 0..loops {
        // The tables of all loops share the bounds.
        let classifier = plan.classifier(ports, ports * loops)?;
        let receiving = ReceiveLoop::new(
            classifier,
            pool.cache(CACHE)?,
            usize::from(cli.burst),
            recorded,
        );
        ledger.add(name(n), receiving.view());
        receive.push(receiving);
    }
    let lanes = inputs.drain(..).enumerate().map(|(n, input)| {
        let Source::Queue(rx) = input.source else {
            return Ok(input);
        };
        let lane = receive[n % loops].add(rx, input.place)?;
        Ok(Input {
            source: Source::Lane(Box::new(lane)),
            ..input
        })
    });
    let lanes = lanes.collect::<Result<_>>()?;
    *inputs = lanes;
    let runner = |mut receive: ReceiveLoop| {
        let queues = receive.queues().map(|rx| &*rx);
        Ok(Runner {
            idle: Idle::new(cli.idle, SLEEP, queues).context("--idle")?,
            receive,
            clock: clock.clone(),
            jitter: JitterMeter::new(clock.clone()),
            stop: stop.clone(),
            recorded,
            gives_way: plan.shares_cpus(),
        })
    };
    receive.into_iter().map(runner).collect()
}

impl Runner {
    /// Views on its counters.
    pub fn view(&self, n: usize) -> ReceiveView {
        ReceiveView {
            name: name(n),
            counts: self.receive.counts(),
            tally: self.receive.view(),
            gaps: self.jitter.gaps(),
        }
    }

    /// Receives until it has to end or all its queues have; returns the queues.
    pub fn run(mut self) -> Vec<RxQueue> {
        let start = self.clock.now();
        self.work(start);
        self.receive.finish()
    }

    /// The loop itself: nothing but work, unless it shares its CPU.
    pub fn work(&mut self, start: Tsc) {
        let chores = self.clock.to_cycles(CHORES);
        let mut next_chores = start;
        while !self.stop.is_set() && !self.receive.has_ended() {
            let now = self.jitter.tick();
            let moment = self.clock.to_ns(now.since(start));
            if self.receive.poll(now, moment) {
                self.idle.worked(self.receive.queues());
            } else {
                if self.gives_way {
                    std::thread::yield_now();
                }
                if self.idle.rest(&self.clock, self.receive.queues()) {
                    self.jitter.skip();
                }
            }
            if now >= next_chores {
                next_chores = Tsc(now.0 + chores);
                self.chores(moment);
            }
        }
    }

    #[cold]
    fn chores(&mut self, now: Ns) {
        // Losses that a device or the kernel counts.
        self.receive.queues().for_each(RxQueue::sync_counters);
        // No time goes by in a recording but that of its frames.
        if !self.recorded {
            self.receive.expire(now);
        }
    }
}

/// The threads of the receive loops. They end when this is dropped.
pub struct ReceivePool {
    loops: Vec<Lcore<Vec<RxQueue>>>,
    /// Of each loop: it has returned.
    returned: Vec<Arc<AtomicBool>>,
    stop: StopFlag,
}

impl ReceivePool {
    pub fn launch(runners: Vec<Runner>, plan: &Plan) -> Result<Self> {
        let stop = runners.first().map(|runner| runner.stop.clone());
        let mut pool = Self {
            loops: Vec::new(),
            returned: Vec::new(),
            stop: stop.unwrap_or_default(),
        };
        for (n, (runner, &cpu)) in runners.into_iter().zip(&plan.receive_cpus).enumerate() {
            let returned = Arc::<AtomicBool>::default();
            pool.returned.push(Arc::clone(&returned));
            let body = move || {
                let queues = runner.run();
                // Release: a thread that is seen to have ended shows it.
                returned.store(true, Ordering::Release);
                queues
            };
            pool.loops.push(lcore::launch(&name(n), cpu, body)?);
        }
        Ok(pool)
    }

    /// Whether a loop has panicked: the run must not go on without its queues.
    pub fn has_lost_one(&self) -> bool {
        let mut loops = self.loops.iter().zip(&self.returned);
        loops.any(|(thread, returned)| thread.is_finished() && !returned.load(Ordering::Acquire))
    }

    /// Ends the loops; the queues of those that have ended.
    ///
    /// # Errors
    /// A loop that panicked, or that does not end: it is left behind with its queues.
    pub fn join(mut self) -> (Vec<RxQueue>, Result<()>) {
        self.stop.stop();
        let from = Instant::now();
        let (mut queues, mut result) = (Vec::new(), Ok(()));
        for (n, thread) in self.loops.drain(..).enumerate() {
            while !thread.is_finished() && from.elapsed() < pollux_app::patience(END) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let ended = if thread.is_finished() {
                thread
                    .join()
                    .map(|own| queues.extend(own))
                    .map_err(Into::into)
            } else {
                let (name, seconds) = (name(n), END.as_secs());
                Err(anyhow!(
                    "{name} did not end within {seconds} s of being told to (or less, by a second \
                     signal), so it is stuck in the driver of a port"
                ))
            };
            result = result.and(ended);
        }
        (queues, result)
    }
}

impl Drop for ReceivePool {
    fn drop(&mut self) {
        self.stop.stop();
    }
}
