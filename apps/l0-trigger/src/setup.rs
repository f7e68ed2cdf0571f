//! From a plan to loops that can be launched: ports, queues, pipeline, taps.

use std::iter;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, Result};
use pollux_app::metrics::Ledgers;
use pollux_app::ports::{self, PortView};
use pollux_emulator::config::EmulatorConfig;
use pollux_emulator::link::PortLink;
use pollux_emulator::rings::RingCheck;
use pollux_emulator::run::EmulatorLoop;
use pollux_emulator::truth::Truth;
use pollux_mempool::Mempool;
use pollux_na62::formats::mtp::MAX_PRIMITIVES;
use pollux_na62::l0::{Decision, Frame};
use pollux_na62::stages::{Answer, RuleExchange};
use pollux_na62::{EVENT_CACHE, L0Env};
use pollux_output::{CAPACITY, EventQueues, RunContext};
use pollux_pipelines::Pipeline;
use pollux_pipelines::fan_out::Worker;
use pollux_pmd::endpoint::{Neighbour, PortEndpoint, Receiver};
use pollux_pmd::lcore::idle::Idle;
use pollux_pmd::lcore::{JitterMeter, StopFlag};
use pollux_pmd::net::igmp::group_stations;
use pollux_pmd::port::{Configured, Port, PortConfig, Probed, Started, StartedPort};
use pollux_pmd::{Capabilities, LatencyView, Ledger, Registry, RxQueue, TxQueue};

use crate::cli::Cli;
use crate::clock::RunClock;
use crate::config::TriggerConfig;
use crate::counters::Counters;
use crate::decision_sink::DecisionSink;
use crate::event_display::{self, Collector};
use crate::event_outputs::{OpenOutputs, QueuedOutputs, RunningOutputs};
use crate::files::{Files, Written};
use crate::groups;
use crate::input::{Input, Pending, Source};
use crate::outputs::Outputs;
use crate::plan::{GivenTruth, Plan};
use crate::poll_loop::{CACHE, PollLoop, SLEEP};
use crate::receive_loop::{self, Runner};
use crate::registries::Registries;
use crate::tap::{self, Tap};
use crate::worker::WorkerLoop;

/// Queues that belong to no loop, before or after the run.
#[derive(Default)]
pub struct Queues {
    pub rx: Vec<RxQueue>,
    pub tx: Vec<TxQueue>,
}

/// Started ports, and loops that are ready to poll them.
pub struct Setup {
    pub ports: Vec<Port<Started>>,
    pub trigger: PollLoop,
    /// The loops that take work off the trigger's.
    pub workers: Vec<WorkerLoop>,
    /// The loops that receive for the trigger's.
    pub receivers: Vec<Runner>,
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
    /// Where events are sent to.
    pub outputs: RunningOutputs,
}

/// A started port before its queues are given out.
struct Opened {
    port: Port<Started>,
    offered: Capabilities,
    queues: Queues,
}

impl Opened {
    fn view(&self) -> PortView {
        PortView::of(&self.port, &self.queues.rx, &self.queues.tx)
    }
}

impl Setup {
    /// Opens and starts everything that the plan names. `clock` is the one that its ports stamp
    /// frames by; `outputs` are the files; `stop` is what ends the run.
    pub fn new(
        cli: &Cli,
        plan: &Plan,
        outputs: &Outputs,
        registries: &Registries,
        clock: RunClock,
        stop: &StopFlag,
    ) -> Result<Self> {
        let pool = Mempool::new(plan.config.memory.pool()).context("[memory]")?;
        let mut opened = open(cli, plan, &registries.ports, &pool)?;
        let mut taps = Vec::new();
        // First, so that what is left is the trigger's.
        let boards = demonstration(plan, &mut opened, &pool, (&clock, stop), &mut taps)?;
        let views = opened.iter().map(Opened::view).collect();

        let recorded = opened.iter().all(|port| port.offered.recorded);
        let (pipeline, mut env) =
            plan.config
                .pipeline(&registries.stages, kept(cli, plan), plan.fan_out(recorded))?;
        let L0Env { stats, events } = env.take()?;
        let rules = env.take::<RuleExchange>().ok();
        let (mut ledger, metrics) = (env.ledger, env.metrics);
        let events = events.context("[[stage]]: none of them builds events")?;
        let (ports, mut inputs, endpoints) = hand_out(opened, &plan.config, &mut ledger)?;
        let groups = groups::views(&ports, &endpoints);
        let receiver = receiver(plan, &endpoints)?;
        let streams = receiver.streams();
        ledger.add("receive", receiver.view());

        // The boards stop first, so that the trigger decides what they have sent; without boards,
        // the trigger stops when the run is to.
        let halt = match boards {
            Some(_) => StopFlag::new(),
            None => stop.clone(),
        };
        let display = cli.http.map(|_| event_display::channel(&clock));
        let (sampler, collector) = display.transpose()?.unzip();
        let mut queues = EventQueues::default();
        let files = Files::new(outputs, &mut taps, &mut queues)?;
        let event_outputs = QueuedOutputs::new(&plan.outputs, &mut queues)?;
        let check = ring_check(plan, &mut taps)?;
        let sink = DecisionSink {
            answer: answer(plan, clock.clone(), receiver.has_neighbour(), recorded),
            endpoints,
            answer_by: 0,
            cache: pool.cache(CACHE)?,
            events: events.cache(EVENT_CACHE)?,
            taps,
            sampler,
            queues,
            waiting: Vec::with_capacity(MAX_PRIMITIVES),
            patient: recorded,
            stop: halt.clone(),
            jitter: JitterMeter::new(clock.clone()),
            decisions: 0,
        };
        let workers = workers(cli, plan, env.worker_pool, &clock)?;
        let run = (recorded, &clock);
        let (receivers, receive_loops) =
            receive_loop::of(cli, plan, &mut inputs, &pool, run, &mut ledger)?;
        let counters = Arc::new(Counters {
            ledgers: Ledgers {
                ledger,
                ports: views,
            },
            stats,
            rules: rules.as_ref().map(RuleExchange::book).unwrap_or_default(),
            metrics,
            streams,
            answers: sink.answer.counts(),
            latency: latency(&pipeline, &sink),
            gaps: sink.jitter.gaps(),
            stage_stops: pipeline.back_pressure(),
            output_stops: Arc::default(),
            workers: (0..).zip(&workers).map(|(n, w)| w.view(n)).collect(),
            receivers: (0..).zip(&receivers).map(|(n, r)| r.view(n)).collect(),
            files: files.counts(),
            outputs: event_outputs.views(),
            groups,
        });
        let run = (outputs.run, recorded, clock.clone());
        let event_outputs = open_outputs(event_outputs, (cli, plan), run, registries, &counters)?;
        // After the outputs: a file would keep its name, and the number of the run, from a run that could
        // not begin.
        let files = files.start(cli, plan, &counters)?;
        let queues = inputs.iter_mut().filter_map(Input::queue).map(|rx| &*rx);
        let idle = Idle::new(cli.idle, SLEEP, queues).context("--idle")?;
        let trigger = PollLoop {
            idle,
            inputs,
            receiver,
            pipeline,
            stats: Arc::clone(&counters.stats),
            sink,
            output_stops: Arc::clone(&counters.output_stops),
            burst: usize::from(cli.burst),
            recorded,
            // In the demonstration the boards count: all their events are waited for.
            max_events: cli.events.filter(|_| boards.is_none()),
            stop: halt,
            clock,
            receive_loops,
        };
        Ok(Self {
            ports,
            trigger,
            workers,
            receivers,
            boards,
            check,
            counters,
            collector,
            rules,
            files,
            outputs: event_outputs.start(&plan.cpus())?,
        })
    }
}

fn open_outputs(
    outputs: QueuedOutputs<'_>,
    (cli, plan): (&Cli, &Plan),
    (run, recorded, clock): (Option<u32>, bool, RunClock),
    registries: &Registries,
    counters: &Arc<Counters>,
) -> Result<OpenOutputs> {
    let context = RunContext {
        run,
        started: SystemTime::now(),
        unix_ns: Arc::new(move |moment| clock.unix_ns(moment)),
        recorded,
        ip: plan.config.trigger.ip,
        configuration: &cli.source().text()?,
        ports: &registries.ports,
        monitor: Arc::<Counters>::clone(counters),
    };
    outputs.open(&context)
}

/// The times of the stages, and the total.
fn latency(
    pipeline: &Pipeline<Frame, Decision>,
    sink: &DecisionSink,
) -> Vec<(String, LatencyView)> {
    let stages = pipeline.times().map(|(name, times)| (name.into(), times));
    let total = ("total".into(), sink.answer.total());
    stages.chain([total]).collect()
}

/// Events that are on their way to those who look at them or record them, at most.
fn kept(cli: &Cli, plan: &Plan) -> usize {
    let shown = cli.http.map_or(0, |_| event_display::QUEUE);
    let queues = usize::from(cli.record.is_some()) + plan.outputs.len();
    // Those whose decisions share a packet wait for it.
    MAX_PRIMITIVES + shown + queues * CAPACITY
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
        ..PortConfig::new(pool.clone())
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

/// The boards of the demonstration, if that is planned, with a tap for their records.
fn demonstration(
    plan: &Plan,
    opened: &mut [Opened],
    pool: &Mempool,
    (clock, stop): (&RunClock, &StopFlag),
    taps: &mut Vec<Tap>,
) -> Result<Option<EmulatorLoop<PortLink, RunClock>>> {
    let (Some(config), [loopback]) = (&plan.emulator, opened) else {
        return Ok(None);
    };
    let boards = boards(config, loopback, pool, clock.clone(), stop)?;
    Ok(Some(boards.with_records(tap::add(taps, false)?.0)))
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
type HandedOut = (Vec<Port<Started>>, Vec<Input>, Vec<PortEndpoint>);

fn hand_out(opened: Vec<Opened>, config: &TriggerConfig, ledger: &mut Ledger) -> Result<HandedOut> {
    let (ip, groups) = (config.trigger.ip, config.groups());
    let (mut ports, mut inputs, mut endpoints) = (Vec::new(), Vec::new(), Vec::new());
    for (place, opened) in opened.into_iter().enumerate() {
        let recorded = opened.offered.recorded;
        let Queues { rx, mut tx } = opened.queues;
        for rx in rx {
            let name = format!("{} queue {}", opened.port.spec(), rx.queue());
            ledger.add(name, rx.tally());
            inputs.push(Input {
                source: Source::Queue(rx),
                place,
                pending: Pending::default(),
            });
        }
        // Each port was configured with one queue to send by, if it can send.
        let mut endpoint = PortEndpoint::new(&opened.offered, tx.pop(), ip);
        if !groups.is_empty() && !recorded {
            let joined = endpoint.join(&groups).context("[[stream]]: group")?;
            if !joined {
                let port = opened.port.spec();
                tracing::warn!(
                    "port {port} cannot join multicast groups, as it does not send: it receives \
                     only what its network forwards without a join"
                );
            }
        }
        endpoints.push(endpoint);
        ports.push(opened.port);
    }
    Ok((ports, inputs, endpoints))
}

/// The receiver; answers leave by one of the endpoints.
fn receiver(plan: &Plan, endpoints: &[PortEndpoint]) -> Result<Receiver> {
    let TriggerConfig {
        trigger, answer, ..
    } = &plan.config;
    let sender = endpoints.iter().position(PortEndpoint::can_send);
    let neighbour = match (answer.address(), sender) {
        (Some(to), Some(first)) => {
            let from = SocketAddrV4::new(trigger.ip, answer.from_port);
            Some(Neighbour::new(to, from, answer.station()?, first))
        }
        _ => None,
    };
    // Receive loops reassemble in tables of their own.
    let tables = if plan.receive_cpus.is_empty() {
        endpoints.len()
    } else {
        0
    };
    let classifier = plan.classifier(tables, endpoints.len())?;
    Ok(Receiver::new(classifier, plan.config.demux()?, neighbour))
}

/// The loops of the worker pool.
fn workers(cli: &Cli, plan: &Plan, pool: Vec<Worker>, clock: &RunClock) -> Result<Vec<WorkerLoop>> {
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
    pool.into_iter().map(of).collect()
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
            Some(RingCheck::new(tap::add(taps, false)?.0, Truth::of(boards)?))
        }
        Some(GivenTruth::Events(events)) => Some(RingCheck::foreign(
            tap::add(taps, false)?.0,
            Arc::clone(events),
        )),
        None => None,
    })
}
