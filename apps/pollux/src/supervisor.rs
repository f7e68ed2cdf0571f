//! Main thread of the sub-commands with poll loops: launches the loops, shows rates, ends the loops
//! in order, and reports.

mod meter;
mod page;
mod report;
mod rig;

use std::cell::Cell;
use std::fmt::Display;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use pollux_app::http::Listener;
use pollux_app::metrics::{self, Ledgers, Watch};
use pollux_app::ports::PortView;
use pollux_app::{
    Cpus, DurationOption, Failure, NamedFile, ReportOptions, ReportOutputs, Reports, user_message,
};
use pollux_pmd::lcore::{self, Lcore, StopFlag};
use pollux_pmd::{Ledger, Port, Started};
use serde::Serialize;

use self::meter::Meter;
use self::page::Latencies;
pub(crate) use self::report::{Base, Quantiles, SCHEMA};
pub(crate) use self::rig::Rig;

/// Interval of the main thread's rounds.
const ROUND: Duration = Duration::from_millis(20);

/// Options of every sub-command with poll loops.
#[derive(clap::Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct Options {
    /// CPUs of the poll loops, one loop on each; as many as the command has loops [default: any CPU]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cores: Vec<Cpus>,

    #[command(flatten)]
    duration: DurationOption,

    #[command(flatten)]
    pub(crate) report: ReportOptions,

    #[command(flatten)]
    metrics: metrics::Options,

    /// No line of rates every second
    #[arg(short, long)]
    quiet: bool,
}

/// Resources of the main thread.
pub(crate) struct Supervisor {
    pub(crate) stop: StopFlag,
    /// Latencies on the page of metrics.
    pub(crate) latencies: Latencies,
    cores: Vec<usize>,
    duration: Option<Duration>,
    quiet: bool,
    reports: ReportOutputs,
    /// Until they are served.
    metrics: Cell<Option<Listener>>,
}

/// A run that has begun.
pub(crate) struct Begun {
    at: Instant,
    cores: Vec<report::Core>,
    reports: Reports,
}

/// A run whose loops have ended.
pub(crate) struct Ended<T> {
    /// Result of each loop.
    pub(crate) loops: Vec<T>,
    pub(crate) elapsed: Duration,
    cores: Vec<report::Core>,
    reports: Reports,
}

impl Supervisor {
    /// Checks the options, and that the run overwrites no file that one of its `ports` reads or writes;
    /// installs the signal handlers.
    pub(crate) fn new<S: AsRef<str>>(options: &Options, ports: &[S]) -> Result<Self, Failure> {
        let cores = Cpus::of(&options.cores);
        for &cpu in &cores {
            let allowed = lcore::expect_allowed(cpu).context("--cores");
            allowed.map_err(Failure::Usage)?;
        }
        let reports = options.report.outputs()?;
        let ports = ports.iter().map(AsRef::as_ref);
        let files: Vec<_> = ports.flat_map(NamedFile::of_port).collect();
        reports.expect_beside(&files)?;
        Ok(Self {
            stop: pollux_app::stop_on_signals().context("cannot handle signals")?,
            latencies: Latencies::default(),
            cores,
            duration: options.duration.duration,
            quiet: options.quiet,
            reports,
            metrics: Cell::new(options.metrics.listen()?),
        })
    }

    /// Refuses a report that would overwrite one of these files, or be overwritten by it.
    pub(crate) fn expect_beside(&self, files: &[NamedFile]) -> Result<(), Failure> {
        self.reports.expect_beside(files)
    }

    /// CPUs of the loops; empty if they are not pinned.
    pub(crate) fn cores(&self) -> &[usize] {
        &self.cores
    }

    /// Refuses more than one CPU, for a sub-command with one loop.
    pub(crate) fn expect_one_loop(&self) -> Result<(), Failure> {
        match self.cores.len() {
            0 | 1 => Ok(()),
            n => Err(Failure::Usage(anyhow!(
                "--cores: {n} CPUs for a single loop: give one"
            ))),
        }
    }

    /// Whether progress lines are suppressed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Number of loops.
    pub(crate) fn loops(&self) -> usize {
        self.cores.len().max(1)
    }

    /// Begins a run whose loops have these roles: one for each of the cores. The report's file is
    /// created only now, after all ports are open, so that a run that fails to start leaves none.
    pub(crate) fn begin(&self, roles: &[&'static str]) -> anyhow::Result<Begun> {
        let reports = self.reports.ready()?;
        let cores = self.cores.iter().zip(roles);
        let cores = cores.map(|(&cpu, role)| report::Core {
            role,
            cpu,
            isolated: lcore::check_isolation(role, cpu),
        });
        Ok(Begun {
            cores: cores.collect(),
            reports,
            at: Instant::now(),
        })
    }

    /// Whether the run is over: by a signal, or by the end of its duration.
    pub(crate) fn is_over(&self, begun: &Begun) -> bool {
        if self.left(begun.at).is_some_and(|left| left.is_zero()) {
            self.stop.stop();
        }
        self.stop.is_set()
    }

    /// Time left until the run ends by itself.
    fn left(&self, begin: Instant) -> Option<Duration> {
        self.duration.map(|d| d.saturating_sub(begin.elapsed()))
    }

    /// Where metrics are to be served, for a sub-command with a page of its own.
    pub(crate) fn metrics(&self) -> Option<Listener> {
        self.metrics.take()
    }

    /// Serves the metrics of a run, if they were requested.
    pub(crate) fn watch(&self, ports: &[PortView], ledger: &Ledger) -> anyhow::Result<Watch> {
        let source = page::Source {
            ledgers: Ledgers {
                ledger: ledger.clone(),
                ports: ports.to_vec(),
            },
            latencies: self.latencies.clone(),
        };
        Watch::start(self.metrics(), source, ports, &self.cores)
    }

    /// Launches a loop on each of the cores, and waits until all have ended by themselves or the
    /// run is over. Meanwhile it shows the rates of `views`, which are those of `ports`, and serves
    /// their metrics.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        name: &'static str,
        bodies: Vec<impl FnOnce() -> T + Send + 'static>,
        ports: &[Port<Started>],
        views: &[PortView],
        ledger: &Ledger,
    ) -> Result<Ended<T>, Failure> {
        let mut watch = self.watch(views, ledger)?;
        let begun = self.begin(&vec![name; bodies.len()])?;
        let mut loops = Vec::new();
        for (i, body) in bodies.into_iter().enumerate() {
            let launched = lcore::launch(name, self.cores.get(i).copied(), body);
            // A loop that cannot start must stop those that run.
            let launched = launched.inspect_err(|_| self.stop.stop());
            loops.push(launched.map_err(anyhow::Error::new)?);
        }
        // After the launches: a new thread inherits the CPU affinity of its parent.
        lcore::keep_off(&self.cores);
        self.wait(
            &loops,
            begun.at,
            Meter::new(begun.at, views),
            ledger,
            || watch.keep(ports),
        );
        let elapsed = begun.at.elapsed();
        let loops: Result<_, _> = loops.into_iter().map(Lcore::join).collect();
        Ok(begun.end(loops.map_err(anyhow::Error::new)?, elapsed))
    }

    fn wait<T>(
        &self,
        loops: &[Lcore<T>],
        begin: Instant,
        mut meter: Meter<'_>,
        ledger: &Ledger,
        mut keep: impl FnMut() -> bool,
    ) {
        while !loops.iter().all(Lcore::is_finished) {
            let left = self.left(begin);
            if left.is_some_and(|left| left.is_zero()) {
                self.stop.stop();
            }
            if !self.quiet
                && let Some(line) = meter.line(ledger)
            {
                user_message(line);
            }
            if !keep() {
                self.stop.stop();
            }
            let nap = left.filter(|left| !left.is_zero()).unwrap_or(ROUND);
            std::thread::sleep(nap.min(ROUND));
        }
    }
}

impl Begun {
    /// Ends the run, with its duration and the results of its loops.
    pub(crate) fn end<T>(self, loops: Vec<T>, elapsed: Duration) -> Ended<T> {
        Ended {
            loops,
            elapsed,
            cores: self.cores,
            reports: self.reports,
        }
    }

    /// Destination of the report, for a sub-command with a report of its own form.
    pub(crate) fn into_reports(self) -> Reports {
        self.reports
    }

    /// Time since the beginning.
    pub(crate) fn elapsed(&self) -> Duration {
        self.at.elapsed()
    }
}

impl<T> Ended<T> {
    /// The fields that all reports begin with.
    pub(crate) fn base(
        &mut self,
        command: &'static str,
        ports: &[PortView],
        ledger: &Ledger,
    ) -> Base {
        Base::new(
            command,
            self.elapsed,
            ports,
            std::mem::take(&mut self.cores),
            ledger,
        )
    }

    /// Prints the report, and writes it to its files. `stopped` is the result of stopping the
    /// ports. Then returns the errors of the run.
    pub(crate) fn finish(
        self,
        report: &(impl Serialize + Display),
        ledger: &Ledger,
        stopped: Result<(), impl Into<Failure>>,
    ) -> Result<(), Failure> {
        self.reports.tell(report, |out| write!(out, "{report}"))?;
        stopped.map_err(Into::into)?;
        ledger.check().map_err(|imbalance| anyhow!(imbalance))?;
        Ok(())
    }
}
