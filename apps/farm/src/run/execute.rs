//! Execution of a run: open, launch, watch, end in order, report.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use pollux_app::metrics::{Ledgers, Watch};
use pollux_app::ports::{self, PortView};
use pollux_app::{patience, user_message};
use pollux_farm::role::Address;
use pollux_mempool::Mempool;
use pollux_pmd::lcore::{self, Lcore, StopFlag};
use pollux_pmd::port::{Port, Started};
use pollux_pmd::{Clock as _, LatencyHistogram, Ledger, Tally, TscClock};

use super::build::{Common, Own, Parts, station};
use super::counters::{Control, Counts, Shown};
use super::outcome::Outcome;
use super::page::ServedPage;
use super::plan::{Plan, micros};
use super::report::{Ended, PATIENCE, Report};
use super::switch_loop::SwitchLoop;
use super::wiring::Wiring;
use super::work::Suspension;

/// Period of housekeeping.
const ROUND: Duration = Duration::from_millis(10);

/// Time between two lines about the progress.
const TELL: Duration = Duration::from_secs(1);

/// Time-outs of the scheduler in which an event has to be decided.
const TIMEOUTS: u32 = 8;

/// Longest time at the end in which no frame under way arrives.
const DRAIN: Duration = Duration::from_secs(2);

/// A loop of the run.
type Loop = Lcore<Result<Outcome>>;

/// Executes a run.
///
/// # Errors
/// What could not be opened, or did not end in order.
pub fn execute(plan: &Plan) -> Result<()> {
    let stop = pollux_app::stop_on_signals().context("cannot handle signals")?;
    let reports = plan.reports.ready()?;
    let pool = Mempool::new(plan.pool()).context("packet buffers")?;
    let mut ledger = Ledger::new();
    let Wiring {
        ports,
        views,
        loops,
        switch,
    } = Wiring::open(plan, &pool, &mut ledger)?;
    let latency = LatencyHistogram::new();
    let latency_view = latency.view();
    let mut latency = Some(latency);
    let clock = TscClock::get();
    let suspension = plan.options.suspend.map(micros);
    let suspension = suspension.map(|time| Suspension::new(time, plan.topology.nodes()));
    let common = Common {
        control: Arc::default(),
        counts: Arc::new(Counts::new(plan.topology.columns())),
        pool,
        clock,
        start: clock.now(),
        suspension,
    };
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
    let switch = match (switch, &plan.switch) {
        (Some(lines), Some(config)) => {
            let (control, gives_way) = (Arc::clone(&common.control), plan.shares_cpus());
            let switch = SwitchLoop::new(lines, config, &common.pool, control, gives_way)?;
            let view = switch.counted_in(&mut ledger);
            Some((switch, view))
        }
        _ => None,
    };
    let (switch, switched) = switch.unzip();
    let shown = Arc::new(Shown {
        books: Ledgers {
            ledger,
            ports: views.clone(),
        },
        counts: Arc::clone(&common.counts),
        latency: latency_view,
    });
    let cpus = plan.cpus();
    let watch = Watch::start(plan.options.metrics, Arc::clone(&shown), &views, &cpus)?;
    let page = plan.options.http;
    let page = page.map(|address| ServedPage::start(address, plan, &shown));
    let monitoring = (watch, page.transpose()?);
    let began = Instant::now();
    let threads = launch(plan, &common, own)?;
    let cpu = plan.cpus.last().copied().flatten();
    let switch = switch.map(|switch| lcore::launch("switch", cpu, move || switch.run()));
    let switch = switch.transpose()?;
    lcore::keep_off(&cpus);
    let watched = Watched {
        plan,
        control: &common.control,
        counts: &common.counts,
        ports: &ports,
        views: &views,
        threads: &threads,
    };
    let end = watched.watch(monitoring, &stop);
    let left = watched.drain();
    common.control.stop.stop();
    let mut outcomes = join(threads);
    let duration = began.elapsed();
    let (mut rx, mut tx) = switch.map(Lcore::join).transpose()?.unwrap_or_default();
    for outcome in outcomes.iter_mut().flatten() {
        rx.append(&mut outcome.rx);
        tx.append(&mut outcome.tx);
    }
    let outcomes = outcomes?;
    let stopped = ports::stop(ports, rx, tx);
    let ended = Ended {
        end,
        duration,
        left,
    };
    let report = Report::new(plan, &shown, &outcomes, ended, switched.as_ref());
    reports.tell(&report, |out| report.write(out))?;
    stopped.context("the run ended, but not cleanly")?;
    shown.books.ledger.check()?;
    report.check(plan)
}

/// Launches the loops.
fn launch(plan: &Plan, common: &Common, own: Vec<Own>) -> Result<Vec<Loop>> {
    let mut threads = Vec::new();
    for ((number, own), &cpu) in own.into_iter().enumerate().zip(&plan.cpus) {
        let parts = Parts::of(plan, number)?;
        let common = common.clone();
        let body = move || {
            let control = Arc::clone(&common.control);
            let mut station = station(&parts, common, own)?;
            control.ready.fetch_add(1, Ordering::Release);
            station.run();
            Ok(Outcome::of(station))
        };
        threads.push(lcore::launch(&format!("loop {number}"), cpu, body)?);
    }
    Ok(threads)
}

/// Waits for the end of the loops.
fn join(threads: Vec<Loop>) -> Result<Vec<Outcome>> {
    // All are waited for, whatever one of them says.
    let joined: Vec<_> = threads.into_iter().map(Lcore::join).collect();
    joined.into_iter().map(|outcome| outcome?).collect()
}

/// A run that is watched.
struct Watched<'a> {
    plan: &'a Plan<'a>,
    control: &'a Control,
    counts: &'a Counts,
    ports: &'a [Port<Started>],
    views: &'a [PortView],
    threads: &'a [Loop],
}

impl Watched<'_> {
    /// Waits for the end of the run; how it ended.
    fn watch(&self, monitoring: (Watch, Option<ServedPage>), stop: &StopFlag) -> &'static str {
        let (mut watch, mut page) = monitoring;
        let start = Instant::now();
        let limit = self.plan.options.duration.duration;
        let (mut told, mut moved) = ((start, 0), (start, 0));
        let mut asked: Option<Instant> = None;
        loop {
            let decided = self.counts.decided.get();
            let triggered = self.counts.triggered.get();
            if self.control.done.is_set() {
                return if asked.is_some() && self.is_cut() {
                    "stopped"
                } else {
                    "complete"
                };
            }
            if self.threads.iter().any(Lcore::is_finished) {
                return "failed";
            }
            let over = limit.is_some_and(|limit| start.elapsed() >= limit);
            if (over || stop.is_set() || !watch.keep(self.ports)) && asked.is_none() {
                self.control.enough.stop();
                asked = Some(Instant::now());
            }
            if decided + triggered != moved.1 {
                moved = (Instant::now(), decided + triggered);
            }
            let is_waiting = triggered > decided || asked.is_some();
            // Where round trips take long, so does what is sent again.
            let timeout = Duration::from_micros(self.counts.timeout_us.get());
            let longest = PATIENCE.max(timeout.saturating_mul(TIMEOUTS));
            if is_waiting && moved.0.elapsed() >= patience(longest) {
                return "stalled";
            }
            if told.0.elapsed() >= TELL {
                self.tell(start.elapsed(), told.0.elapsed(), decided - told.1);
                told = (Instant::now(), decided);
            }
            if let Some(page) = &mut page {
                page.keep();
            }
            std::thread::sleep(ROUND);
        }
    }

    /// Whether a run of so many events had fewer.
    fn is_cut(&self) -> bool {
        let events = self.plan.options.events;
        events.is_some_and(|events| self.counts.triggered.get() < events)
    }

    fn tell(&self, since: Duration, interval: Duration, decided: u64) {
        if self.plan.options.quiet {
            return;
        }
        user_message(format_args!(
            "{:>5} s {:>10} events {:>9.0}/s, {} in flight, {} sent again, {} excluded",
            since.as_secs(),
            self.counts.decided.get(),
            decided as f64 / interval.as_secs_f64(),
            self.counts.in_flight.get(),
            self.counts.resent.get(),
            self.counts.excluded.get(),
        ));
    }

    /// Waits until all frames that were sent are taken; how many are left.
    fn drain(&self) -> u64 {
        let mut moving = Instant::now();
        let mut quiet = 0;
        let mut last = 0;
        loop {
            let traffic = self.views.iter().map(PortView::traffic);
            let (sent, taken) = traffic.fold((0, 0), |(sent, taken), traffic| {
                (sent + traffic.tx_packets, taken + traffic.rx_packets)
            });
            let left = sent.saturating_sub(taken) + self.control.switch_waits.get();
            let moved = sent + taken;
            quiet = if left == 0 && moved == last {
                quiet + 1
            } else {
                0
            };
            if moved != last {
                moving = Instant::now();
            }
            last = moved;
            if quiet == 2 || moving.elapsed() >= patience(DRAIN) {
                return left;
            }
            std::thread::sleep(ROUND);
        }
    }
}
