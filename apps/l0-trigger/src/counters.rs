//! All counters of a run, readable at any time: for the report, the page and the metrics.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use pollux_app::metrics::{Ledgers, Page, Source};
use pollux_na62::l0::L0Stats;
use pollux_na62::stages::{AnswerCounts, RuleBook};
use pollux_output::RunMonitor;
use pollux_pipelines::{BackPressure, Metrics};
use pollux_pmd::stream::StreamView;
use pollux_pmd::{Balance, Count, LatencyView, Percentiles};

use crate::boards::TOO_SLOW;
use crate::event_outputs::OutputView;
use crate::file_counts::FilesCounts;
use crate::groups::{self, GroupView};
use crate::receive_loop::ReceiveView;
use crate::stage_metrics;
use crate::worker::WorkerView;

/// Views of the loops' counters.
pub struct Counters {
    pub ledgers: Ledgers,
    pub stats: Arc<L0Stats>,
    pub rules: RuleBook,
    pub streams: StreamView,
    pub answers: Arc<AnswerCounts>,
    /// What stages have registered.
    pub metrics: Metrics,
    /// The time that each stage spent on each batch, and `total`: from the arrival of an event's
    /// first frame to the transmission of its decision.
    pub latency: Vec<(String, LatencyView)>,
    /// Time for which the loop was kept from its work, per interruption.
    pub gaps: LatencyView,
    /// Rounds in which the loop took no frames because a stage was full, and because an output was.
    pub stage_stops: Arc<BackPressure>,
    pub output_stops: Arc<Count>,
    pub workers: Vec<WorkerView>,
    pub receivers: Vec<ReceiveView>,
    pub files: FilesCounts,
    pub outputs: Vec<OutputView>,
    /// One for each port that has joined multicast groups.
    pub groups: Vec<GroupView>,
}

impl Counters {
    fn measure_streams(&self, page: &mut Page<'_>) -> fmt::Result {
        let streams = || self.streams.counts();
        let stream = |id: pollux_pmd::stream::StreamId| [("stream", id.0.to_string())];
        let frames = streams().map(|(id, counts)| (stream(id), counts.packets));
        page.counter("stream_frames", "Datagrams of each stream", frames)?;
        let bytes = streams().map(|(id, counts)| (stream(id), counts.bytes));
        page.counter("stream_bytes", "Their payloads", bytes)?;
        let sources = streams().zip(&self.stats.sources);
        let faults = sources.flat_map(|((id, _), source)| {
            let faults = [
                ("missing", &source.missing),
                ("duplicate", &source.duplicates),
                ("reordered", &source.reordered),
                ("late", &source.late),
                ("resync", &source.resyncs),
                ("clock-skew", &source.skewed),
                ("out-of-window", &source.out_of_window),
                ("misrouted", &source.misrouted),
                ("unreadable", &source.unreadable),
                ("elsewhere", &source.elsewhere),
                ("stray", &source.strays),
                ("hot", &source.hot),
            ];
            faults.map(|(fault, count)| {
                let [stream] = stream(id);
                ([stream, ("fault", fault.into())], count.get())
            })
        });
        let help = "What sequence numbers, time stamps, identity and hits say of each stream";
        page.counter("stream_sequence_faults", help, faults)?;
        let sources = || streams().zip(&self.stats.sources);
        let refused = sources().flat_map(|((id, _), source)| {
            source.refused_fragments().map(|(cause, n)| {
                let [stream] = stream(id);
                ([stream, ("cause", cause.name().into())], n)
            })
        });
        let help = "Fragments of each stream that are part of no event, by cause";
        page.counter("stream_refused_fragments", help, refused)?;
        let off = sources().map(|((id, _), source)| (stream(id), source.off.get() as f64));
        let help = "1 while a stream's time stamps differ from those of most others";
        page.gauge("stream_clock_off", help, off)?;
        let missed = sources().map(|((id, _), source)| (stream(id), source.missed.get()));
        let help = "Events of most other streams without this one";
        page.counter("stream_missed_events", help, missed)?;
        let named = streams().flat_map(|(id, _)| {
            let faults = self.stats.faults(id.0.into()).into_iter();
            faults.map(move |fault| {
                let [stream] = stream(id);
                ([stream, ("fault", fault.into())], 1.0)
            })
        });
        let help = "1 for what is wrong with the board of a stream, from when it is found";
        page.gauge("stream_fault", help, named)
    }
}

impl RunMonitor for Counters {
    fn events(&self) -> u64 {
        self.stats.events.built.get()
    }

    fn accepted(&self) -> u64 {
        self.stats.events.accepted.get()
    }

    fn stages(&self) -> Vec<(String, Percentiles)> {
        let latency = self.latency.iter();
        let stages = latency.map(|(name, view)| (name.clone(), view.percentiles()));
        stages.collect()
    }
}

impl Source for Counters {
    fn measure(&self, page: &mut Page<'_>) -> fmt::Result {
        self.ledgers.measure(page)?;

        self.measure_streams(page)?;

        let events = &self.stats.events;
        let outcomes = [
            ("complete", &events.complete),
            ("incomplete", &events.incomplete),
            ("accepted", &events.accepted),
            ("rejected", &events.rejected),
            ("forced", &events.forced),
            ("overfull", &events.overfull),
            ("truncated", &events.truncated),
            ("disputed", &events.disputed),
            ("rings-cut", &events.rings_cut),
            ("no-buffer", &events.no_buffer),
        ];
        let outcomes = outcomes.map(|(name, count)| ([("outcome", name.into())], count.get()));
        page.counter(
            "l0_events",
            "Events, by each thing that became of them",
            outcomes,
        )?;
        let help = "Number of the burst that most boards are in, from 1";
        page.gauge("l0_burst", help, [([], events.burst.get() as f64)])?;
        page.counter("l0_rings", "Rings found", [([], events.rings.get())])?;
        page.counter("l0_hits", "Hits in built events", [([], events.hits.get())])?;
        self.measure_refused_hits(page)?;

        // Over all rule sets of the run: a rule is identified by its name.
        let sets = self.rules.sets();
        let mut accepts = BTreeMap::<&str, u64>::new();
        for rule in sets.iter().flat_map(|set| &set.rules) {
            *accepts.entry(&rule.rule.name).or_default() += rule.accepted.get();
        }
        let accepts = accepts
            .iter()
            .map(|(&name, &n)| ([("rule", name.into())], n));
        page.counter("l0_rule_accepts", "Events that each rule accepted", accepts)?;
        let monitored = sets.iter().map(|set| set.monitored.get()).sum();
        let help = "Rejected events that are kept for monitoring";
        page.counter("l0_monitored", help, [([], monitored)])?;
        let help = "Rules that took the place of others";
        let swaps = sets.len().saturating_sub(1) as u64;
        page.counter("l0_rule_swaps", help, [([], swaps)])?;

        let answers = &self.answers;
        let decisions = [
            ("sent", &answers.sent),
            ("untold", &answers.no_destination),
            ("no-room", &answers.no_room),
            ("refused", &answers.refused),
            ("unresolved", &answers.unresolved),
        ];
        let decisions = decisions.map(|(name, count)| ([("outcome", name.into())], count.get()));
        page.counter(
            "l0_decisions",
            "Decisions, by what became of them",
            decisions,
        )?;
        let late = [([], answers.late.get())];
        page.counter(
            "l0_late_decisions",
            "Decisions that departed after their budget",
            late,
        )?;
        let unmarked = [([], answers.unmarked.get())];
        page.counter(
            "l0_unmarked_decisions",
            "Late decisions that were sent without a mark that they are",
            unmarked,
        )?;
        let missed = [([], answers.missed.get())];
        page.counter(
            "l0_deadline_missed",
            "Times that the budget was missed",
            missed,
        )?;

        let FilesCounts { recording, record } = &self.files;
        let files = [("events-out", recording), ("record", record)];
        let files = files.into_iter().flat_map(|(file, counts)| {
            let so_far = counts.as_ref().map(|counts| counts.so_far());
            let fates = so_far.map(|n| [("written", n.written), ("lost", n.lost)]);
            fates
                .into_iter()
                .flatten()
                .map(move |(fate, n)| ([("file", file.into()), ("outcome", fate.into())], n))
        });
        let help = "Events that are in each file, and those that should be";
        page.counter("l0_recorded_events", help, files)?;
        self.measure_outputs(page)?;

        let stops = [
            ("stage", self.stage_stops.stops.get()),
            ("output", self.output_stops.get()),
        ];
        let stops = stops.map(|(full, n)| ([("full", full.into())], n));
        let help =
            "Rounds of the trigger's loop without reception, as a stage or an output was full";
        page.counter("l0_reception_stops", help, stops)?;

        groups::measure(&self.groups, page)?;
        stage_metrics::measure(&self.metrics, page)?;

        self.measure_times(page)
    }
}

impl Counters {
    /// Events that were built and not decided, because a worker did not return them.
    pub fn undecided(&self) -> u64 {
        let counts = self.workers.iter().map(|worker| &worker.counts);
        counts.map(|counts| counts.undecided.get()).sum()
    }

    /// Tells the diagnosis of the boards how many frames the trigger was too slow for: they are missing
    /// by sequence number too.
    pub fn note_overload(&self) -> Balance {
        let balance = self.ledgers.ledger.balance();
        let drops = TOO_SLOW.map(|cause| balance.dropped_for(cause));
        self.stats.events.overload_drops.set(drops.iter().sum());
        balance
    }

    fn measure_refused_hits(&self, page: &mut Page<'_>) -> fmt::Result {
        let refused = self.stats.events.refused_hits();
        let refused = refused.map(|(cause, n)| ([("cause", cause.name().into())], n));
        let help = "Hits that merge refused, by cause";
        page.counter("l0_refused_hits", help, refused)
    }

    fn measure_outputs(&self, page: &mut Page<'_>) -> fmt::Result {
        let events = self.outputs.iter().flat_map(|output| {
            let counts = &output.counts;
            let outcomes = [
                ("delivered", &counts.delivered),
                ("queue-full", &counts.queue.missed),
                ("refused", &counts.refused),
                ("unsent", &counts.unsent),
                ("repeated", &counts.repeated),
            ];
            outcomes.map(|(outcome, count)| {
                let output = ("output", output.spec.clone());
                ([output, ("outcome", outcome.into())], count.get())
            })
        });
        let help = "Events of each output: delivered, and lost by cause";
        page.counter("l0_output_events", help, events)
    }

    fn measure_workers(&self, page: &mut Page<'_>) -> fmt::Result {
        let core = |worker: &WorkerView| [("core", worker.name.clone())];
        let workers = || self.workers.iter();
        let undecided = workers().map(|w| (core(w), w.counts.undecided.get()));
        let help = "Events that each worker did not bring back in time, or ended with";
        page.counter("l0_undecided_events", help, undecided)?;
        let stalls = workers().map(|w| (core(w), w.counts.stalls.get()));
        let help = "Times that the trigger's loop stopped waiting for each worker";
        page.counter("l0_worker_stalls", help, stalls)
    }

    fn measure_receivers(&self, page: &mut Page<'_>) -> fmt::Result {
        let core = |receiver: &ReceiveView| [("core", receiver.name.clone())];
        let receivers = || self.receivers.iter();
        let frames = receivers().map(|r| (core(r), r.counts.frames.get()));
        let help = "Frames that each receive loop has passed on to the trigger's";
        page.counter("l0_receiver_frames", help, frames)?;
        let dropped = receivers().map(|r| (core(r), r.dropped()));
        let help = "Frames that each receive loop has dropped";
        page.counter("l0_receiver_drops", help, dropped)?;
        let stops = receivers().map(|r| (core(r), r.counts.stops.get()));
        let help =
            "Polls of a queue that each receive loop left out, as the trigger's loop was behind";
        page.counter("l0_receiver_stops", help, stops)
    }

    fn measure_times(&self, page: &mut Page<'_>) -> fmt::Result {
        self.measure_workers(page)?;
        self.measure_receivers(page)?;
        let latency = self.latency.iter();
        let latency = latency.map(|(name, view)| ([("stage", name.clone())], view.clone()));
        let help = "A batch in each stage; total: from an event's first frame to its decision";
        page.latency("l0_latency_seconds", help, latency)?;
        let workers = self.workers.iter();
        let jobs = workers.map(|w| ([("core", w.name.clone())], w.jobs.clone()));
        let help = "The jobs of each worker: up to sixteen events";
        page.latency("l0_job_seconds", help, jobs)?;
        let workers = self.workers.iter();
        let gaps = workers.map(|w| ([("core", w.name.clone())], w.gaps.clone()));
        let trigger = ([("core", "trigger".into())], self.gaps.clone());
        let receivers = self.receivers.iter();
        let receivers = receivers.map(|r| ([("core", r.name.clone())], r.gaps.clone()));
        let gaps = std::iter::once(trigger).chain(gaps).chain(receivers);
        page.latency(
            "core_gap_seconds",
            "How long a loop was kept from its work",
            gaps,
        )
    }
}
