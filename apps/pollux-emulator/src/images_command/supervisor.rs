//! The main thread's part of a run: signals, time, progress.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::images::config::ImagesConfig;
use crate::images::link::PacketLink;
use crate::images::source::{Control, ImageSource, ImagesReport};
use crate::images::stack::Stack;
use pollux_app::metrics::{Ledgers, Watch};
use pollux_app::ports::PortView;
use pollux_app::{Failure, user_message};
use pollux_pmd::lcore::{self, StopFlag};
use pollux_pmd::{Ledger, Port, Started, TscClock};

use super::cli::ImagesCli;
use super::control::Begin;
use super::page::Source;
use super::report::{Core, Run};

/// Supervises a run.
pub(super) struct Supervisor<'a> {
    pub(super) stop: StopFlag,
    cpu: Option<usize>,
    pub(super) cli: &'a ImagesCli,
    begin: &'a Begin<'a>,
}

impl<'a> Supervisor<'a> {
    pub(super) fn new(
        cli: &'a ImagesCli,
        stop: StopFlag,
        cpus: &[usize],
        begin: &'a Begin<'a>,
    ) -> Self {
        let cpu = cpus.first().copied();
        Self {
            stop,
            cpu,
            cli,
            begin,
        }
    }

    /// Runs the loop on its own core, and waits for it. Looks after the ports, if there are any, and ends the
    /// run when the receiver is gone, as `is_there` says.
    pub(super) fn launch<L: PacketLink + Send + 'static>(
        &self,
        config: &ImagesConfig,
        stack: &Arc<Stack>,
        link: L,
        (ports, views): (&[Port<Started>], &[PortView]),
        is_there: impl Fn() -> bool,
    ) -> Result<(ImagesReport, L), Failure> {
        let ledgers = Ledgers {
            ledger: link.ledger(),
            ports: views.to_vec(),
        };
        let clock = TscClock::get();
        let mut source =
            ImageSource::new(config, Arc::clone(stack), link, clock, self.stop.clone());
        let control = source.control();
        let page = Source {
            ledgers,
            control: Arc::clone(&control),
        };
        let metrics = self.cli.metrics.listen()?;
        let mut watch = Watch::start(metrics, page, views, self.cpu.as_slice())?;
        if !(self.begin)(&control) {
            return Ok((source.report(), source.into_link()));
        }
        let lcore = lcore::launch("detector", self.cpu, move || {
            let report = source.run();
            (report, source.into_link())
        })
        .map_err(anyhow::Error::new)?;
        self.wait(&control, || {
            if !watch.keep(ports) || !is_there() {
                self.stop.stop();
            }
            lcore.is_finished()
        });
        Ok(lcore.join().map_err(anyhow::Error::new)?)
    }

    fn wait(&self, control: &Control, mut finished: impl FnMut() -> bool) {
        let start = Instant::now();
        let (mut shown, mut frames) = (start, 0);
        while !finished() {
            std::thread::sleep(Duration::from_millis(20));
            let now = Instant::now();
            let limit = self.cli.duration.duration;
            if limit.is_some_and(|duration| now - start >= duration) {
                self.stop.stop();
            }
            if !self.cli.quiet && now - shown >= Duration::from_secs(1) {
                let made = control.frames.get();
                let rate = (made - frames) as f64 / (now - shown).as_secs_f64();
                user_message(format_args!(
                    "{:6.0} s  {made} frames ({rate:.1}/s), {} packets",
                    (now - start).as_secs_f64(),
                    control.packets.get()
                ));
                (shown, frames) = (now, made);
            }
        }
    }

    pub(super) fn finish(
        &self,
        config: ImagesConfig,
        report: ImagesReport,
        ledger: &Ledger,
    ) -> Run {
        let core = self.cpu.map(|cpu| Core {
            cpu,
            isolated: lcore::check_isolation("detector", cpu),
        });
        Run {
            config,
            report,
            spec: String::new(),
            tx_packets: 0,
            core,
            stopped: self.stop.is_set(),
            balance: ledger.balance(),
            is_receiver_gone: false,
            failed: None,
        }
    }

    /// A run that was stopped before it began.
    pub(super) fn not_begun(&self, config: ImagesConfig, port: Option<String>) -> Run {
        let spec = port.unwrap_or_else(|| udp(&config));
        let report = ImagesReport {
            rate_asked: config.rate,
            ..ImagesReport::default()
        };
        Run {
            spec,
            ..self.finish(config, report, &Ledger::new())
        }
    }
}

/// The receiver, for the report of a run through sockets.
pub(super) fn udp(config: &ImagesConfig) -> String {
    format!("udp:{}", config.addresses.receiver().socket)
}
