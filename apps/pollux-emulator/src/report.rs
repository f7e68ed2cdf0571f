//! What the program says: the plan, the report for people, and the report for programs.

use std::fmt;

use crate::config::{EmulatorConfig, SLOTS_PER_SECOND};
use crate::run::EmulatorReport;
use pollux_app::LedgerReport;
use pollux_pmd::Balance;
use serde::Serialize;
use serde_json::json;

/// Version of the JSON report. Fields are added without a change of it.
const SCHEMA: u32 = 1;

/// What went through a port.
#[derive(Debug, Serialize)]
pub(crate) struct PortUse {
    pub(crate) spec: String,
    pub(crate) tx_packets: u64,
}

/// Where the loop ran.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) cpu: usize,
    pub(crate) isolated: bool,
}

/// A run that has come to its end.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) config: EmulatorConfig,
    pub(crate) emulator: EmulatorReport,
    pub(crate) ports: Vec<PortUse>,
    pub(crate) core: Option<Core>,
    /// The books on what came back.
    pub(crate) balance: Balance,
    /// What went wrong while the port was stopped.
    pub(crate) failed: Option<anyhow::Error>,
}

/// What a run of this configuration would do, for --check.
pub(crate) fn plan(config: &EmulatorConfig, through: Option<&str>) -> String {
    let (src, dst) = config.endpoints(0);
    let events = match config.events {
        0 => "events until stopped".to_owned(),
        n => format!("{n} events"),
    };
    let rate = match config.rate {
        0 => "as fast as possible".to_owned(),
        _ => format!(
            "at {:.0}/s",
            SLOTS_PER_SECOND as f64 / config.spacing() as f64
        ),
    };
    let through = through.unwrap_or("--port or --udp, of which none is given,");
    format!(
        "seed {}: {events} {rate}, {} boards, {} events a frame\n\
         through {through} from {} to {} (board 0); decisions to port {}\n",
        config.seed,
        config.boards,
        config.events_per_frame,
        src.socket,
        dst.socket,
        config.addresses.decision_port,
    )
}

/// The report for people.
impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = &self.emulator;
        writeln!(
            f,
            "sent      {} events in {} frames ({} hits, {} bytes) in {:.3} s: {:.0} events/s",
            e.events_sent, e.frames_sent, e.hits_sent, e.bytes_sent, e.duration_s, e.rate_achieved
        )?;
        let faults = [
            (e.faults.lost, "lost"),
            (e.faults.late, "late"),
            (e.faults.duplicated, "duplicated"),
            (e.faults.reordered, "reordered"),
            (e.faults.corrupted, "corrupted"),
            (e.send_errors, "refused by the system"),
            (
                e.connection_refused,
                "refusals: no socket at the trigger's port",
            ),
            (e.frames_unsent, "unsent at the stop"),
            (e.hits_cut, "hits left out"),
        ];
        f.write_str("faults    ")?;
        let mut separator = "";
        for (n, what) in faults.into_iter().filter(|(n, _)| *n > 0) {
            write!(f, "{separator}{n} {what}")?;
            separator = ", ";
        }
        writeln!(f, "{}", if separator.is_empty() { "none" } else { "" })?;
        if let Some(decisions) = &e.decisions {
            let c = &decisions.counts;
            writeln!(
                f,
                "decisions {} of {} events decided, {} accepted, {} late, {} missing, {} repeated, {} unknown",
                c.decided,
                e.events_sent,
                c.accepted,
                c.late,
                c.missing,
                c.repeated,
                c.unknown + c.forgotten
            )?;
            let percent = |rate: Option<f64>| {
                rate.map_or("none".into(), |rate| format!("{:.2} %", 100.0 * rate))
            };
            writeln!(
                f,
                "truth     events with a ring accepted: {}; accepted events without one: {}",
                percent(decisions.trigger_efficiency),
                percent(decisions.fake_accept_rate)
            )?;
        }
        let Balance {
            from_wire,
            delivered,
            ..
        } = self.balance;
        write!(f, "ledger    {from_wire} received = {delivered} delivered")?;
        for (cause, n) in self.balance.drops() {
            write!(f, " + {n} {}", cause.name())?;
        }
        let verdict = if self.balance.is_balanced() {
            "balanced"
        } else {
            "NOT BALANCED"
        };
        writeln!(f, ": {verdict}")
    }
}

impl Run {
    /// The report for programs.
    pub(crate) fn json(&self) -> serde_json::Value {
        let cores: Vec<_> = self
            .core
            .iter()
            .map(|core| json!({ "role": "emulator", "cpu": core.cpu, "isolated": core.isolated }))
            .collect();
        let ports: Vec<_> = self
            .ports
            .iter()
            .map(|port| {
                json!({
                    "spec": port.spec,
                    "rx_packets": self.balance.from_wire,
                    "rx_bytes": self.balance.bytes,
                    "tx_packets": port.tx_packets,
                })
            })
            .collect();
        json!({
            "schema": SCHEMA,
            "duration_s": self.emulator.duration_s,
            "ports": ports,
            "emulator": self.emulator,
            "cores": cores,
            "ledger": LedgerReport::from(self.balance),
            "config": self.config,
        })
    }

    /// Whether the run ended as asked. Says so too where only the rate was not met.
    pub(crate) fn verdict(self) -> anyhow::Result<()> {
        let e = &self.emulator;
        if e.rate_achieved < 0.99 * e.rate_asked && e.events_sent > 1000 && self.is_live() {
            tracing::warn!(
                "fell behind: {:.0} events/s of {:.0}; use a lower --rate or an idle core",
                e.rate_achieved,
                e.rate_asked
            );
        }
        let came = e
            .decisions
            .as_ref()
            .map(|decisions| decisions.counts.packets);
        if came == Some(0) && e.frames_sent > 0 && self.is_live() {
            tracing::warn!(
                "no decision arrived at UDP port {}: check that the trigger runs and that its \
                 answers are sent here",
                self.config.addresses.decision_port
            );
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        anyhow::ensure!(
            self.balance.is_balanced(),
            "the loss ledger does not balance: please report this with the JSON report"
        );
        Ok(())
    }

    fn is_live(&self) -> bool {
        self.ports
            .iter()
            .all(|port| !port.spec.starts_with("pcap:"))
    }
}
