//! From a plan to loops that can be launched: ports, queues, pipeline, taps.

use std::iter;
use std::net::SocketAddrV4;
use std::sync::Arc;

use anyhow::{Context, Result};
use pollux_emulator::config::EmulatorConfig;
use pollux_emulator::link::PortLink;
use pollux_emulator::rings::RingCheck;
use pollux_emulator::run::EmulatorLoop;
use pollux_emulator::truth::Truth;
use pollux_mempool::Mempool;
use pollux_na62::formats::mtp::MAX_PRIMITIVES;
use pollux_na62::stages::{Answer, RuleBook, RuleExchange};
use pollux_na62::{EVENT_CACHE, L0Env};
use pollux_pipelines::StageEnv;
use pollux_pipelines::spread::Worker;
use pollux_pmd::event::{EventConsumer, EventQueue, RegionOptions};
use pollux_pmd::lcore::idle::Idle;
use pollux_pmd::lcore::{JitterMeter, StopFlag};
use pollux_pmd::net::igmp::group_stations;
use pollux_pmd::net::{MacAddr, ParseOptions, Reassembler, Responder};
use pollux_pmd::port::{Configured, Port, PortConfig, Probed, Started, StartedPort};
use pollux_pmd::{Capabilities, Ledger, Registry, RxQueue, Tally, TxQueue};
use pollux_program::metrics::Books;
use pollux_program::ports::{self, PortView};

use crate::cli::Cli;
use crate::clock::RunClock;
use crate::config::TriggerConfig;
use crate::counters::Counters;
use crate::display::{self, Collector};
use crate::files::{Files, Written};
use crate::groups;
use crate::keeper;
use crate::outlet::{Outlet, Tap};
use crate::outputs::Outputs;
use crate::plan::{GivenTruth, Plan};
use crate::receiver::{PeerFinder, Receiver};
use crate::replay::Pending;
use crate::scribe::FileCounts;
use crate::side::PortSide;
use crate::trigger::{Input, SLEEP, Trigger};
use crate::worker::WorkerLoop;

/// Free buffers that a loop keeps for itself.
const CACHE: usize = 512;

/// Records between the trigger loop and whoever takes them: more than half a second's at 100 kHz.
pub const TAP_RECORDS: usize = 1 << 16;

/// Queues that belong to no loop, before or after the run.
#[derive(Default)]
pub struct Queues {
    pub rx: Vec<RxQueue>,
    pub tx: Vec<TxQueue>,
}

/// Started ports, and loops that are ready to poll them.
pub struct Setup {
    pub ports: Vec<Port<Started>>,
    pub trigger: Trigger,
    /// The loops that take work off the trigger's.
    pub workers: Vec<WorkerLoop>,
    /// The emulated boards of the demonstration.
    pub boards: Option<EmulatorLoop<PortLink, RunClock>>,
    pub check: Option<RingCheck>,
    pub counters: Arc<Counters>,
    /// Of the page, if there is one.
    pub collector: Option<Collector>,
    /// For other rules while the run goes on.
    pub rules: Option<RuleExchange>,
    /// What is recorded.
    pub files: Written,
}

/// A started port before its queues are given out.
struct Opened {
    port: Port<Started>,
    offered: Capabilities,
    queues: Queues,
}

impl Setup {
    /// Opens and starts everything that the plan names. `clock` is the one that its ports stamp
    /// frames by; `outputs` are the files; `stop` is what ends the run.
    pub fn new(
        cli: &Cli,
        plan: &Plan,
        outputs: &Outputs,
        registry: &Registry,
        clock: RunClock,
        stop: &StopFlag,
    ) -> Result<Self> {
        let pool = Mempool::new(plan.config.memory.pool()).context("[memory]")?;
        let mut opened = open(cli, plan, registry, &pool)?;
        let mut taps = Vec::new();
        // First, so that what is left is the trigger's.
        let boards = match (&plan.emulator, &mut opened[..]) {
            (Some(config), [loopback]) => {
                let boards = boards(config, loopback, &pool, clock.clone(), stop)?;
                Some(boards.with_records(tap(&mut taps, false)?.0))
            }
            _ => None,
        };
        let view = |o: &Opened| PortView::of(&o.port, &o.queues.rx, &o.queues.tx);
        let views = opened.iter().map(view).collect();

        let recorded = opened.iter().all(|port| port.offered.recorded);
        let (pipeline, mut env) = plan.config.pipeline(kept(cli), plan.spreading(recorded))?;
        let L0Env { stats, events } = env.take()?;
        let rules = env.take::<RuleExchange>().ok();
        let StageEnv {
            mut ledger, crew, ..
        } = env;
        let events = events.context("[[stage]]: none of them builds events")?;
        let (ports, inputs, sides) = hand_out(opened, &plan.config, &mut ledger)?;
        let groups = groups::views(&ports, &sides);
        let receiver = receiver(plan, &sides)?;
        let streams = receiver.demux.view();
        ledger.add("receive", receiver.tally.view());

        // The boards stop first, so that the trigger decides what they have sent; without boards,
        // the trigger stops when the run is to.
        let halt = if boards.is_some() {
            StopFlag::new()
        } else {
            stop.clone()
        };
        let display = cli.http.map(|_| display::display(&clock)).transpose()?;
        let (sampler, collector) = display.unzip();
        let (files, keeper) = Files::new(outputs, &mut taps)?;
        let check = ring_check(plan, &mut taps)?;
        let outlet = Outlet {
            answer: answer(plan, clock.clone(), receiver.peer.is_some(), recorded),
            sides,
            answer_by: 0,
            cache: pool.cache(CACHE)?,
            events: events.cache(EVENT_CACHE)?,
            taps,
            sampler,
            keeper,
            waiting: Vec::with_capacity(MAX_PRIMITIVES),
            patient: recorded,
            stop: halt.clone(),
            jitter: JitterMeter::new(clock.clone()),
            decisions: 0,
        };
        let workers = workers(cli, plan, crew, &clock)?;
        let stages = pipeline.times().map(|(name, times)| (name.into(), times));
        let latency = stages.chain([("total".into(), outlet.answer.total())]);
        let counters = Arc::new(Counters {
            books: Books {
                ledger,
                ports: views,
            },
            stats,
            rules: rules
                .as_ref()
                .map_or_else(RuleBook::default, RuleExchange::book),
            streams,
            answers: outlet.answer.counts(),
            latency: latency.collect(),
            gaps: outlet.jitter.gaps(),
            workers: workers.iter().enumerate().map(|(n, w)| w.view(n)).collect(),
            files: files.counts(),
            groups,
        });
        let files = files.start(cli, plan, &counters)?;
        let queues = inputs.iter().map(|input: &Input| &input.rx);
        let idle = Idle::new(cli.idle, SLEEP, queues).context("--idle")?;
        let trigger = Trigger {
            idle,
            inputs,
            receiver,
            pipeline,
            stats: Arc::clone(&counters.stats),
            outlet,
            burst: usize::from(cli.burst),
            recorded,
            // In the demonstration the boards count: all their events are waited for.
            max_events: cli.events.filter(|_| boards.is_none()),
            stop: halt,
            clock,
        };
        Ok(Self {
            ports,
            trigger,
            workers,
            boards,
            check,
            counters,
            collector,
            rules,
            files,
        })
    }
}

/// Events that are on their way to those who look at them or record them, at most.
fn kept(cli: &Cli) -> usize {
    let shown = cli.http.map_or(0, |_| display::QUEUE);
    let recorded = cli.record.as_ref().map_or(0, |_| keeper::KEPT);
    // Those whose decisions share a packet wait for it.
    MAX_PRIMITIVES + shown + recorded
}

/// Opens and starts all ports. All are configured before any is started: one that is wrong leaves
/// no trace of the others.
fn open(cli: &Cli, plan: &Plan, registry: &Registry, pool: &Mempool) -> Result<Vec<Opened>> {
    let stations = match &plan.config.groups()[..] {
        [] => Vec::new(),
        groups => group_stations(groups),
    };
    let specs = plan.ports.iter();
    let open = |spec: &String| registry.open_for_groups(spec, &stations);
    let configured = specs.map(|spec| configure(cli, plan, open(spec)?, pool));
    let configured: Vec<_> = configured.collect::<Result<_>>()?;
    configured.into_iter().map(start).collect()
}

/// Has a port check what is asked of it; it starts nothing.
pub fn configure(
    cli: &Cli,
    plan: &Plan,
    port: Port<Probed>,
    pool: &Mempool,
) -> Result<Port<Configured>> {
    // In the demonstration queue 0 carries the boards' frames, and queue 1 the answers.
    let (rx_queues, tx_queues) = match plan.emulator {
        Some(_) => (2, 2),
        None => (
            ports::rx_queues(&port, cli.queues),
            port.capabilities().max_tx_queues.min(1),
        ),
    };
    Ok(port.configure(PortConfig {
        rx_queues,
        tx_queues,
        ring: plan.config.memory.ring,
        pool: pool.clone(),
        checksum_offload: false,
    })?)
}

fn start(port: Port<Configured>) -> Result<Opened> {
    let offered = port.capabilities();
    let StartedPort { port, rx, tx } = port.start()?;
    Ok(Opened {
        port,
        offered,
        queues: Queues { rx, tx },
    })
}

/// The boards of the demonstration. They take their queues; those of the trigger stay.
fn boards(
    config: &EmulatorConfig,
    loopback: &mut Opened,
    pool: &Mempool,
    clock: RunClock,
    stop: &StopFlag,
) -> Result<EmulatorLoop<PortLink, RunClock>> {
    let Queues { rx, tx } = &mut loopback.queues;
    let (answers_in, answers_out) = (rx.pop(), tx.pop());
    let frames_out = tx.pop().context("the loopback has too few queues")?;
    tx.extend(answers_out);
    let link = PortLink::new(config, frames_out, answers_in, pool.cache(CACHE)?, false)?;
    Ok(EmulatorLoop::new(config, link, clock, stop.clone())?)
}

/// The ports, the inputs of the trigger, and what it sends by.
type HandedOut = (Vec<Port<Started>>, Vec<Input>, Vec<PortSide>);

fn hand_out(opened: Vec<Opened>, config: &TriggerConfig, ledger: &mut Ledger) -> Result<HandedOut> {
    let (ip, groups) = (config.trigger.ip, config.groups());
    let (mut ports, mut inputs, mut sides) = (Vec::new(), Vec::new(), Vec::new());
    for (place, opened) in opened.into_iter().enumerate() {
        let Capabilities {
            mac,
            kernel_backed,
            recorded,
            ..
        } = opened.offered;
        let Queues { rx, mut tx } = opened.queues;
        for rx in rx {
            let name = format!("{} queue {}", opened.port.spec(), rx.queue());
            ledger.add(name, rx.tally());
            inputs.push(Input {
                rx,
                place,
                kernel_backed,
                pending: Pending::default(),
            });
        }
        // Each port was configured with one queue to send by, if it can send.
        let tx = tx.pop();
        let member = match mac {
            _ if groups.is_empty() || recorded => None,
            Some(mac) if tx.is_some() => Some(groups::host(mac, ip, &groups)?),
            _ => {
                let port = opened.port.spec();
                tracing::warn!(
                    "port {port} cannot join multicast groups, as it does not send: what comes \
                     there is what its network sends it unasked"
                );
                None
            }
        };
        sides.push(PortSide {
            tx,
            responder: mac.map(|mac| Responder::new(mac, ip)),
            groups: member,
            mac: mac.unwrap_or(MacAddr::ZERO),
            kernel_backed,
        });
        ports.push(opened.port);
    }
    Ok((ports, inputs, sides))
}

/// The receiver; answers leave by one of the sides.
fn receiver(plan: &Plan, sides: &[PortSide]) -> Result<Receiver> {
    let TriggerConfig {
        trigger, answer, ..
    } = &plan.config;
    let sender = sides.iter().position(|side| side.tx.is_some());
    let peer = match (answer.address(), sender) {
        (Some(to), Some(first)) => {
            let from = SocketAddrV4::new(trigger.ip, answer.from_port);
            Some(PeerFinder::new(to, from, answer.station()?, first))
        }
        _ => None,
    };
    let checksums = trigger.checksums;
    Ok(Receiver {
        options: ParseOptions {
            ip_checksum: checksums,
            udp_checksum: checksums,
            local: None,
        },
        demux: plan.config.demux()?,
        reassemblers: reassemblers(&plan.config, sides.len())?,
        tally: Tally::new(),
        peer,
    })
}

/// One for each port, if fragments are to be reassembled.
fn reassemblers(config: &TriggerConfig, ports: usize) -> Result<Vec<Reassembler>> {
    let Some(bounds) = config.reassembly(ports)? else {
        return Ok(Vec::new());
    };
    let reassemblers = (0..ports).map(|_| Reassembler::new(bounds));
    Ok(reassemblers.collect::<Result<_, _>>()?)
}

/// The loops of those who take work off the trigger's.
fn workers(cli: &Cli, plan: &Plan, crew: Vec<Worker>, clock: &RunClock) -> Result<Vec<WorkerLoop>> {
    let stop = StopFlag::new();
    let of = |worker| {
        Ok(WorkerLoop {
            worker,
            idle: Idle::new(cli.idle, SLEEP, iter::empty())?,
            clock: clock.clone(),
            jitter: JitterMeter::new(clock.clone()),
            stop: stop.clone(),
            gives_way: plan.shares_cpus(),
        })
    };
    crew.into_iter().map(of).collect()
}

/// Where decisions are sent from.
fn answer(plan: &Plan, clock: RunClock, wants_peer: bool, recorded: bool) -> Answer<RunClock> {
    let config = &plan.config;
    let answer = Answer::by(clock, config.trigger.source_id, config.budget(), wants_peer);
    if recorded {
        answer.of_recording()
    } else {
        answer
    }
}

/// What compares the events with the truth, if that is known.
fn ring_check(plan: &Plan, taps: &mut Vec<Tap>) -> Result<Option<RingCheck>> {
    Ok(match &plan.truth {
        Some(GivenTruth::Boards(boards)) => {
            Some(RingCheck::new(tap(taps, false)?.0, Truth::of(boards)?))
        }
        Some(GivenTruth::Events(events)) => {
            Some(RingCheck::foreign(tap(taps, false)?.0, Arc::clone(events)))
        }
        None => None,
    })
}

/// Taps off the event records: their queue, and what becomes of them.
pub fn tap(taps: &mut Vec<Tap>, bursts: bool) -> Result<(EventConsumer, Arc<FileCounts>)> {
    let queue = EventQueue::new(TAP_RECORDS, &RegionOptions::default())?;
    let (producer, consumer) = queue.split();
    let counts = Arc::<FileCounts>::default();
    taps.push(Tap {
        producer,
        bursts,
        counts: Arc::clone(&counts),
    });
    Ok((consumer, counts))
}
