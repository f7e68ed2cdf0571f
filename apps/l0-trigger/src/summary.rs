//! From what the loops left to the report.

use std::collections::BTreeMap;

use pollux_emulator::rings::RingCheck;
use pollux_pmd::ledger::SentView;
use pollux_pmd::{RxQueue, TallyView, TxQueue};

use crate::plan::Plan;
use crate::report::{
    AnswersReport, DeadlineReport, EventsReport, JitterReport, PortReport, Report, SCHEMA,
    StreamReport,
};
use crate::run::{self, Ended};

/// The counters of one port.
pub struct PortViews {
    spec: String,
    rx: Vec<TallyView>,
    tx: Vec<SentView>,
}

impl PortViews {
    /// Views on the queues of a port, before they are given away.
    pub fn new(spec: &str, rx: &[RxQueue], tx: &[TxQueue]) -> Self {
        Self {
            spec: spec.into(),
            rx: rx.iter().map(RxQueue::tally).collect(),
            tx: tx.iter().map(TxQueue::sent).collect(),
        }
    }

    fn report(&self) -> PortReport {
        let mut report = PortReport {
            spec: self.spec.clone(),
            rx_packets: 0,
            rx_bytes: 0,
            tx_packets: self.tx.iter().map(SentView::packets).sum(),
        };
        for balance in self.rx.iter().map(TallyView::balance) {
            report.rx_packets += balance.from_wire;
            report.rx_bytes += balance.bytes;
        }
        report
    }
}

/// The report of an ended run.
pub fn report(plan: &Plan, ended: Ended) -> Report {
    let budget_ns = plan.config.budget().0;
    let outlet = &ended.finished.outlet;
    let answers = outlet.answer.counts();
    let gaps = outlet.jitter.gaps();
    let mut latency_ns: BTreeMap<_, _> = BTreeMap::new();
    for (name, times) in &ended.finished.stages {
        latency_ns.insert(name.clone(), times.percentiles().into());
    }
    latency_ns.insert("total".into(), outlet.answer.total().percentiles().into());
    let events = &ended.counters.stats.events;
    let truth = match &ended.emulator {
        Some(emulator) => emulator.truth,
        None => ended.check.as_ref().map(RingCheck::report),
    };
    Report {
        schema: SCHEMA,
        end: run::end(&ended.finished, ended.emulator.as_ref()),
        duration_s: ended.duration.as_secs_f64(),
        ports: ended.counters.ports.iter().map(PortViews::report).collect(),
        cores: ended.cores,
        ledger: ended.counters.ledger.balance().into(),
        missing: ended
            .counters
            .stats
            .sources
            .iter()
            .map(|source| source.missing.get())
            .sum(),
        streams: streams(plan, &ended.counters.streams, &ended.counters.stats),
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
            resyncs: events.resyncs.get(),
        },
        answers: AnswersReport {
            sent: answers.sent.get(),
            untold: answers.untold.get(),
            packets: answers.packets.get(),
            no_room: answers.no_room.get(),
            unresolved: answers.unresolved.get(),
        },
        recording: ended.recording,
        latency_ns,
        deadline: DeadlineReport {
            budget_ns,
            missed: answers.missed.get(),
            late_decisions: answers.late.get(),
        },
        jitter_ns: JitterReport::new(gaps, budget_ns),
        truth,
        emulator: ended.emulator,
    }
}

fn streams(
    plan: &Plan,
    view: &pollux_pmd::stream::StreamView,
    stats: &pollux_pipelines::l0::L0Stats,
) -> Vec<StreamReport> {
    let sources = plan.config.streams.iter().zip(&stats.sources);
    view.counts()
        .zip(sources)
        .map(|((id, counts), (stream, source))| StreamReport {
            id: id.0,
            udp_port: stream.udp_port,
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
        })
        .collect()
}
