//! Watches a run until it ends.

use std::time::{Duration, Instant};

use pollux_app::metrics::Watch;
use pollux_app::{patience, user_message};
use pollux_pmd::lcore::StopFlag;

use super::children::Children;
use super::layout::Layout;
use super::page::ServedPage;
use super::plan::Plan;
use super::report::PATIENCE;
use super::running::Running;

/// Period of housekeeping.
pub const ROUND: Duration = Duration::from_millis(10);

/// A round that takes longer tells of this thread, not of the farm: it was not run, or the process was stopped.
const LATE: Duration = Duration::from_secs(1);

/// Time between two lines about the progress.
const TELL: Duration = Duration::from_secs(1);

/// Time-outs of the scheduler in which an event has to be decided.
const TIMEOUTS: u32 = 8;

/// Longest time at the end in which no frame under way arrives.
const DRAIN: Duration = Duration::from_secs(2);

/// Rounds without a frame after which none is under way, as the counts of other processes are read
/// later.
const QUIET: u32 = 8;

/// A run that is watched.
pub struct Watched<'a> {
    pub plan: &'a Plan,
    pub running: &'a Running,
    pub children: &'a mut Children,
}

impl Watched<'_> {
    /// Waits for the end of the run; how it ended.
    pub fn watch(
        &mut self,
        monitoring: (Watch, Option<ServedPage>),
        stop: &StopFlag,
    ) -> &'static str {
        let (mut watch, mut page) = monitoring;
        let (control, counts) = (&self.running.control, &self.running.counts);
        let start = Instant::now();
        let limit = self.plan.asked.duration;
        let (mut told, mut moved) = ((start, 0), (start, 0));
        let mut asked: Option<Instant> = None;
        let mut round = start;
        loop {
            let (now, before) = (Instant::now(), round);
            round = now;
            if now - before >= LATE {
                moved.0 += now - before;
            }
            let failed = self.children.follow(control) || self.running.has_failed();
            if control.done.is_set() {
                return if asked.is_some() && self.is_cut() {
                    "stopped"
                } else {
                    "complete"
                };
            }
            if failed {
                return "failed";
            }
            let over = limit.is_some_and(|limit| start.elapsed() >= limit);
            let is_asked = over || stop.is_set() || control.stop.is_set();
            if (is_asked || !watch.keep(&self.running.ports)) && asked.is_none() {
                control.enough.stop();
                asked = Some(Instant::now());
            }
            let decided = counts.decided.get();
            let progress = decided + counts.settled.get() + counts.triggered.get();
            if progress != moved.1 {
                moved = (Instant::now(), progress);
            }
            let is_waiting = counts.in_flight.get() > 0 || asked.is_some();
            // Where round trips take long, so does what is sent again.
            let timeout = Duration::from_micros(counts.timeout_us.get());
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
        let events = self.plan.asked.events;
        events.is_some_and(|events| self.running.counts.triggered.get() < events)
    }

    fn tell(&self, since: Duration, interval: Duration, decided: u64) {
        if self.plan.asked.quiet {
            return;
        }
        let (since, counts) = (since.as_secs(), &self.running.counts);
        let awaited = counts.awaited.get();
        if awaited > 0 {
            user_message(format_args!("{since:>5} s, waits for {awaited} members"));
            return;
        }
        let rest = format!(
            "{} in flight, {} sent again, {} excluded",
            counts.in_flight.get(),
            counts.resent.get(),
            counts.excluded.get(),
        );
        if let Layout::Part(_) = self.plan.layout {
            let (triggered, settled) = (counts.triggered.get(), counts.settled.get());
            user_message(format_args!(
                "{since:>5} s {triggered:>10} events triggered, {settled} packs decided, {rest}"
            ));
            return;
        }
        user_message(format_args!(
            "{since:>5} s {:>10} events {:>9.0}/s, {rest}",
            counts.decided.get(),
            decided as f64 / interval.as_secs_f64(),
        ));
    }

    /// Frames that were sent, and taken. Those of a process that is lost, or late, count in neither.
    fn traffic(&self) -> (u64, u64) {
        let own = self.running.traffic().enumerate();
        let own = own.filter(|&(port, _)| self.children.counts(port));
        let all = own
            .map(|(_, traffic)| traffic)
            .chain(self.children.traffic());
        all.fold((0, 0), |(sent, taken), (tx, rx)| (sent + tx, taken + rx))
    }

    /// Waits until all frames that were sent are taken; how many are left.
    pub fn drain(&mut self) -> u64 {
        let mut moving = Instant::now();
        let mut quiet = 0;
        let mut last = 0;
        loop {
            self.children.follow(&self.running.control);
            let (sent, taken) = self.traffic();
            let waits = self.running.control.switch_waits.get();
            let waits = if self.children.all_count() { waits } else { 0 };
            let left = sent.saturating_sub(taken) + waits;
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
            if quiet == QUIET || moving.elapsed() >= patience(DRAIN) {
                return left;
            }
            std::thread::sleep(ROUND);
        }
    }
}
