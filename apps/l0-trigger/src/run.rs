//! A run: open, launch, keep house, stop in order, report.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use pollux_emulator::link::PortLink;
use pollux_emulator::rings::RingCheck;
use pollux_emulator::run::{EmulatorLoop, EmulatorReport};
use pollux_emulator::truth::Truth;
use pollux_mempool::{Mempool, PoolConfig};
use pollux_pipelines::l0::L0Stats;
use pollux_pipelines::stages::Answer;
use pollux_pmd::event::{EventConsumer, EventQueue, RegionOptions};
use pollux_pmd::lcore::{self, JitterMeter, Lcore, StopFlag};
use pollux_pmd::net::{MacAddr, ParseOptions, Responder};
use pollux_pmd::port::{Port, PortConfig, Started, StartedPort};
use pollux_pmd::{Count, Ledger, Registry, RxQueue, Tally, TscClock, TxQueue};

use crate::cli::Cli;
use crate::outlet::{Outlet, Tap};
use crate::plan::Plan;
use crate::receiver::{PeerFinder, Receiver};
use crate::recorder::Recorder;
use crate::replay::Pending;
use crate::report::{CoreReport, Report};
use crate::summary;
use crate::trigger::{End, Finished, Input, Trigger};

/// Free buffers that a loop keeps for itself.
const CACHE: usize = 512;

/// Records between the trigger loop and whoever takes them: more than half a second's at 100 kHz.
const TAP_RECORDS: usize = 1 << 16;

/// How often housekeeping looks after its queues.
const ROUND: Duration = Duration::from_millis(20);

/// The queues of a started port that have not been given to a loop yet.
struct Queues {
    rx: Vec<RxQueue>,
    tx: Vec<TxQueue>,
}

/// A run's ports and what the loops gave back, for [`summary`].
pub struct Ended {
    pub finished: Finished,
    pub emulator: Option<EmulatorReport>,
    pub ports: Vec<summary::PortViews>,
    pub ledger: Ledger,
    pub stats: Arc<L0Stats>,
    pub streams: pollux_pmd::stream::StreamView,
    pub checked: Option<RingCheck>,
    pub lost_records: u64,
    pub written: u64,
    pub duration: Duration,
    pub cores: Vec<CoreReport>,
}

type EmulatorThread = Lcore<(EmulatorReport, PortLink)>;

/// Runs the plan until its end, or until `stop` is set.
///
/// What goes wrong at the end (a file that could not be completed) comes beside the report.
pub fn run(cli: &Cli, plan: &Plan, registry: &Registry, stop: &StopFlag) -> Result<(Report, Result<()>)> {
    let clock = TscClock::get();
    let cores = cores(plan);
    let pool = Mempool::new(PoolConfig {
        buffers: plan.config.memory.buffers,
        data_room: plan.config.memory.data_room,
        ..PoolConfig::default()
    })?;
    let queues = if plan.emulator.is_some() { 2 } else { cli.queues };
    let mut ports = Vec::new();
    let mut idle = Vec::new();
    let mut capabilities = Vec::new();
    for spec in &plan.ports {
        let port = registry.open(spec)?;
        let offered = port.capabilities();
        let config = PortConfig {
            rx_queues: queues,
            tx_queues: if plan.emulator.is_some() { 2 } else { offered.max_tx_queues.min(1) },
            ring: plan.config.memory.ring,
            pool: pool.clone(),
        };
        let StartedPort { port, rx, tx } = port.configure(config)?.start()?;
        ports.push(port);
        idle.push(Queues { rx, tx });
        capabilities.push(offered);
    }
    let views: Vec<_> = ports.iter().zip(&idle).map(|(port, q)| summary::PortViews::new(port.spec(), &q.rx, &q.tx)).collect();
    let recorded = capabilities.iter().all(|offered| offered.recorded);

    let (pipeline, env) = plan.pipeline()?;
    let mut ledger = env.ledger;
    let mut taps = Taps::default();
    let recorder = match &cli.events_out {
        Some(path) => Some(Recorder::create(path, taps.add()?)?),
        None => None,
    };
    let check = match &plan.truth {
        Some(truth) => Some(RingCheck::new(taps.add()?, Truth::of(truth)?)),
        None => None,
    };

    // In the demonstration queue 0 carries the boards' frames, and queue 1 the answers.
    let mut emulator = None;
    let answer_queue = match (&plan.emulator, idle.first_mut()) {
        (Some(config), Some(Queues { rx, tx })) if rx.len() == 2 && tx.len() == 2 => {
            let link = PortLink::new(config, tx.remove(0), rx.pop(), pool.cache(CACHE)?, false)?;
            let boards = EmulatorLoop::new(config, link, clock, stop.clone())?;
            emulator = Some(boards.with_records(taps.add()?));
            tx.pop()
        }
        _ => idle.iter_mut().find_map(|queues| queues.tx.pop()),
    };

    let demux = plan.config.demux()?;
    let streams = demux.view();
    let tally = Tally::new();
    ledger.add("receive", tally.view());
    let answering = answer_queue.as_ref().map(TxQueue::port);
    let mac = ports.iter().zip(&capabilities).find(|(port, _)| Some(port.id()) == answering);
    let mac = mac.and_then(|(_, offered)| offered.mac);
    let ip = plan.config.trigger.ip;
    let peer = match (&plan.config.answer, &answer_queue) {
        (Some(to), Some(_)) => {
            Some(PeerFinder::new(to, mac.unwrap_or(MacAddr::ZERO), ip, to.station()?))
        }
        _ => None,
    };
    let answer = Answer::new(plan.config.trigger.source_id, plan.config.budget(), peer.is_some());
    let checksums = plan.config.trigger.checksums;
    let receiver = Receiver {
        options: ParseOptions { ip_checksum: checksums, udp_checksum: checksums, local: None },
        demux,
        tally,
        responder: mac.map(|mac| Responder::new(mac, ip)),
        peer,
    };

    let mut inputs = Vec::new();
    for (place, (queues, offered)) in idle.iter_mut().zip(&capabilities).enumerate() {
        for rx in queues.rx.drain(..) {
            ledger.add(format!("{} queue {}", plan.ports[place], rx.queue()), rx.tally());
            let (kernel_backed, pending) = (offered.kernel_backed, Pending::default());
            inputs.push(Input { rx, place, kernel_backed, pending });
        }
    }

    // The boards stop first, so that the trigger decides what they have sent; without boards, the
    // trigger stops when the run is to.
    let halt = if emulator.is_some() { StopFlag::new() } else { stop.clone() };
    let lost_records = Arc::clone(&taps.lost);
    let trigger = Trigger {
        inputs,
        receiver,
        pipeline,
        outlet: Outlet {
            answer,
            tx: answer_queue,
            cache: pool.cache(CACHE)?,
            taps: taps.taps,
            patient: recorded,
            stop: halt.clone(),
            jitter: JitterMeter::new(clock),
            decisions: 0,
        },
        burst: usize::from(cli.burst),
        recorded,
        // In the demonstration the emulator counts: all its events are waited for.
        max_events: cli.events.filter(|_| emulator.is_none()),
        stop: halt.clone(),
        clock,
    };

    let started = Instant::now();
    let trigger = lcore::launch("trigger", plan.trigger_cpu, move || trigger.run())?;
    let emulator: Option<EmulatorThread> = match emulator {
        Some(mut boards) => {
            Some(lcore::launch("emulator", plan.emulator_cpu, move || (boards.run(), boards.into_link()))?)
        }
        None => None,
    };

    // After the launches: a new thread inherits where its parent may run.
    lcore::keep_off(plan.trigger_cpu.as_slice());
    let mut house = House { recorder, check, stats: Arc::clone(&env.stats), quiet: cli.quiet };
    house.keep(&trigger, emulator.as_ref(), stop, &halt, cli.duration.map(Duration::from_secs_f64));
    let finished = trigger.join();
    stop.stop();
    let boards = emulator.map(Lcore::join).transpose();
    let duration = started.elapsed();
    let (mut finished, boards) = (finished?, boards?);
    house.drain();

    let mut rx: Vec<_> = finished.inputs.drain(..).map(|input| input.rx).collect();
    let mut tx: Vec<_> = finished.outlet.tx.take().into_iter().collect();
    tx.extend(idle.into_iter().flat_map(|queues| queues.tx));
    let emulator = boards.map(|(report, link)| {
        let (link_tx, link_rx) = link.into_queues();
        tx.push(link_tx);
        rx.extend(link_rx);
        report
    });
    let stopped = stop_ports(ports, rx, tx);
    let written = house.recorder.map_or(Ok(0), Recorder::finish);
    let (written, end) = match (written, stopped) {
        (Ok(n), stopped) => (n, stopped),
        (Err(error), _) => (0, Err(error)),
    };
    let ended = Ended {
        finished,
        emulator,
        ports: views,
        ledger,
        stats: env.stats,
        streams,
        checked: house.check,
        lost_records: lost_records.get(),
        written,
        duration,
        cores,
    };
    Ok((summary::report(plan, ended), end))
}

/// The loops, their CPUs, and whether those are isolated; logs the remedy where not.
fn cores(plan: &Plan) -> Vec<CoreReport> {
    let mut cores = vec![("trigger", plan.trigger_cpu)];
    if plan.emulator.is_some() {
        cores.push(("emulator", plan.emulator_cpu));
    }
    let check = |(role, cpu): (&'static str, Option<usize>)| CoreReport {
        role,
        cpu,
        isolated: cpu.is_some_and(|cpu| lcore::check_isolation(role, cpu)),
    };
    cores.into_iter().map(check).collect()
}

/// The taps of the trigger loop under construction.
#[derive(Default)]
struct Taps {
    taps: Vec<Tap>,
    lost: Arc<Count>,
}

impl Taps {
    fn add(&mut self) -> Result<EventConsumer> {
        let queue = EventQueue::new(TAP_RECORDS, &RegionOptions::default())?;
        let (producer, consumer) = queue.split();
        // One loop writes this counter, whichever tap was full.
        self.taps.push(Tap { producer, lost: Arc::clone(&self.lost) });
        Ok(consumer)
    }
}

/// What the main thread does while the loops run.
struct House {
    recorder: Option<Recorder>,
    check: Option<RingCheck>,
    stats: Arc<L0Stats>,
    quiet: bool,
}

impl House {
    fn drain(&mut self) -> bool {
        let recorded = self.recorder.as_mut().is_some_and(Recorder::drain);
        let checked = self.check.as_mut().is_some_and(|check| check.poll(TAP_RECORDS) > 0);
        recorded || checked
    }

    fn keep(
        &mut self,
        trigger: &Lcore<Finished>,
        emulator: Option<&EmulatorThread>,
        stop: &StopFlag,
        halt: &StopFlag,
        limit: Option<Duration>,
    ) {
        let start = Instant::now();
        let mut shown = (start, 0);
        while !trigger.is_finished() {
            let busy = self.drain();
            if limit.is_some_and(|limit| start.elapsed() >= limit) {
                stop.stop();
            }
            if emulator.is_some_and(Lcore::is_finished) {
                halt.stop();
            }
            if !self.quiet && shown.0.elapsed() >= Duration::from_secs(1) {
                let built = self.stats.events.built.get();
                let rate = (built - shown.1) as f64 / shown.0.elapsed().as_secs_f64();
                let seconds = start.elapsed().as_secs();
                eprintln!("{seconds:>5} s {built:>12} events {rate:>10.0}/s");
                shown = (Instant::now(), built);
            }
            if !busy {
                let left = limit.map_or(ROUND, |limit| limit.saturating_sub(start.elapsed()));
                std::thread::sleep(ROUND.min(left));
            }
        }
    }
}

/// Gives every port its queues back.
fn stop_ports(ports: Vec<Port<Started>>, mut rx: Vec<RxQueue>, mut tx: Vec<TxQueue>) -> Result<()> {
    let mut result = Ok(());
    for port in ports {
        let id = port.id();
        let mine = rx.extract_if(.., |queue| queue.port() == id).collect();
        let sends = tx.extract_if(.., |queue| queue.port() == id).collect();
        if let Err(error) = port.stop(mine, sends) {
            result = Err(error).context("the run ended, but not cleanly");
        }
    }
    result
}

/// Why a run ended, for its report.
pub fn end(finished: &Finished, emulator: Option<&EmulatorReport>) -> &'static str {
    match finished.end {
        End::Stopped if emulator.is_some_and(|boards| boards.complete) => "complete",
        End::Stopped => "stopped",
        End::Exhausted => "exhausted",
        End::Enough => "enough",
    }
}
