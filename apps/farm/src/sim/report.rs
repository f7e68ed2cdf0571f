//! The report of a simulation (docs/farm.md).

use std::io::{self, Write};
use std::time::Duration;

use pollux_farm::sim::{Latency, PolicyName, Results, Scenario, Settings};
use serde::Serialize;

/// Format of the report.
const SCHEMA: u32 = 1;

/// The report. What does not apply to a scenario is null.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    schema: u32,
    scenario: &'static str,
    policy: Option<&'static str>,
    seed: u64,
    settings: &'a Settings,
    /// `complete`, or `stopped` by a signal.
    end: &'static str,
    events: Events,
    rate_hz: f64,
    utilisation: f64,
    gbps: f64,
    lost: u64,
    retries: Option<u64>,
    wait_mean_ns: Option<f64>,
    latency_us: Latency,
    system_us: Option<f64>,
    bus_idle: Option<f64>,
    busy_mean: Option<f64>,
    queue_peak_bytes: Option<u64>,
    wall_s: f64,
    hash: String,
}

#[derive(Serialize)]
struct Events {
    built: u64,
    incomplete: u64,
    unfinished: u64,
}

impl<'a> Report<'a> {
    pub(super) fn new(
        (scenario, seed): (Scenario, u64),
        policy: Option<PolicyName>,
        settings: &'a Settings,
        results: &Results,
        wall: Duration,
    ) -> Self {
        Self {
            schema: SCHEMA,
            scenario: scenario.name(),
            policy: policy.map(PolicyName::name),
            seed,
            settings,
            end: if results.stopped {
                "stopped"
            } else {
                "complete"
            },
            events: Events {
                built: results.built,
                incomplete: results.incomplete,
                unfinished: results.unfinished,
            },
            rate_hz: results.rate_hz,
            utilisation: results.utilisation,
            gbps: results.gbps,
            lost: results.lost,
            retries: results.retries,
            wait_mean_ns: results.wait_mean_ns,
            latency_us: results.latency_us,
            system_us: results.system_us,
            bus_idle: results.bus_idle,
            busy_mean: results.busy_mean,
            queue_peak_bytes: results.queue_peak_bytes,
            wall_s: wall.as_secs_f64(),
            hash: format!("{:016x}", results.hash),
        }
    }

    /// The report as text.
    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let policy = self.policy.map(|policy| format!(", policy {policy}"));
        writeln!(
            out,
            "{}{}, seed {}: {}",
            self.scenario,
            policy.unwrap_or_default(),
            self.seed,
            self.end
        )?;
        let Events {
            built,
            incomplete,
            unfinished,
        } = self.events;
        writeln!(
            out,
            "events       {built} built, {incomplete} of them incomplete; {unfinished} unfinished; {} lost",
            self.lost
        )?;
        writeln!(
            out,
            "carried      {:.0} events/s, {:.3} Gb/s, {:.4} of the links",
            self.rate_hz, self.gbps, self.utilisation
        )?;
        let Latency {
            mean,
            p50,
            p99,
            max,
        } = self.latency_us;
        writeln!(
            out,
            "latency      mean {mean:.3} us, median {p50:.3}, 99 % {p99:.3}, max {max:.3}"
        )?;
        if let Some(wait) = self.wait_mean_ns {
            writeln!(out, "wait         mean {wait:.1} ns")?;
        }
        if let Some(bytes) = self.queue_peak_bytes {
            writeln!(out, "queue        {bytes} B at most")?;
        }
        if let Some(retries) = self.retries {
            writeln!(out, "retries      {retries}")?;
        }
        if let Some(system) = self.system_us {
            writeln!(out, "system       {system:.3} us from message to feedback")?;
        }
        if let Some(idle) = self.bus_idle {
            writeln!(out, "bus          {:.1} % idle", idle * 100.0)?;
        }
        if let Some(busy) = self.busy_mean {
            writeln!(out, "busy         {busy:.3} in the mean")?;
        }
        writeln!(out, "hash         {}, in {:.1} s", self.hash, self.wall_s)
    }
}
