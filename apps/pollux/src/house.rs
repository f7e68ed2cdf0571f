//! What the main thread does for sub-commands that run poll loops: launches them, shows what goes
//! on, ends them in order, reports.

mod meter;
mod page;
mod report;
mod rig;

use std::fmt::Display;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use pollux_pmd::lcore::{self, Lcore, StopFlag};
use pollux_pmd::{Ledger, Port, Started};
use pollux_program::metrics::{self, Books, Watch};
use pollux_program::ports::PortView;
use pollux_program::{Cpus, DurationOption, Failure, ReportOptions, ReportOutputs, Reports, say};
use serde::Serialize;

use self::meter::Meter;
use self::page::Latencies;
pub(crate) use self::report::{Base, Quantiles};
pub(crate) use self::rig::Rig;

/// How often the main thread looks after its loops.
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

/// The main thread's part of a run.
pub(crate) struct House {
    pub(crate) stop: StopFlag,
    /// On the page of metrics.
    pub(crate) latencies: Latencies,
    cores: Vec<usize>,
    duration: Option<Duration>,
    quiet: bool,
    reports: ReportOutputs,
    metrics: metrics::Options,
}

/// A run has begun.
pub(crate) struct Begun {
    at: Instant,
    cores: Vec<report::Core>,
    reports: Reports,
}

/// The loops of a run have ended.
pub(crate) struct Ended<T> {
    /// What each loop left.
    pub(crate) loops: Vec<T>,
    pub(crate) elapsed: Duration,
    cores: Vec<report::Core>,
    reports: Reports,
}

impl House {
    /// Checks the options, and has signals end the run.
    pub(crate) fn new(options: &Options) -> Result<Self, Failure> {
        let cores = Cpus::of(&options.cores);
        for &cpu in &cores {
            let allowed = lcore::expect_allowed(cpu).context("--cores");
            allowed.map_err(Failure::Usage)?;
        }
        let reports = options.report.outputs()?;
        Ok(Self {
            stop: pollux_program::stop_on_signals().context("cannot handle signals")?,
            latencies: Latencies::default(),
            cores,
            duration: options.duration.duration,
            quiet: options.quiet,
            reports,
            metrics: options.metrics,
        })
    }

    /// CPUs of the loops; none where they are not pinned.
    pub(crate) fn cores(&self) -> &[usize] {
        &self.cores
    }

    /// Refuses more cores than one, for a sub-command whose work is one loop's.
    pub(crate) fn expect_one_loop(&self) -> Result<(), Failure> {
        match self.cores.len() {
            0 | 1 => Ok(()),
            n => Err(Failure::Usage(anyhow!(
                "--cores: {n} CPUs for what is one loop's work: give one"
            ))),
        }
    }

    /// Whether nothing is to be said while it runs.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// How many loops there are to be.
    pub(crate) fn loops(&self) -> usize {
        self.cores.len().max(1)
    }

    /// Begins a run, whose loops have these roles: one for each of the cores. Only now, when all
    /// ports are open, is the report's file made: a run that never was leaves none.
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

    /// Whether the run is to end: by a signal, or because its time is over.
    pub(crate) fn is_over(&self, begun: &Begun) -> bool {
        if self.left(begun.at).is_some_and(|left| left.is_zero()) {
            self.stop.stop();
        }
        self.stop.is_set()
    }

    /// Time until the run is to end by itself.
    fn left(&self, begin: Instant) -> Option<Duration> {
        self.duration.map(|d| d.saturating_sub(begin.elapsed()))
    }

    /// Where metrics are served, for a sub-command with a page of its own.
    pub(crate) fn metrics(&self) -> metrics::Options {
        self.metrics
    }

    /// Serves the metrics of a run, if they were asked for.
    pub(crate) fn watch(&self, ports: &[PortView], ledger: &Ledger) -> anyhow::Result<Watch> {
        let source = page::Source {
            books: Books {
                ledger: ledger.clone(),
                ports: ports.to_vec(),
            },
            latencies: self.latencies.clone(),
        };
        Watch::start(self.metrics, source, ports, &self.cores)
    }

    /// Launches a loop on each of the cores, waits until all have ended by themselves or are to be
    /// stopped. Shows the rates of `views` meanwhile, which are those of `ports`, and serves their
    /// metrics.
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
            // Those that run are to end even if this one cannot begin.
            let launched = launched.inspect_err(|_| self.stop.stop());
            loops.push(launched.map_err(anyhow::Error::new)?);
        }
        // After the launches: a new thread inherits where its parent may run.
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
                say(line);
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
    /// The run has ended, which lasted so long and left these.
    pub(crate) fn end<T>(self, loops: Vec<T>, elapsed: Duration) -> Ended<T> {
        Ended {
            loops,
            elapsed,
            cores: self.cores,
            reports: self.reports,
        }
    }

    /// Where the report goes, of a sub-command that has one of its own form.
    pub(crate) fn into_reports(self) -> Reports {
        self.reports
    }

    /// Time since the beginning.
    pub(crate) fn elapsed(&self) -> Duration {
        self.at.elapsed()
    }
}

impl<T> Ended<T> {
    /// What all reports begin with.
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

    /// Prints the report, and writes it where that was asked for. `stopped` is what the ports said
    /// at their end. Then tells whether the run was what it should be.
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
