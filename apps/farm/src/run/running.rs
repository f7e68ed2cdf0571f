//! The loops of this process, running: opened, launched, ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use pollux_app::http::Listeners;
use pollux_app::metrics::{Ledgers, Watch};
use pollux_app::ports::{self, PortView};
use pollux_farm::role::Address;
use pollux_mempool::Mempool;
use pollux_pmd::lcore::{self, Lcore};
use pollux_pmd::port::{Port, PortError, RxQueue, Started, TxQueue};
use pollux_pmd::{LatencyHistogram, Ledger, Tally};
use pollux_switch::SwitchView;

use super::build::{Common, Own, Parts, station};
use super::counters::{Control, Counts, Shown};
use super::figures::Processes;
use super::layout::Layout;
use super::outcome::{Left, Outcome};
use super::page::ServedPage;
use super::part::Part;
use super::plan::{Plan, micros};
use super::run_clock::RunClock;
use super::switch_loop::SwitchLoop;
use super::wiring::{Lines, Wiring};
use super::work::Suspension;

/// A loop of the run.
type Loop = Lcore<Result<Outcome>>;

/// Loops of this process, and the switch if it is here.
pub struct Running {
    pub control: Arc<Control>,
    pub counts: Arc<Counts>,
    pub shown: Arc<Shown>,
    pub ports: Vec<Port<Started>>,
    /// The switch's counts.
    pub switched: Option<SwitchView>,
    threads: Vec<Loop>,
    switch: Option<Lcore<(Vec<RxQueue>, Vec<TxQueue>)>>,
    began: Instant,
}

/// Loops that have ended.
pub struct Stopped {
    pub part: Part,
    pub duration: Duration,
    pub ports: Result<(), PortError>,
}

impl Running {
    /// Opens the ports, of which those to other processes have these specs, and launches the loops.
    ///
    /// # Errors
    /// What could not be opened.
    pub fn open(plan: &Plan, specs: &[String]) -> Result<Self> {
        let pool = Mempool::new(plan.pool()).context("packet buffers")?;
        let mut ledger = Ledger::new();
        let Wiring {
            ports,
            views,
            loops,
            switch,
        } = Wiring::open(plan, specs, &pool, &mut ledger)?;
        let latency = LatencyHistogram::new();
        let processes = match plan.layout {
            Layout::Processes(_) => plan.shares.len(),
            _ => 0,
        };
        let processes = Arc::new(Processes::new(processes));
        let latency_view = processes.latency().unwrap_or_else(|| latency.view());
        let suspension = plan.asked.suspend.map(micros);
        let suspension = suspension.map(|time| Suspension::new(time, plan.topology.nodes()));
        let common = Common {
            control: Arc::default(),
            counts: Arc::new(Counts::new(plan.topology.columns())),
            pool,
            clock: RunClock::start(),
            suspension,
        };
        let own = own(plan, loops, latency, &mut ledger);
        let switch = match (switch, &plan.switch) {
            (Some(lines), Some(config)) => {
                let (control, rest) = (Arc::clone(&common.control), plan.rest());
                let switch = SwitchLoop::new(lines, config, &common.pool, control, rest)?;
                let view = switch.counted_in(&mut ledger);
                Some((switch, view))
            }
            _ => None,
        };
        let (switch, switched) = switch.unzip();
        let shown = Arc::new(Shown {
            books: Ledgers {
                ledger,
                ports: views,
            },
            counts: Arc::clone(&common.counts),
            latency: latency_view,
            processes,
        });
        let began = Instant::now();
        let threads = launch(plan, &common, own)?;
        let cpu = plan.cpus.last().copied().flatten();
        let switch = switch.map(|switch| lcore::launch("switch", cpu, move || switch.run()));
        let switch = switch.transpose()?;
        Ok(Self {
            control: common.control,
            counts: common.counts,
            shown,
            ports,
            switched,
            threads,
            switch,
            began,
        })
    }

    /// Keeps this thread off the CPUs of the loops, and serves metrics and page at `listeners`.
    ///
    /// # Errors
    /// A thread that cannot be started.
    pub fn monitor(
        &self,
        plan: &Plan,
        listeners: Listeners,
    ) -> Result<(Watch, Option<ServedPage>)> {
        let source = Arc::clone(&self.shown);
        let watch = Watch::start(listeners.metrics, source, self.views(), &plan.cpus())?;
        let page = listeners.page;
        let page = page.map(|listener| ServedPage::start(listener, plan, &self.shown));
        let page = page.transpose()?;
        lcore::keep_off(&plan.cpus());
        Ok((watch, page))
    }

    /// Whether a loop has ended.
    pub fn has_failed(&self) -> bool {
        self.threads.iter().any(Lcore::is_finished)
    }

    /// Readers of the ports.
    pub fn views(&self) -> &[PortView] {
        &self.shown.books.ports
    }

    /// Frames that a port has sent and received.
    pub fn traffic(&self) -> impl Iterator<Item = (u64, u64)> {
        let traffic = self.views().iter().map(PortView::traffic);
        traffic.map(|traffic| (traffic.tx_packets, traffic.rx_packets))
    }

    /// Ends the loops.
    ///
    /// # Errors
    /// A loop that failed.
    pub fn end(self) -> Result<Stopped> {
        self.control.stop.stop();
        // All are waited for, whatever one of them says.
        let joined: Vec<_> = self.threads.into_iter().map(Lcore::join).collect();
        let duration = self.began.elapsed();
        let (mut rx, mut tx) = self
            .switch
            .map(Lcore::join)
            .transpose()?
            .unwrap_or_default();
        let mut left = Left::default();
        let mut result = Ok(());
        for outcome in joined {
            match outcome.map_err(Into::into).and_then(|outcome| outcome) {
                Ok(mut outcome) => {
                    rx.append(&mut outcome.rx);
                    tx.append(&mut outcome.tx);
                    left.add(outcome.left);
                }
                Err(error) => result = result.and(Err(error)),
            }
        }
        let ports = ports::stop(self.ports, rx, tx);
        result?;
        Ok(Stopped {
            part: Part::new(left, &self.shown),
            duration,
            ports,
        })
    }
}

/// What each loop has for itself.
fn own(plan: &Plan, loops: Vec<Lines>, latency: LatencyHistogram, ledger: &mut Ledger) -> Vec<Own> {
    let mut latency = Some(latency);
    let mut own = Vec::new();
    for (number, lines) in loops.into_iter().enumerate() {
        let tally = Tally::new();
        ledger.add(format!("loop {number}"), tally.view());
        let is_scheduler = plan.loop_of(Address::Scheduler) == number;
        own.push(Own {
            lines,
            tally,
            latency: if is_scheduler { latency.take() } else { None },
        });
    }
    own
}

/// Launches the loops.
fn launch(plan: &Plan, common: &Common, own: Vec<Own>) -> Result<Vec<Loop>> {
    let mut threads = Vec::new();
    for ((number, own), &cpu) in own.into_iter().enumerate().zip(&plan.cpus) {
        let parts = Parts::of(plan, number)?;
        let common = common.clone();
        let body = move || {
            let mut station = station(&parts, common, own)?;
            station.run();
            Ok(Outcome::of(station))
        };
        threads.push(lcore::launch(&format!("loop {number}"), cpu, body)?);
    }
    Ok(threads)
}
