//! One run of the program: opens, launches the loop, keeps house, stops in order.

use std::cell::Cell;
use std::io::{BufWriter, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::EmulatorConfig;
use crate::foreign;
use crate::link::{Link, PortLink, SocketLink};
use crate::run::{EmulatorLoop, EmulatorReport, Progress};
use crate::truth::Truth;
use anyhow::Context as _;
use pollux_app::http::Listener;
use pollux_app::metrics::{Ledgers, Watch};
use pollux_app::ports::{self, PortView};
use pollux_app::{
    Cpus, Failure, NamedFile, Output, Reports, expect_distinct, name_outputs, print, user_message,
};
use pollux_mempool::{Mempool, PoolConfig};
use pollux_na62::physics::model::TruthEvent;
use pollux_pmd::lcore::{self, StopFlag};
use pollux_pmd::{Ledger, Port, PortConfig, PortSpec, Registry, Started, StartedPort, TscClock};

use crate::cli::Cli;
use crate::page;
use crate::report::{Core, PortUse, Run};

/// Buffers for frames on their way out, and for decisions of a queue.
const BUFFERS: usize = 4096;
/// Buffers in the loop's own cache.
const CACHE: usize = 256;

/// Does what the command line asks for.
pub(crate) fn run(cli: &Cli) -> Result<(), Failure> {
    cli.clock.select()?;
    let config = cli.config().map_err(Failure::Usage)?;
    if cli.truth_events.is_some() && config.events == 0 {
        let why = "--truth-events: a run without an end has no whole truth: give --events";
        return Err(Failure::Usage(anyhow::anyhow!(why)));
    }
    let registry = pollux_app::ports::registry();
    if let Some(spec) = cli.port.get() {
        registry.check(spec)?;
    }
    for cpu in Cpus::of(&cli.cores) {
        let allowed = lcore::expect_allowed(cpu).context("--cores");
        allowed.map_err(Failure::Usage)?;
    }
    if cli.check {
        let through = cli.port.get().or(cli.udp.map(|_| "kernel sockets"));
        return Ok(print(crate::report::plan(&config, through))?);
    }
    let outputs = Outputs::new(cli).map_err(Failure::Usage)?;
    let supervisor = Supervisor::new(cli, &config, &outputs)?;
    // Before the run, so that a path that cannot be written is reported at once.
    let files = [&outputs.report, &outputs.json].into_iter().flatten();
    let reports = Reports::new(cli.report.prints_json(), files)?;
    let run = match cli.port.get() {
        Some(spec) => through_port(&registry, spec, config, &supervisor)?,
        None => through_sockets(&config, &supervisor)?,
    };
    let report = run.json();
    let printed = reports.print(&report, |out| write!(out, "{run}"));
    reports.write(&report)?;
    run.verdict().map_err(Failure::Run)?;
    Ok(printed?)
}

fn through_port(
    registry: &Registry,
    spec: &str,
    mut config: EmulatorConfig,
    supervisor: &Supervisor,
) -> Result<Run, Failure> {
    let capture = spec
        .parse::<PortSpec>()
        .is_ok_and(|spec| spec.driver() == "pcap");
    let port = registry.open(spec)?;
    let offered = port.capabilities();
    // A recording has no decisions about what is sent now.
    let rx_queues = if capture || offered.max_rx_queues == 0 {
        0
    } else {
        ports::rx_queues(&port, supervisor.queues)
    };
    let pool = Mempool::new(PoolConfig {
        buffers: BUFFERS * usize::from(rx_queues.max(1)),
        ..PoolConfig::default()
    })
    .context("memory for frames")?;
    let port = port.configure(PortConfig {
        rx_queues,
        ..PortConfig::new(pool.clone())
    })?;
    let started = port.start()?;
    let views = [PortView::new(&started)];
    let StartedPort { port, rx, mut tx } = started;
    let tx = tx.pop().context("the port has no transmit queue")?;
    config.addresses.src_mac = config.addresses.src_mac.or(offered.mac);

    let cache = pool.cache(CACHE).context("memory for frames")?;
    let mut link = PortLink::new(&config, tx, rx, cache, capture).map_err(anyhow::Error::new)?;
    if config.addresses.trigger_mac.is_none() && offered.mac.is_some() && rx_queues > 0 {
        link.resolve(&mut config, &TscClock::get(), &supervisor.stop)
            .map_err(anyhow::Error::new)?;
    }
    let sent = link.sent_view();
    let port = [port];
    let (mut emulator, link) = supervisor.launch(&config, link, &port, &views)?;
    let ledger = link.ledger();
    let (tx, rx) = link.into_queues();
    let stopped = ports::stop(port.into(), rx, vec![tx]);
    // What a file or a device refuses late is known only now.
    let late = sent.errors().saturating_sub(emulator.send_errors);
    emulator.frames_sent = emulator.frames_sent.saturating_sub(late);
    emulator.send_errors += late;
    let ports = vec![PortUse {
        spec: spec.into(),
        tx_packets: sent.packets(),
    }];
    let failed = stopped.err().map(anyhow::Error::new);
    Ok(supervisor.finish(&config, emulator, ports, &ledger, failed))
}

fn through_sockets(config: &EmulatorConfig, supervisor: &Supervisor) -> Result<Run, Failure> {
    let link = SocketLink::open(config).map_err(anyhow::Error::new)?;
    let (emulator, link) = supervisor.launch(config, link, &[], &[])?;
    let spec = format!("udp:{}", config.addresses.trigger().socket);
    let ports = vec![PortUse {
        spec,
        tx_packets: emulator.frames_sent,
    }];
    Ok(supervisor.finish(config, emulator, ports, &link.ledger(), None))
}

/// The main thread's part: signals, time, progress.
struct Supervisor {
    stop: StopFlag,
    queues: Option<u16>,
    cpu: Option<usize>,
    isolated: bool,
    duration: Option<Duration>,
    quiet: bool,
    truth_out: Option<TruthOut>,
    truth_events: Option<Output>,
    /// Until they are served.
    metrics: Cell<Option<Listener>>,
}

/// The files that the command line names.
struct Outputs {
    truth_out: Option<Output>,
    truth_events: Option<Output>,
    report: Option<Output>,
    /// Of `--json FILE`.
    json: Option<Output>,
}

impl Outputs {
    fn new(cli: &Cli) -> anyhow::Result<Self> {
        let [report, json] = &cli.report.files();
        let files = [
            ("--truth-out", &cli.truth_out),
            ("--truth-events", &cli.truth_events),
            (report.0, &report.1),
            (json.0, &json.1),
        ];
        let overwrite = cli.report.overwrite;
        let [truth_out, truth_events, report, json] = name_outputs(&files, None, overwrite)?;
        let read = cli
            .config
            .iter()
            .map(|path| NamedFile::read("--config", path));
        let port = cli.port.get().into_iter().flat_map(NamedFile::of_port);
        let written = [&truth_out, &truth_events, &report, &json];
        let written = written.into_iter().flatten().map(Output::file);
        expect_distinct(&read.chain(port).chain(written).collect::<Vec<_>>())?;
        Ok(Self {
            truth_out,
            truth_events,
            report,
            json,
        })
    }
}

/// The configuration as it was asked for, in TOML, and where it goes.
struct TruthOut {
    output: Output,
    text: String,
}

impl TruthOut {
    fn write(&self) -> anyhow::Result<()> {
        let written = self.output.create()?.write_all(self.text.as_bytes());
        written.with_context(|| self.output.name())
    }
}

/// Writes what happens in all events of a run.
fn write_events(output: &Output, config: &EmulatorConfig) -> anyhow::Result<()> {
    let file = output.create()?;
    let truth = Truth::of(config)?;
    let mut times = truth.timeline().cursor();
    let (mut event, mut line) = (TruthEvent::default(), foreign::header());
    let mut file = BufWriter::new(file);
    for n in 0..truth.timeline().events() {
        truth.event(n, &mut event);
        foreign::write_event(times.moment(n), &event.rings, &mut line);
        file.write_all(line.as_bytes())?;
        line.clear();
    }
    Ok(file.flush()?)
}

impl Supervisor {
    fn new(cli: &Cli, config: &EmulatorConfig, outputs: &Outputs) -> Result<Self, Failure> {
        let truth_out = match &outputs.truth_out {
            Some(output) => Some(TruthOut {
                output: output.clone(),
                text: config
                    .to_toml()
                    .context("the configuration cannot be written as TOML")?,
            }),
            None => None,
        };
        let stop = pollux_app::stop_on_signals().context("signals cannot be handled")?;
        let cpu = Cpus::of(&cli.cores).first().copied();
        Ok(Self {
            stop,
            queues: cli.queues,
            cpu,
            isolated: cpu.is_some_and(|cpu| lcore::check_isolation("emulator", cpu)),
            duration: cli.duration.duration,
            quiet: cli.quiet,
            truth_out,
            truth_events: outputs.truth_events.clone(),
            metrics: Cell::new(cli.metrics.listen()?),
        })
    }

    /// Runs the loop on its own core, and waits for it. Looks after the ports, if there are any.
    fn launch<L: Link + Send + 'static>(
        &self,
        config: &EmulatorConfig,
        link: L,
        ports: &[Port<Started>],
        views: &[PortView],
    ) -> Result<(EmulatorReport, L), Failure> {
        let clock = TscClock::get();
        let ledgers = Ledgers {
            ledger: link.ledger(),
            ports: views.to_vec(),
        };
        let mut emulator = EmulatorLoop::new(config, link, clock, self.stop.clone())
            .map_err(|error| Failure::Usage(error.into()))?;
        let progress = emulator.progress();
        let page = page::Source {
            ledgers,
            progress: Arc::clone(&progress),
        };
        let mut watch = Watch::start(self.metrics.take(), page, views, self.cpu.as_slice())?;
        // Only now, when everything has been opened: a run that never was leaves no truth.
        if let Some(truth_out) = &self.truth_out {
            truth_out.write()?;
        }
        if let Some(output) = &self.truth_events {
            write_events(output, config).with_context(|| output.name())?;
        }
        let lcore = lcore::launch("emulator", self.cpu, move || {
            let report = emulator.run();
            (report, emulator.into_link())
        })
        .map_err(anyhow::Error::new)?;
        self.wait(&progress, || {
            if !watch.keep(ports) {
                self.stop.stop();
            }
            lcore.is_finished()
        });
        Ok(lcore.join().map_err(anyhow::Error::new)?)
    }

    fn wait(&self, progress: &Progress, mut finished: impl FnMut() -> bool) {
        let start = Instant::now();
        let (mut shown, mut events) = (start, 0);
        while !finished() {
            std::thread::sleep(Duration::from_millis(20));
            let now = Instant::now();
            if self
                .duration
                .is_some_and(|duration| now - start >= duration)
            {
                self.stop.stop();
            }
            if !self.quiet && now - shown >= Duration::from_secs(1) {
                let (sent, decided) = (progress.events.get(), progress.decided.get());
                let rate = (sent - events) as f64 / (now - shown).as_secs_f64();
                let frames = progress.frames.get();
                user_message(format_args!(
                    "{:6.0} s  {sent} events ({rate:.0}/s), {frames} frames, {decided} decided",
                    (now - start).as_secs_f64()
                ));
                (shown, events) = (now, sent);
            }
        }
    }

    fn finish(
        &self,
        config: &EmulatorConfig,
        emulator: EmulatorReport,
        ports: Vec<PortUse>,
        ledger: &Ledger,
        failed: Option<anyhow::Error>,
    ) -> Run {
        let core = self.cpu.map(|cpu| Core {
            cpu,
            isolated: self.isolated,
        });
        Run {
            config: *config,
            emulator,
            ports,
            core,
            balance: ledger.balance(),
            failed,
        }
    }
}
