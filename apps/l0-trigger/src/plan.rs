//! What a command line means, checked before anything is opened.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use pollux_emulator::config::EmulatorConfig;
use pollux_emulator::foreign::ForeignTruth;
use pollux_mempool::time::Ns;
use pollux_na62::formats::hits::MAX_FRAME;
use pollux_pipelines::spread::Spreading;
use pollux_pmd::net::UDP_HEADERS;
use pollux_pmd::{Registry, lcore};
use pollux_program::Cpus;

use crate::cli::Cli;
use crate::config::TriggerConfig;

/// The port of the demonstration.
const LOOPBACK: &str = "loopback";

/// The port of the same demonstration over the simulated card, where that is built in; how many
/// events it has, and how many a second: 2 ms in all, as the card's time is slow.
const CARD: &str = "card-sim";
const CARD_EVENTS: u64 = 2000;
const CARD_RATE: u64 = 1_000_000;

/// How long the trigger's loop waits for a worker on CPUs where other tasks run too: far longer than
/// the kernel keeps a thread waiting.
const DISTURBED_PATIENCE: Ns = Ns(1_000_000_000);

/// The same in a replay.
const RECORDED_PATIENCE: Ns = Ns(10_000_000_000);

/// What is said where a recording cannot be made.
pub const NO_HDF5: &str =
    "--record: recordings are not built in: cargo build --features hdf5 (it needs libhdf5-dev)";

/// What `--truth` names.
pub enum GivenTruth {
    /// Emulated boards, whose truth is made again from the seed.
    Boards(Box<EmulatorConfig>),
    /// The truth of events that were made elsewhere.
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

/// A run that makes sense.
pub struct Plan {
    pub config: TriggerConfig,
    pub ports: Vec<String>,
    /// The demonstration is over the simulated card, and time is the card's.
    pub is_simulated: bool,
    /// The boards to emulate: in the demonstration.
    pub emulator: Option<EmulatorConfig>,
    /// What the events are compared with, but in the demonstration, which has its own.
    pub truth: Option<GivenTruth>,
    pub trigger_cpu: Option<usize>,
    pub emulator_cpu: Option<usize>,
    /// One for each worker.
    pub worker_cpus: Vec<Option<usize>>,
}

impl Plan {
    /// Reads and checks everything that the command line names.
    pub fn new(cli: &Cli, registry: &Registry) -> Result<Self> {
        ensure!(cfg!(feature = "hdf5") || cli.record.is_none(), NO_HDF5);
        let config = TriggerConfig::of(cli.config.as_deref())?;
        let given = cli.truth.as_deref().map(|path| {
            GivenTruth::read(path).with_context(|| format!("--truth {}", path.display()))
        });
        let given = given.transpose()?;
        let specs = cli.ports.specs();
        for spec in &specs {
            registry
                .check(spec)
                .with_context(|| format!("--port {spec}"))?;
        }
        let is_simulated = specs == [CARD];
        ensure!(
            !is_simulated || cli.runs.control.is_none(),
            "--control is not for {CARD}: its time goes on with one run alone"
        );
        let demo = specs.is_empty() || specs == [LOOPBACK] || is_simulated;
        for own in [LOOPBACK, CARD] {
            ensure!(
                demo || !specs.iter().any(|spec| spec == own),
                "--port {own} is the demonstration's, and stands alone: nobody else sends there"
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
        let mut cpus = place(&Cpus::of(&cli.cores), demo, workers)?.into_iter();
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
            truth: None,
            trigger_cpu,
            emulator_cpu,
            worker_cpus: cpus.collect(),
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

/// Which CPU each loop runs on: the trigger's, the emulator's in the demonstration, the workers'.
fn place(cores: &[usize], demo: bool, workers: usize) -> Result<Vec<Option<usize>>> {
    let allowed = lcore::allowed_cpus();
    for (place, cpu) in cores.iter().enumerate() {
        ensure!(
            allowed.contains(cpu),
            "--cores: cpu {cpu} is not among this process's: {allowed:?}"
        );
        ensure!(
            !cores[..place].contains(cpu),
            "--cores: cpu {cpu} is there twice: each loop needs one of its own"
        );
    }
    let loops = 1 + usize::from(demo) + workers;
    if cores.is_empty() {
        if allowed.len() >= loops {
            return Ok(allowed.into_iter().rev().take(loops).map(Some).collect());
        }
        let cpus = allowed.len();
        tracing::warn!("{loops} loops share {cpus} CPUs, and latencies show it");
        return Ok(vec![None; loops]);
    }
    let emulator = if demo { ",emulator" } else { "" };
    ensure!(
        cores.len() == loops,
        "--cores: {} CPUs for {loops} loops: trigger{emulator}{}",
        cores.len(),
        ",worker".repeat(workers)
    );
    Ok(cores.iter().copied().map(Some).collect())
}

impl Plan {
    /// How many workers there are, whether loops share CPUs, and how long the trigger's loop waits
    /// for a worker. Live, on CPUs that the kernel keeps for them: for the budget of a decision. On
    /// other CPUs a worker may stand still for longer than that without any fault; and a recording
    /// can wait, and is to give the same decisions each time.
    pub fn spreading(&self, recorded: bool) -> Spreading {
        let isolated = |cpu: &Option<usize>| cpu.is_some_and(lcore::is_isolated);
        let patience = if recorded {
            RECORDED_PATIENCE
        } else if self.worker_cpus.iter().all(isolated) {
            self.config.budget().max(Spreading::default().patience)
        } else {
            DISTURBED_PATIENCE
        };
        Spreading {
            workers: self.worker_cpus.len(),
            shares_cpus: self.shares_cpus(),
            patience,
        }
    }

    /// Whether loops share CPUs.
    pub fn shares_cpus(&self) -> bool {
        self.trigger_cpu.is_none()
    }

    /// The CPUs of all loops that have one, those that matter most first.
    pub fn cpus(&self) -> Vec<usize> {
        let trigger = std::iter::once(&self.trigger_cpu);
        let all = trigger.chain(&self.worker_cpus);
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
        write!(f, "budget     {} us", self.config.trigger.budget_us)
    }
}
