//! Summary: makes the report from the counters of the loops.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pollux_app::main_loss;
use pollux_app::ports::{PortView, Traffic};
use pollux_emulator::rings::RingCheck;
use pollux_emulator::run::EmulatorReport;
use pollux_na62::stages::RuleSetCounts;
use pollux_output::OutputReport;
use pollux_pmd::{ArrivalTime, Balance, Cause};

use crate::config::TriggerConfig;
use crate::counters::Counters;
use crate::files;
use crate::groups::GroupReport;
use crate::plan::Plan;
use crate::poll_loop::{End, Finished};
use crate::report::{
    AnswersReport, BackPressureReport, CoreReport, Counted, DeadlineReport, EventsReport,
    JitterReport, PortReport, ReceiverReport, Report, RuleReport, RuleSetReport, RunReport, SCHEMA,
    StreamReport, WorkerReport,
};

/// The data of a run for its report.
pub struct Ended {
    /// Number of the run.
    pub run: Option<u32>,
    pub finished: Finished,
    /// The device of a port is gone.
    pub gone: bool,
    pub emulator: Option<EmulatorReport>,
    pub counters: Arc<Counters>,
    pub check: Option<RingCheck>,
    pub files: files::Reports,
    pub outputs: Vec<OutputReport>,
    pub duration: Duration,
    pub cores: Vec<CoreReport>,
    /// Why no event was built, or no answer was delivered.
    pub wrong: Option<String>,
}

impl Ended {
    /// Why the run ended.
    fn end(&self) -> &'static str {
        let complete = || self.emulator.as_ref().is_some_and(|boards| boards.complete);
        match self.finished.end {
            _ if self.gone => "gone",
            End::Stopped if complete() => "complete",
            End::Stopped => "stopped",
            End::Exhausted => "exhausted",
            End::Enough => "enough",
        }
    }
}

fn port(view: &PortView) -> PortReport {
    let Traffic {
        spec,
        rx_packets,
        rx_bytes,
        tx_packets,
        tx_errors,
        unpolled_queues,
        ..
    } = view.traffic();
    PortReport {
        spec,
        rx_packets,
        rx_bytes,
        tx_packets,
        tx_errors,
        arrival_time: view.arrival_time().map(ArrivalTime::name),
        unpolled_queues,
    }
}

fn rule_set(set: &Arc<RuleSetCounts>) -> RuleSetReport {
    let rules = set.rules.iter().map(|rule| RuleReport {
        name: rule.rule.name.clone(),
        asks: rule.rule.to_string(),
        prescale: rule.rule.prescale,
        held: rule.held.get(),
        accepted: rule.accepted.get(),
    });
    RuleSetReport {
        set: set.number,
        events: set.events.get(),
        accepted: set.accepted.get(),
        monitored: set.monitored.get(),
        rules: rules.collect(),
    }
}

/// Why no event was built, although frames came, of which most were dropped. On a live port others may
/// send what is for no stream before the boards send anything: that is a warning alone.
pub fn unbuilt(counters: &Counters, recorded: bool) -> Option<String> {
    if counters.stats.events.built.get() > 0 {
        return None;
    }
    let sources = counters.stats.sources.iter();
    let unreadable = sources.map(|source| source.unreadable.get()).sum();
    let why = why_unbuilt(&counters.ledgers.ledger.balance(), unreadable, recorded)?;
    let mut streams = counters.streams.counts();
    if recorded || streams.any(|(_, counts)| counts.packets > 0) {
        return Some(why);
    }
    tracing::warn!("{why}");
    None
}

/// The cause of most drops, if they are most of the frames, and its remedy. Those that could not be read
/// on the ports of streams count whatever their cause is: they were meant for the trigger. Frames for
/// the ports of no stream come last, since others may have boards of their own on the same link.
fn why_unbuilt(balance: &Balance, unreadable: u64, recorded: bool) -> Option<String> {
    let loss = main_loss(balance, recorded).filter(|&(cause, frames)| match cause {
        Cause::DemuxMiss => unreadable <= balance.delivered,
        _ => frames > unreadable,
    });
    let (cause, frames) = loss.or_else(|| {
        let causes = [Cause::Malformed, Cause::BadVersion, Cause::Unsupported];
        let most = causes.into_iter().max_by_key(|&it| balance.dropped_for(it));
        most.map(|cause| (cause, unreadable))
    })?;
    if frames <= balance.delivered {
        return None;
    }
    let remedy = match cause {
        Cause::IpFragment => "trigger.reassemble = true puts fragments together",
        Cause::DemuxMiss
        | Cause::NotForUs
        | Cause::Malformed
        | Cause::BadVersion
        | Cause::Unsupported
        | Cause::Misrouted => {
            "compare [[stream]], and the first stage and its boards, with what is sent (pollux \
             streams shows it)"
        }
        _ => "look up this cause in docs/operations.md",
    };
    Some(format!(
        "no event was built; of {} frames {frames} were dropped as {}: {remedy}",
        balance.from_wire,
        cause.name()
    ))
}

/// The report of an ended run.
pub fn report(plan: &Plan, ended: Ended) -> Report {
    let end = ended.end();
    let truth = match &ended.emulator {
        Some(emulator) => emulator.truth,
        None => ended.check.as_ref().map(RingCheck::report),
    };
    Report {
        schema: SCHEMA,
        run: ended.run.map(|run| RunReport {
            run,
            bursts: ended.counters.stats.events.burst.get().max(1),
        }),
        end,
        duration_s: ended.duration.as_secs_f64(),
        emulator: ended.emulator,
        cores: ended.cores,
        counted: counted(&plan.config, &ended.counters),
        recording: ended.files.recording,
        record: ended.files.record,
        outputs: ended.outputs,
        truth,
        wrong: ended.wrong,
    }
}

/// The counts up to now.
pub fn counted(config: &TriggerConfig, counters: &Counters) -> Counted {
    let Counters {
        ledgers,
        stats,
        answers,
        gaps,
        workers,
        receivers,
        ..
    } = counters;
    counters.note_overload();
    let budget_ns = config.budget().0;
    let latency = counters.latency.iter();
    let latency_ns: BTreeMap<_, _> = latency
        .map(|(name, times)| (name.clone(), times.percentiles().into()))
        .collect();
    let events = &stats.events;
    Counted {
        ports: ledgers.ports.iter().map(port).collect(),
        groups: counters.groups.iter().map(GroupReport::of).collect(),
        ledger: ledgers.ledger.balance().into(),
        missing: stats.sources.iter().map(|s| s.missing.get()).sum(),
        streams: streams(config, counters),
        events: EventsReport {
            built: events.built.get(),
            complete: events.complete.get(),
            incomplete: events.incomplete.get(),
            accepted: events.accepted.get(),
            rejected: events.rejected.get(),
            rings: events.rings.get(),
            hits: events.hits.get(),
            forced: events.forced.get(),
            overfull: events.overfull.get(),
            no_buffer: events.no_buffer.get(),
            resyncs: events.resyncs.get(),
            truncated: events.truncated.get(),
            disputed: events.disputed.get(),
            refused_hits: by_cause(events.refused_hits()),
            rings_cut: events.rings_cut.get(),
            undecided: counters.undecided(),
        },
        rules: counters.rules.sets().iter().map(rule_set).collect(),
        answers: AnswersReport {
            sent: answers.sent.get().saturating_sub(answers.refused.get()),
            no_destination: answers.no_destination.get(),
            packets: answers
                .packets
                .get()
                .saturating_sub(answers.refused_packets.get()),
            no_room: answers.no_room.get(),
            refused: answers.refused.get(),
            unresolved: answers.unresolved.get(),
        },
        latency_ns,
        deadline: DeadlineReport {
            budget_ns,
            missed: answers.missed.get(),
            late_decisions: answers.late.get(),
            unmarked: answers.unmarked.get(),
        },
        jitter_ns: JitterReport::new(gaps, budget_ns),
        back_pressure: BackPressureReport {
            stages: counters.stage_stops.stops.get(),
            outputs: counters.output_stops.get(),
        },
        workers: workers
            .iter()
            .map(|worker| WorkerReport {
                core: worker.name.clone(),
                job_ns: worker.jobs.percentiles().into(),
                jitter_ns: JitterReport::new(&worker.gaps, budget_ns),
                undecided: worker.counts.undecided.get(),
                stalls: worker.counts.stalls.get(),
                state: worker.state(),
            })
            .collect(),
        receivers: receivers
            .iter()
            .map(|receiver| ReceiverReport {
                core: receiver.name.clone(),
                frames: receiver.counts.frames.get(),
                dropped: receiver.dropped(),
                stops: receiver.counts.stops.get(),
                jitter_ns: JitterReport::new(&receiver.gaps, budget_ns),
            })
            .collect(),
    }
}

/// Counts by cause; causes without any are absent.
fn by_cause<const N: usize>(counts: [(Cause, u64); N]) -> BTreeMap<&'static str, u64> {
    let counts = counts.into_iter().filter(|&(_, n)| n > 0);
    counts.map(|(cause, n)| (cause.name(), n)).collect()
}

fn streams(config: &TriggerConfig, counters: &Counters) -> Vec<StreamReport> {
    let sources = config.streams.iter().zip(&counters.stats.sources);
    counters
        .streams
        .counts()
        .zip(sources)
        .zip(config.boards())
        .map(|(((id, counts), (stream, source)), board)| StreamReport {
            id: id.0,
            udp_port: stream.udp_port,
            group: stream.group,
            packets: counts.packets,
            bytes: counts.bytes,
            gaps: source.gaps.get(),
            duplicates: source.duplicates.get(),
            late: source.late.get(),
            missing: source.missing.get(),
            reordered: source.reordered.get(),
            resyncs: source.resyncs.get(),
            late_fragments: source.late_fragments.get(),
            absent_events: source.absent.get(),
            board,
            clock_skew: source.skewed.get(),
            out_of_window: source.out_of_window.get(),
            misrouted: source.misrouted.get(),
            unreadable: source.unreadable.get(),
            refused_fragments: by_cause(source.refused_fragments()),
            elsewhere: source.elsewhere.get(),
            strays: source.strays.get(),
            missed_events: source.missed.get(),
            hot_events: source.hot.get(),
            clock_off: source.off.get() > 0,
            faults: counters.stats.faults(id.0.into()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Two triggers share the boards of a link: what each ignores of the other's is not why the second, which
    /// was not told the numbers of its boards, builds nothing.
    #[test]
    fn frames_for_others_are_the_last_reason() {
        for recorded in [false, true] {
            for for_others in [40, 50, 49_000] {
                let mut tally = pollux_pmd::Tally::new();
                tally.count_from_wire(40 + for_others, 6400);
                tally.count_dropped(Cause::Unsupported, 40);
                tally.count_dropped(Cause::DemuxMiss, for_others);
                let why = why_unbuilt(&tally.view().balance(), 40, recorded).unwrap();
                assert!(why.contains(" 40 were dropped as unsupported"), "{why}");
            }
        }
        let mut tally = pollux_pmd::Tally::new();
        tally.count_from_wire(50, 6400);
        tally.count_dropped(Cause::DemuxMiss, 50);
        let why = why_unbuilt(&tally.view().balance(), 0, false).unwrap();
        assert!(why.contains(" 50 were dropped as demux-miss"), "{why}");
    }

    /// On a live port others send what is `unsupported` too, but not to the ports of streams.
    #[test]
    fn what_cannot_be_read_on_the_ports_of_streams_is_why_no_event_was_built() {
        let mut tally = pollux_pmd::Tally::new();
        tally.count_from_wire(100, 6400);
        tally.count_dropped(Cause::Unsupported, 90);
        tally.count_dropped(Cause::NotForUs, 9);
        tally.count_delivered(1);
        let balance = tally.view().balance();
        assert_eq!(why_unbuilt(&balance, 0, false), None);
        let why = why_unbuilt(&balance, 80, false).unwrap();
        let expected = "no event was built; of 100 frames 80 were dropped as unsupported: compare ";
        assert!(why.starts_with(expected), "{why}");
        assert!(why_unbuilt(&balance, 0, true).unwrap().contains(" 90 "));
        tally.count_delivered(80);
        assert_eq!(why_unbuilt(&tally.view().balance(), 80, false), None);
    }
}
