//! Plan of a run: the checked command line and configuration, before anything is opened.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use pollux_app::{Cpus, NamedFile, expect_distinct, place_loops};
use pollux_emulator::config::EmulatorConfig;
use pollux_emulator::foreign::ForeignTruth;
use pollux_mempool::time::Ns;
use pollux_na62::formats::hits::MAX_FRAME;
use pollux_output::{OutputKind, PlannedOutput};
use pollux_pipelines::fan_out::FanOutOptions;
use pollux_pmd::endpoint::Classifier;
use pollux_pmd::lcore;
use pollux_pmd::net::{ParseOptions, UDP_HEADERS};

use crate::cli::Cli;
use crate::config::TriggerConfig;
use crate::registries::Registries;

/// The port of the demonstration.
const LOOPBACK: &str = "loopback";

/// The port of the same demonstration over the simulated card, if it is built in; its number of
/// events, and its rate: 2 ms in total, since the simulation is slow.
const CARD: &str = "card-sim";
const CARD_EVENTS: u64 = 2000;
const CARD_RATE: u64 = 1_000_000;

/// Maximum time that the trigger's loop waits for a worker on shared CPUs: far longer than the
/// kernel keeps a thread waiting.
const DISTURBED_PATIENCE: Ns = Ns(1_000_000_000);

/// The same in a replay.
const RECORDED_PATIENCE: Ns = Ns(10_000_000_000);

/// Error text in builds without recordings.
pub const NO_HDF5: &str =
    "--record: recordings are not built in: cargo build --features hdf5 (it needs libhdf5-dev)";

/// Kinds of `--truth`.
pub enum GivenTruth {
    /// Emulated boards, whose truth is regenerated from the seed.
    Boards(Box<EmulatorConfig>),
    /// The truth of events from another source.
    Events(Arc<ForeignTruth>),
}

impl GivenTruth {
    fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)?;
        Ok(if ForeignTruth::is_meant(&text) {
            Self::Events(Arc::new(ForeignTruth::parse(&text)?))
        } else {
            Self::Boards(Box::new(EmulatorConfig::from_toml(&text)?))
        })
    }
}

/// A valid run.
pub struct Plan {
    pub config: TriggerConfig,
    pub ports: Vec<String>,
    /// The demonstration runs over the simulated card, whose clock is the run's.
    pub is_simulated: bool,
    /// The boards to emulate: in the demonstration.
    pub emulator: Option<EmulatorConfig>,
    /// Those of the configuration, then those of the command line.
    pub outputs: Vec<PlannedOutput>,
    /// Reference for the events, except in the demonstration, which has its own.
    pub truth: Option<GivenTruth>,
    pub trigger_cpu: Option<usize>,
    pub emulator_cpu: Option<usize>,
    /// One for each worker.
    pub worker_cpus: Vec<Option<usize>>,
    /// One for each receive loop beside the trigger's.
    pub receive_cpus: Vec<Option<usize>>,
}

impl Plan {
    /// Reads and checks all that the command line names.
    pub fn new(cli: &Cli, registries: &Registries) -> Result<Self> {
        ensure!(cfg!(feature = "hdf5") || cli.record.is_none(), NO_HDF5);
        let config = TriggerConfig::of(&cli.source(), &registries.stages)?;
        let given = cli.truth.as_deref().map(|path| {
            GivenTruth::read(path).with_context(|| format!("--truth {}", path.display()))
        });
        let given = given.transpose()?;
        let specs = cli.ports.specs();
        for spec in &specs {
            registries
                .ports
                .check(spec)
                .with_context(|| format!("--port {spec}"))?;
        }
        let outputs = outputs(cli, &config, registries)?;
        let is_simulated = matches!(&specs[..], [spec] if is_card(spec));
        ensure!(
            !is_simulated || cli.runs.control.is_none(),
            "--control is not for {CARD}: its clock serves a single run"
        );
        let demo = specs.is_empty() || specs == [LOOPBACK] || is_simulated;
        for own in &specs {
            ensure!(
                demo || own != LOOPBACK && !is_card(own),
                "--port {own} is the demonstration's, and cannot be combined with others"
            );
        }
        ensure!(
            !demo || cli.queues.unwrap_or(1) == 1,
            "--queues is for other ports than the demonstration's"
        );
        ensure!(
            !demo || config.groups().is_empty(),
            "[[stream]]: group = ... goes with the --port that its frames come by: the boards of the \
             demonstration send to the trigger's own address"
        );
        let (room, frame) = (config.memory.data_room, UDP_HEADERS + MAX_FRAME);
        ensure!(
            !demo || room >= frame,
            "memory.data_room = {room}: the boards' frames in the demonstration need {frame} bytes"
        );
        let workers = usize::from(cli.workers);
        ensure!(
            !is_simulated || workers == 0,
            "--workers is not for {CARD}: time there is the card's, and work takes none"
        );
        let receivers = match usize::from(cli.rx_loops) {
            0 | 1 => 0,
            loops => loops,
        };
        ensure!(
            !demo || receivers == 0,
            "--rx-loops is for other ports than the demonstration's"
        );
        let roles = [
            ("trigger", 1),
            ("emulator", usize::from(demo)),
            ("worker", workers),
            ("receiver", receivers),
        ];
        let mut cpus = place_loops(&Cpus::of(&cli.cores), &roles)?.into_iter();
        let trigger_cpu = cpus.next().flatten();
        let emulator_cpu = if demo { cpus.next().flatten() } else { None };
        let mut plan = Self {
            config,
            ports: if specs.is_empty() {
                vec![LOOPBACK.into()]
            } else {
                specs
            },
            is_simulated,
            emulator: None,
            outputs,
            truth: None,
            trigger_cpu,
            emulator_cpu,
            worker_cpus: cpus.by_ref().take(workers).collect(),
            receive_cpus: cpus.collect(),
        };
        if demo {
            let mut emulator = match given {
                Some(GivenTruth::Boards(emulator)) => *emulator,
                Some(GivenTruth::Events(_)) => bail!(
                    "--truth: a truth of events goes with the --port that they come from: the \
                     demonstration takes a configuration of the emulator, and makes its own events"
                ),
                None if is_simulated => EmulatorConfig {
                    events: CARD_EVENTS,
                    rate: CARD_RATE,
                    ..EmulatorConfig::default()
                },
                None => EmulatorConfig::default(),
            };
            emulator.events = cli.events.unwrap_or(emulator.events);
            emulator.validate()?;
            plan.emulator = Some(emulator);
        } else {
            plan.truth = given;
        }
        Ok(plan)
    }
}

/// Whether a port is the simulated card, or a function of it.
fn is_card(spec: &str) -> bool {
    spec.split(':').next() == Some(CARD)
}

/// The checked outputs, which overwrite no file of the run; nothing is opened.
fn outputs(
    cli: &Cli,
    config: &TriggerConfig,
    registries: &Registries,
) -> Result<Vec<PlannedOutput>> {
    let tables = config
        .outputs
        .iter()
        .map(|table| ("[[output]]", &table.spec));
    let options = cli.outputs.iter().map(|spec| ("--output", spec));
    let plan = |(origin, spec): (&'static str, &String)| {
        let planned = OutputKind::plan(spec, &registries.outputs).context(origin)?;
        if let Some(port) = planned.plan.port() {
            let checked = registries.ports.check(port);
            checked.with_context(|| format!("{origin} {spec}"))?;
        }
        Ok(planned)
    };
    let outputs: Vec<_> = tables.chain(options).map(plan).collect::<Result<_>>()?;
    let ports = outputs.iter().filter_map(|output| output.plan.port());
    let ports = ports.flat_map(NamedFile::of_port);
    let files: Vec<_> = cli.files().into_iter().chain(ports).collect();
    expect_distinct(&files)?;
    Ok(outputs)
}

impl Plan {
    /// A classifier with `tables` reassembly tables, each within the bounds of one among `all`.
    pub fn classifier(&self, tables: usize, all: usize) -> Result<Classifier> {
        let checksums = self.config.trigger.checksums;
        let classifier = Classifier::new(ParseOptions {
            ip_checksum: checksums,
            udp_checksum: checksums,
            local: None,
        });
        Ok(match self.config.reassembly(all)? {
            Some(bounds) => classifier.with_reassembly(bounds, tables)?,
            None => classifier,
        })
    }

    /// Number of workers, whether loops share CPUs, and how long the trigger's loop waits for a
    /// worker. In a live run on isolated CPUs it waits for the budget of a decision. On other CPUs
    /// a healthy worker may be interrupted for longer than that. A recording can wait, and must
    /// give the same decisions each time.
    pub fn fan_out(&self, recorded: bool) -> FanOutOptions {
        let isolated = |cpu: &Option<usize>| cpu.is_some_and(lcore::is_isolated);
        let patience = if recorded {
            RECORDED_PATIENCE
        } else if self.worker_cpus.iter().all(isolated) {
            self.config.budget().max(FanOutOptions::default().patience)
        } else {
            DISTURBED_PATIENCE
        };
        FanOutOptions {
            workers: self.worker_cpus.len(),
            shares_cpus: self.shares_cpus(),
            patience,
        }
    }

    /// Whether loops share CPUs.
    pub fn shares_cpus(&self) -> bool {
        self.trigger_cpu.is_none()
    }

    /// The CPUs of all loops that have one, the most important first.
    pub fn cpus(&self) -> Vec<usize> {
        let trigger = std::iter::once(&self.trigger_cpu);
        let all = trigger.chain(&self.worker_cpus).chain(&self.receive_cpus);
        all.chain([&self.emulator_cpu]).flatten().copied().collect()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpu = |cpu: Option<usize>| cpu.map_or("any cpu".into(), |cpu| format!("cpu {cpu}"));
        if let Some(emulator) = &self.emulator {
            let (boards, events) = (emulator.boards, emulator.events);
            let (rate, cpu) = (emulator.rate, cpu(self.emulator_cpu));
            writeln!(
                f,
                "emulate    {boards} boards, {events} events at {rate}/s, on {cpu}"
            )?;
        }
        writeln!(
            f,
            "receive    on {}, by {}",
            self.ports.join(" and "),
            cpu(self.trigger_cpu)
        )?;
        if !self.worker_cpus.is_empty() {
            let cpus: Vec<_> = self.worker_cpus.iter().copied().map(cpu).collect();
            writeln!(f, "workers    {}: {}", cpus.len(), cpus.join(", "))?;
        }
        if !self.receive_cpus.is_empty() {
            let cpus: Vec<_> = self.receive_cpus.iter().copied().map(cpu).collect();
            writeln!(f, "receivers  {}: {}", cpus.len(), cpus.join(", "))?;
        }
        if self.is_simulated {
            writeln!(f, "time       the simulated card's")?;
        }
        for (stream, id) in self.config.streams.iter().zip(0..) {
            write!(f, "stream {id:<3} UDP port {}", stream.udp_port)?;
            if let Some(group) = stream.group {
                write!(f, " of group {group}")?;
            }
            writeln!(f)?;
        }
        let stages = self.config.stages.iter();
        let names: Vec<_> = stages
            .filter_map(|stage| stage.get("name")?.as_str())
            .collect();
        writeln!(f, "pipeline   {}", names.join(" -> "))?;
        match self.config.answer.address() {
            Some(to) => writeln!(f, "answer     to {to}")?,
            None => writeln!(f, "answer     nobody")?,
        }
        for output in &self.outputs {
            writeln!(f, "output     {}", output.spec)?;
        }
        write!(f, "budget     {} us", self.config.trigger.budget_us)
    }
}
