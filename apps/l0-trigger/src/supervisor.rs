//! Supervisor of a run: work of the main thread while the loops run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pollux_app::{Reload, Service};
use pollux_emulator::link::PortLink;
use pollux_emulator::rings::RingCheck;
use pollux_emulator::run::EmulatorReport;
use pollux_pmd::lcore::{Lcore, StopFlag};
use pollux_pmd::{Port, Started};

use crate::answer_watch::AnswerWatch;
use crate::boards::BoardWatch;
use crate::counters::Counters;
use crate::decision_output::DecisionOutput;
use crate::event_display::Collector;
use crate::monitoring::Monitoring;
use crate::poll_loop::Finished;
use crate::receive_loop::ReceivePool;
use crate::reload::Rules;
use crate::tap::TAP_RECORDS;
use crate::worker_pool::WorkerPool;

/// Period of the iterations.
const ROUND: Duration = Duration::from_millis(20);

/// The loop of the emulated boards.
pub type BoardsLoop = Lcore<(EmulatorReport, PortLink)>;

/// Context of a run.
pub struct Host<'a> {
    /// Number of the run.
    pub run: Option<u32>,
    /// Ends the run.
    pub stop: StopFlag,
    /// Ends the program, and the run with it.
    pub quit: StopFlag,
    /// Requests a reload of the rules.
    pub reload: Reload,
    pub service: &'a mut Service,
    /// The program ends with this run.
    pub is_alone: bool,
    /// The report goes to standard output.
    pub prints_report: bool,
}

impl Host<'_> {
    /// Call it now and then while the loops run.
    fn keep(&mut self, counters: &Counters) {
        if self.quit.is_set() {
            self.stop.stop();
        }
        self.service.ready();
        // Each reading of the clock counts: a loop that stands still has none.
        self.service.alive(|| counters.gaps.percentiles().count);
    }

    /// Status text for the service manager.
    fn show(&mut self, built: u64, rate: f64) {
        let run = self.run.map_or_else(String::new, |run| format!(" {run}"));
        let status = format!("run{run}: {built} events, {rate:.0}/s");
        self.service.status(&status);
    }
}

/// Housekeeping of a run: progress, checks, monitoring, rules.
pub struct Supervisor<'a> {
    pub check: Option<RingCheck>,
    pub collector: Option<Collector>,
    pub counters: Arc<Counters>,
    pub boards: BoardWatch,
    pub answers: AnswerWatch,
    pub quiet: bool,
    pub monitoring: Monitoring,
    /// The handler of the embedding program.
    pub decisions: Option<DecisionOutput>,
    pub rules: Rules<'a>,
}

impl Supervisor<'_> {
    pub fn drain(&mut self) -> bool {
        let checked = self
            .check
            .as_mut()
            .is_some_and(|check| check.poll(TAP_RECORDS) > 0);
        let collected = self.collector.as_mut().is_some_and(Collector::collect);
        let handled = self
            .decisions
            .as_mut()
            .is_some_and(|decisions| decisions.poll(TAP_RECORDS) > 0);
        checked || collected || handled
    }

    /// Warns of new faults of the boards, and of the trigger itself.
    pub fn watch_boards(&mut self) {
        let balance = self.counters.note_overload();
        let now = Instant::now();
        self.boards.watch(&self.counters.stats, &balance, now);
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "all that runs meanwhile, and all that ends it"
    )]
    pub fn supervise(
        &mut self,
        ports: &[Port<Started>],
        trigger: &Lcore<Finished>,
        emulator: Option<&BoardsLoop>,
        worker_pool: &mut WorkerPool,
        receive_pool: &ReceivePool,
        host: &mut Host<'_>,
        halt: &StopFlag,
        limit: Option<Duration>,
    ) {
        let start = Instant::now();
        let mut shown = (start, 0);
        while !trigger.is_finished() {
            let busy = self.drain();
            self.rules.keep();
            host.keep(&self.counters);
            worker_pool.watch(&self.counters.workers);
            self.watch_boards();
            self.answers.watch(Instant::now());
            let over = limit.is_some_and(|limit| start.elapsed() >= limit);
            if !self.monitoring.keep(ports) || over || receive_pool.has_lost_one() {
                host.stop.stop();
            }
            if emulator.is_some_and(Lcore::is_finished) {
                halt.stop();
            }
            if shown.0.elapsed() >= Duration::from_secs(1) {
                let built = self.counters.stats.events.built.get();
                let rate = (built - shown.1) as f64 / shown.0.elapsed().as_secs_f64();
                let seconds = start.elapsed().as_secs();
                if !self.quiet {
                    pollux_app::user_message(format_args!(
                        "{seconds:>5} s {built:>12} events {rate:>10.0}/s"
                    ));
                }
                host.show(built, rate);
                shown = (Instant::now(), built);
            }
            if !busy {
                let left = limit.map_or(ROUND, |limit| limit.saturating_sub(start.elapsed()));
                std::thread::sleep(ROUND.min(left));
            }
        }
    }
}
