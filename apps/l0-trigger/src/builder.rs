//! A trigger in another program: configuration, run and report.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use clap::Parser as _;
use pollux_app::{Reload, Service};
use pollux_na62::l0::L0Record;
use pollux_pipelines::registry::StageRegistry;
use pollux_pmd::Registry;
use pollux_pmd::lcore::StopFlag;

use crate::cli::Cli;
use crate::clock::{Clocks, RunClock};
use crate::decision_output::DecisionHandler;
use crate::execution::{self, Execution};
use crate::outputs::{Naming, Outputs};
use crate::plan::Plan;
use crate::program;
use crate::registries::Registries;
use crate::report;
use crate::supervisor::Host;

/// Configuration of a trigger. The defaults are those of the program `l0-trigger`: without ports it
/// runs the demonstration.
///
/// ```no_run
/// use l0_trigger::Trigger;
///
/// let report = Trigger::builder()
///     .port("af_packet:eth1")
///     .configuration_file("docs/examples/rich.toml")
///     .cores(&[3])
///     .events_out("run.events")
///     .build()?
///     .run()?;
/// println!("{report}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct TriggerBuilder {
    registries: Registries,
    /// Options of the command line, so that both have the same meaning and the same checks.
    options: Vec<OsString>,
    configuration: Option<String>,
    stop: StopFlag,
    decisions: Option<DecisionHandler>,
}

impl TriggerBuilder {
    /// Sets the registry of port drivers: [`Registry::builtin`] with the embedding program's own
    /// drivers. The default has the drivers of the build, and grants packet memory to devices.
    pub fn port_registry(mut self, ports: Registry) -> Self {
        self.registries.ports = ports;
        self
    }

    /// Sets the registry of stages: [`pollux_na62::stage_registry`] with the embedding program's
    /// own stages. Stages that it describes appear in `--print-schema` too.
    pub fn stage_registry(mut self, stages: StageRegistry) -> Self {
        self.registries.stages = stages;
        self
    }

    fn option(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let mut option = OsString::from(name);
        option.push("=");
        option.push(value);
        self.options.push(option);
        self
    }

    /// Adds a port to receive from, by its spec (docs/ports.md).
    pub fn port(self, spec: &str) -> Self {
        self.option("--port", spec)
    }

    /// Reads the configuration from a file (docs/configuration.md).
    pub fn configuration_file(mut self, path: impl AsRef<Path>) -> Self {
        self.configuration = None;
        self.option("--config", path.as_ref())
    }

    /// Sets the configuration text, instead of a file.
    pub fn configuration(mut self, toml: impl Into<String>) -> Self {
        self.configuration = Some(toml.into());
        self
    }

    /// Runs the loops on these CPUs: the trigger's, in the demonstration the emulator's, then the
    /// workers', then the receive loops'.
    pub fn cores(self, cpus: &[usize]) -> Self {
        let list: Vec<_> = cpus.iter().map(ToString::to_string).collect();
        self.option("--cores", list.join(","))
    }

    /// Sets the number of loops that find rings, in addition to the trigger's.
    pub fn workers(self, workers: u16) -> Self {
        self.option("--workers", workers.to_string())
    }

    /// Receives with so many loops beside the trigger's; 1 has the trigger's loop receive.
    pub fn rx_loops(self, loops: u16) -> Self {
        self.option("--rx-loops", loops.to_string())
    }

    /// Ends the run after this number of events; the demonstration emulates that number.
    pub fn events(self, events: u64) -> Self {
        self.option("--events", events.to_string())
    }

    /// Ends the run after this time.
    pub fn duration(self, duration: Duration) -> Self {
        self.option("--duration", duration.as_secs_f64().to_string())
    }

    /// Sets the number of the run, which replaces `{run}` in the names of files.
    pub fn run_number(self, run: u32) -> Self {
        self.option("--run", run.to_string())
    }

    /// Writes the events as 64-byte records (docs/formats/event-record.md).
    pub fn events_out(self, path: impl AsRef<Path>) -> Self {
        self.option("--events-out", path.as_ref())
    }

    /// Records accepted events with their hits in HDF5 (docs/formats/recording.md), in builds with
    /// the feature `hdf5`.
    pub fn record(self, path: impl AsRef<Path>) -> Self {
        self.option("--record", path.as_ref())
    }

    /// Writes the report as JSON (docs/formats/report.md).
    pub fn report(self, path: impl AsRef<Path>) -> Self {
        self.option("--report", path.as_ref())
    }

    /// Overwrites existing output files; without it they are an error.
    pub fn overwrite(mut self) -> Self {
        self.options.push("--force".into());
        self
    }

    /// Serves Prometheus metrics during the run.
    pub fn metrics(self, address: SocketAddr) -> Self {
        self.option("--metrics", address.to_string())
    }

    /// Serves the run page during the run.
    pub fn http(self, address: SocketAddr) -> Self {
        self.option("--http", address.to_string())
    }

    /// Calls a function with each decision, in order, on the thread that supervises the run. If it
    /// is too slow for a live run it misses decisions ([`Report::decisions_missed`]); a recording
    /// waits for it.
    pub fn on_decision(mut self, handler: impl FnMut(&L0Record) + Send + 'static) -> Self {
        self.decisions = Some(Arc::new(Mutex::new(handler)));
        self
    }

    /// Ends the run when this flag is set, also before the run begins.
    pub fn stop_flag(mut self, stop: StopFlag) -> Self {
        self.stop = stop;
        self
    }

    /// Checks all options, as far as that is possible before ports are opened.
    ///
    /// # Errors
    /// An invalid option, configuration or port spec; an output file that exists.
    pub fn build(self) -> Result<Trigger> {
        let Self {
            mut registries,
            options,
            configuration,
            stop,
            decisions,
        } = self;
        let words = ["l0-trigger".into(), "--quiet".into()];
        let mut cli = Cli::try_parse_from(words.into_iter().chain(options))?;
        cli.configuration = configuration;
        let clocks = Clocks::new(&mut registries.ports);
        let plan = Plan::new(&cli, &registries)?;
        let outputs = Naming::of(&cli)?.name(cli.runs.run)?;
        Ok(Trigger {
            clock: clocks.choose(plan.is_simulated),
            registries,
            cli,
            plan,
            outputs,
            stop,
            decisions,
        })
    }

    /// Runs as the program `l0-trigger`, with the arguments of this process, its signals and its
    /// exit status. Options of the builder come before those of the command line.
    #[must_use]
    pub fn main(self) -> ExitCode {
        let mut words = std::env::args_os();
        let name = words.next().unwrap_or_else(|| "l0-trigger".into());
        let mut cli = Cli::parse_from([name].into_iter().chain(self.options).chain(words));
        cli.configuration = self.configuration.filter(|_| cli.config.is_none());
        pollux_app::exit(program::run(&cli, self.registries, self.decisions))
    }
}

/// A checked trigger, ready to run.
pub struct Trigger {
    registries: Registries,
    cli: Cli,
    plan: Plan,
    outputs: Outputs,
    clock: RunClock,
    stop: StopFlag,
    decisions: Option<DecisionHandler>,
}

impl Trigger {
    /// A builder with the defaults, which are those of the demonstration.
    pub fn builder() -> TriggerBuilder {
        TriggerBuilder {
            registries: Registries::default(),
            options: Vec::new(),
            configuration: None,
            stop: StopFlag::new(),
            decisions: None,
        }
    }

    /// Opens the ports, runs until the inputs, the number of events, the duration or the stop flag
    /// end the run, and completes the files. Prints nothing; messages are `tracing` events.
    ///
    /// # Errors
    /// A failure to open something, or a failure at the end, which includes the report.
    pub fn run(self) -> Result<Report, RunError> {
        // On a separate thread: the supervisor leaves the CPUs of the loops for good.
        let thread = std::thread::Builder::new().name("run".into());
        let spawned = thread.spawn(move || self.run_here());
        let thread = spawned.context("cannot start the thread that supervises the run")?;
        let panicked = |_| Err(anyhow!("the thread that supervises the run has panicked").into());
        thread.join().unwrap_or_else(panicked)
    }

    fn run_here(self) -> Result<Report, RunError> {
        let host = Host {
            run: self.outputs.run,
            stop: self.stop.clone(),
            quit: self.stop,
            reload: Reload::default(),
            service: &mut Service::none(),
            is_alone: true,
            prints_report: false,
        };
        let Execution {
            report,
            decisions_missed,
            result,
            ..
        } = execution::execute(
            (&self.cli, &self.plan),
            &self.outputs,
            &self.registries,
            self.clock,
            host,
            self.decisions,
            &mut |_| {},
        )?;
        let report = Report {
            report,
            decisions_missed,
        };
        match result {
            Ok(()) => Ok(report),
            Err(cause) => Err(RunError {
                cause,
                report: Some(Box::new(report)),
            }),
        }
    }
}

/// The report of a run.
pub struct Report {
    report: report::Report,
    decisions_missed: u64,
}

impl Report {
    /// Why the run ended: `complete`, `exhausted`, `enough`, `stopped` or `gone`
    /// (docs/formats/report.md).
    #[must_use]
    pub fn end(&self) -> &str {
        self.report.end
    }

    /// Built events.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.report.counted.events.built
    }

    /// Accepted events.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.report.counted.events.accepted
    }

    /// Rejected events.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.report.counted.events.rejected
    }

    /// Decisions that [the handler](TriggerBuilder::on_decision) missed.
    #[must_use]
    pub fn decisions_missed(&self) -> u64 {
        self.decisions_missed
    }

    /// Frames that reached the ports.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.report.counted.ledger.from_wire
    }

    /// Frames dropped for a cause, by its name (docs/errors.md).
    #[must_use]
    pub fn dropped(&self, cause: &str) -> u64 {
        let dropped = &self.report.counted.ledger.dropped;
        dropped.get(cause).copied().unwrap_or(0)
    }

    /// Whether every frame is accounted for.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        self.report.counted.ledger.balanced
    }

    /// The whole report as JSON (docs/formats/report.md).
    #[must_use]
    pub fn to_json(&self) -> String {
        // It consists of numbers and text, which JSON can represent.
        serde_json::to_string(&self.report).unwrap_or_default()
    }
}

/// As printed by the program.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.report.to_text())
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Report({})", self.to_json())
    }
}

/// Why a run failed.
#[derive(Debug)]
pub struct RunError {
    cause: anyhow::Error,
    report: Option<Box<Report>>,
}

impl RunError {
    /// The report, if the run began.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        self.report.as_deref()
    }
}

impl From<anyhow::Error> for RunError {
    fn from(cause: anyhow::Error) -> Self {
        Self {
            cause,
            report: None,
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.cause)
    }
}

impl Error for RunError {}
