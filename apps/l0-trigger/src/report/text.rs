//! The report as text.

use std::fmt::Write as _;

use super::{RecordingReport, Report, RuleSetReport, RunReport};
use crate::boards::{self, TOO_SLOW};

fn percent(ratio: Option<f64>) -> String {
    ratio.map_or("-".into(), |ratio| format!("{:.2} %", ratio * 100.0))
}

fn micros(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1000.0)
}

impl Report {
    /// The report for people.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self
            .write_frames(&mut text)
            .and_then(|()| self.write_events(&mut text))
            .and_then(|()| self.write_verdict(&mut text));
        text
    }

    /// Faults of the trigger itself.
    fn warnings(&self) -> impl Iterator<Item = String> {
        let (ledger, events) = (&self.counted.ledger, &self.counted.events);
        let drops = TOO_SLOW.map(|cause| {
            let frames = ledger.dropped.get(cause.name()).copied();
            (cause, frames.unwrap_or(0))
        });
        let overload = boards::overload(ledger.from_wire, drops);
        overload
            .into_iter()
            .chain(boards::full(events.forced, events.built))
    }

    fn write_frames(&self, out: &mut String) -> std::fmt::Result {
        write!(out, "run        ")?;
        if let Some(RunReport { run, bursts }) = self.run {
            write!(out, "{run}: {bursts} bursts, ")?;
        }
        writeln!(out, "{:.2} s, {}", self.duration_s, self.end)?;
        for core in &self.cores {
            let cpu = core
                .cpu
                .map_or("any cpu".into(), |cpu| format!("cpu {cpu}"));
            let isolated = if core.isolated {
                "isolated"
            } else {
                "not isolated"
            };
            writeln!(out, "core       {:<9} {cpu}, {isolated}", core.role)?;
        }
        for worker in &self.counted.workers {
            let (jobs, gaps) = (&worker.job_ns, &worker.jitter_ns.gaps);
            writeln!(
                out,
                "{:<10} {} jobs, p99 {} us, max {} us; longest gap {} us",
                worker.core,
                jobs.count,
                micros(jobs.p99),
                micros(jobs.max),
                micros(gaps.max)
            )?;
            if worker.undecided > 0 || worker.state != "running" {
                writeln!(
                    out,
                    "           {}: {} events undecided, {} stalls",
                    worker.state, worker.undecided, worker.stalls
                )?;
            }
        }
        for receiver in &self.counted.receivers {
            writeln!(
                out,
                "{:<10} {} frames, {} dropped, {} stops; longest gap {} us",
                receiver.core,
                receiver.frames,
                receiver.dropped,
                receiver.stops,
                micros(receiver.jitter_ns.gaps.max)
            )?;
        }
        for port in &self.counted.ports {
            write!(
                out,
                "port       {}: {} frames, {} bytes received, {} frames sent",
                port.spec, port.rx_packets, port.rx_bytes, port.tx_packets
            )?;
            if port.tx_errors > 0 {
                write!(out, ", {} could not be sent", port.tx_errors)?;
            }
            if let Some(arrival) = port.arrival_time {
                write!(out, "; arrival by {arrival}")?;
            }
            writeln!(out)?;
        }
        for groups in &self.counted.groups {
            writeln!(out, "{groups}")?;
        }
        writeln!(
            out,
            "stream     udp port     frames      bytes       gaps  missing  duplicate       late"
        )?;
        for s in &self.counted.streams {
            writeln!(
                out,
                "{:>6} {:>12} {:>10} {:>10} {:>10} {:>8} {:>10} {:>10}",
                s.id, s.udp_port, s.packets, s.bytes, s.gaps, s.missing, s.duplicates, s.late
            )?;
        }
        for warning in self.warnings() {
            writeln!(out, "WRONG      {warning}")?;
        }
        for s in &self.counted.streams {
            for fault in &s.faults {
                let (id, board, why) = (s.id, s.board, boards::explain(fault));
                writeln!(
                    out,
                    "WRONG      stream {id} (board {board}): {fault}: {why}"
                )?;
            }
        }
        Ok(())
    }

    fn write_events(&self, out: &mut String) -> std::fmt::Result {
        let seconds = self.duration_s.max(1e-9);
        let e = &self.counted.events;
        writeln!(
            out,
            "events     {} built ({:.0}/s): {} complete, {} incomplete",
            e.built,
            e.built as f64 / seconds,
            e.complete,
            e.incomplete
        )?;
        if e.undecided > 0 {
            writeln!(
                out,
                "           {} undecided: workers did not bring them back",
                e.undecided
            )?;
        }
        if e.truncated + e.disputed > 0 {
            let (truncated, disputed) = (e.truncated, e.disputed);
            writeln!(
                out,
                "           {truncated} with hits left out, {disputed} while boards disagreed on the time"
            )?;
        }
        writeln!(out, "rings      {} in {} hits", e.rings, e.hits)?;
        let a = &self.counted.answers;
        writeln!(
            out,
            "decisions  {} accepted, {} rejected; {} sent in {} packets",
            e.accepted, e.rejected, a.sent, a.packets
        )?;
        for set in &self.counted.rules {
            let RuleSetReport {
                events, monitored, ..
            } = set;
            write!(out, "rules      set {}: {events} events", set.set)?;
            for rule in &set.rules {
                write!(out, ", {} {} of {}", rule.name, rule.accepted, rule.held)?;
            }
            if *monitored > 0 {
                write!(out, "; {monitored} rejected ones kept")?;
            }
            writeln!(out)?;
        }
        let outcomes = [
            (a.no_destination, "not to be sent"),
            (a.no_room, "lost for want of room to send"),
            (a.refused, "lost, as the port could not send them"),
            (a.unresolved, "lost before the address was resolved"),
        ];
        for (n, outcome) in outcomes.into_iter().filter(|&(n, _)| n > 0) {
            writeln!(out, "           {n} {outcome}")?;
        }
        if let Some(why) = &self.wrong {
            writeln!(out, "WRONG      {why}")?;
        }
        let records = Some(&self.recording).filter(|r| r.written + r.lost > 0);
        for (what, report) in [("recording", records), ("recorded", self.record.as_ref())] {
            if let Some(report) = report {
                let RecordingReport { written, lost, .. } = report;
                let files = report.file_names();
                writeln!(
                    out,
                    "{what:<10} {written} events written, {lost} lost{files}"
                )?;
            }
        }
        for output in &self.outputs {
            let (spec, delivered, handed) = (&output.spec, output.delivered, output.handed);
            write!(
                out,
                "output     {spec}: {delivered} of {handed} events delivered"
            )?;
            let lost = output.lost;
            let causes = [
                (lost.queue_full, "queue-full"),
                (lost.refused, "refused"),
                (lost.unsent, "unsent"),
                (lost.repeated, "repeated"),
            ];
            for (n, cause) in causes.into_iter().filter(|&(n, _)| n > 0) {
                write!(out, " + {n} {cause}")?;
            }
            let balance = if output.balanced {
                ""
            } else {
                "  DOES NOT BALANCE"
            };
            writeln!(out, "{balance}")?;
        }
        Ok(())
    }

    fn write_verdict(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "latency us        p50      p99    p99.9   p99.99      max"
        )?;
        let jitter = ("(jitter)", &self.counted.jitter_ns.gaps);
        let stages = self
            .counted
            .latency_ns
            .iter()
            .map(|(name, q)| (name.as_str(), q));
        for (name, q) in stages.chain([jitter]) {
            write!(out, "  {name:<12}")?;
            for value in [q.p50, q.p99, q.p999, q.p9999, q.max] {
                write!(out, " {:>8}", micros(value))?;
            }
            writeln!(out)?;
        }
        let d = &self.counted.deadline;
        writeln!(
            out,
            "deadline   {} us missed {} times ({} of {} decisions); the core stood still for more than half of it {} times",
            micros(d.budget_ns),
            d.missed,
            d.late_decisions,
            self.counted.events.built,
            self.counted.jitter_ns.over_half_budget
        )?;
        if d.unmarked > 0 {
            writeln!(out, "           {} of them do not say so", d.unmarked)?;
        }
        let l = &self.counted.ledger;
        write!(
            out,
            "ledger     {} from wire = {} delivered",
            l.from_wire, l.delivered
        )?;
        for (cause, n) in &l.dropped {
            write!(out, " + {n} {cause}")?;
        }
        writeln!(
            out,
            "{}",
            if l.balanced { "" } else { "  DOES NOT BALANCE" }
        )?;
        writeln!(
            out,
            "missing    {} frames by sequence number",
            self.counted.missing
        )?;
        if let Some(t) = &self.truth {
            writeln!(
                out,
                "truth      efficiency {} ({} of {} rings), fake rate {}; single rings: {}, {}",
                percent(t.efficiency),
                t.found,
                t.findable,
                percent(t.fake_rate),
                percent(t.single_ring_efficiency),
                percent(t.single_ring_fake_rate),
            )?;
        }
        Ok(())
    }
}
