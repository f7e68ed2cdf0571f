//! The plan, the report as text, and the report as JSON.

use std::fmt;

use crate::config::ConfigError;
use crate::images::config::ImagesConfig;
use crate::images::link::StackCounts;
use crate::images::order::StackOrder;
use crate::images::source::ImagesReport;
use pollux_app::LedgerReport;
use pollux_pmd::Balance;
use serde_json::json;

/// Version of the JSON report. Fields are added without a change of it.
const SCHEMA: u32 = 1;

/// The loop's CPU.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) cpu: usize,
    pub(super) isolated: bool,
}

/// A run that has ended.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) config: ImagesConfig,
    pub(super) report: ImagesReport,
    /// The port, or the address of the receiver.
    pub(super) spec: String,
    /// Frames sent through it, answers to ARP included.
    pub(super) tx_packets: u64,
    pub(super) core: Option<Core>,
    /// Whether a signal or --duration stopped it.
    pub(super) stopped: bool,
    /// The ledger of what was received.
    pub(super) balance: Balance,
    /// Whether the receiver, into whose memory images are written, ended before the run.
    pub(super) is_receiver_gone: bool,
    /// A failure of the stop of the port.
    pub(super) failed: Option<anyhow::Error>,
}

/// What a run of this configuration would do, for --check.
pub(super) fn plan(config: &ImagesConfig, through: Option<&str>) -> Result<String, ConfigError> {
    let (layout, (src, dst)) = (config.layout()?, config.endpoints(0));
    let frames = match config.frames {
        0 => "frames until stopped".to_owned(),
        n => format!("{n} frames"),
    };
    let rate = match config.rate {
        0.0 => "as fast as possible".to_owned(),
        rate => format!("at {rate}/s"),
    };
    let through = through.unwrap_or("a port or --udp, of which none is given,");
    let order = StackOrder::new(config.stack, config.dark_every);
    Ok(format!(
        "seed {}: {frames} {rate} of {}, {} modules with {} UDP interfaces: images of {} pixels, {} B, \
         in {} packets of {} B\n\
         synthetic stack of {} images, {} of them dark, {:.1} MB\n\
         through {through} from {} to {} (first of {} ports)\n",
        config.seed,
        config.detector,
        layout.modules(),
        layout.interfaces(),
        layout.image(),
        layout.image_bytes(),
        layout.senders() * layout.packets(),
        layout.payload_bytes(),
        order.total(),
        order.total() - order.images() as usize,
        (order.total() * layout.image_bytes()) as f64 / 1e6,
        src.socket,
        dst.socket,
        layout.senders(),
    ))
}

/// The report as text.
impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (r, done) = (&self.report, &self.report.done);
        writeln!(
            f,
            "sent      {} frames ({} dark) in {} packets, {} bytes, in {:.3} s: {:.1} frames/s, {:.3} GB/s",
            done.frames,
            done.dark_frames,
            r.packets_sent,
            r.bytes_sent,
            r.duration_s,
            r.rate_achieved,
            r.gb_s
        )?;
        let faults = [
            (done.faults.lost, "lost"),
            (done.faults.late, "late"),
            (done.faults.duplicated, "duplicated"),
            (done.faults.reordered, "reordered"),
            (done.faults.corrupted, "corrupted"),
            (r.send_errors, "refused by the system"),
            (r.connection_refused, "times the receiver's port was closed"),
            (r.packets_unsent, "unsent at the stop"),
        ];
        f.write_str("faults    ")?;
        let mut separator = "";
        for (n, what) in faults.into_iter().filter(|(n, _)| *n > 0) {
            write!(f, "{separator}{n} {what}")?;
            separator = ", ";
        }
        writeln!(f, "{}", if separator.is_empty() { "none" } else { "" })?;
        let counts = done.images;
        write!(
            f,
            "images    {} complete, {} partial, {} empty, by the packets that were sent intact",
            counts.complete, counts.partial, counts.empty
        )?;
        if let Some(stacks) = r.stacks {
            write!(
                f,
                "\nstacks    {} announced, {} taken, {} overrun",
                stacks.announced, stacks.taken, stacks.overrun
            )?;
        }
        write!(f, "\nend       {}", self.end())?;
        if done.faults_not_listed > 0 {
            write!(
                f,
                "\nlist      {} faults in the JSON report, {} more are counted only",
                done.fault_list.len(),
                done.faults_not_listed
            )?;
        }
        writeln!(f)
    }
}

impl Run {
    /// Why the run ended: all frames were sent, the receiver is gone, a stop, or a link that took nothing any more.
    fn end(&self) -> &'static str {
        match (self.report.complete, self.stopped) {
            (false, _) if self.is_receiver_gone => "gone",
            (true, _) => "complete",
            (_, true) => "stopped",
            _ => "stalled",
        }
    }

    /// The report as JSON.
    pub(super) fn json(&self) -> serde_json::Value {
        let core =
            |core: &Core| json!({ "role": "detector", "cpu": core.cpu, "isolated": core.isolated });
        json!({
            "schema": SCHEMA,
            "end": self.end(),
            "duration_s": self.report.duration_s,
            "ports": [{
                "spec": self.spec,
                "rx_packets": self.balance.from_wire,
                "rx_bytes": self.balance.bytes,
                "tx_packets": self.tx_packets,
            }],
            "detector": self.report,
            "cores": self.core.iter().map(core).collect::<Vec<_>>(),
            "ledger": LedgerReport::from(self.balance),
            "config": self.config,
        })
    }

    /// Whether the run ended as asked. Warns where only the rate was not met.
    pub(super) fn verdict(self) -> anyhow::Result<()> {
        let r = &self.report;
        let live = !self.spec.starts_with("pcap:");
        if live && r.rate_achieved < 0.99 * r.rate_asked && r.done.frames > 100 {
            tracing::warn!(
                "fell behind: {:.1} frames/s of {:.1}; use a lower --rate, an idle core or a faster port",
                r.rate_achieved,
                r.rate_asked
            );
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        if let Some(stacks) = r.stacks {
            let StackCounts {
                announced,
                taken,
                overrun,
                ..
            } = stacks;
            anyhow::ensure!(
                r.complete || !self.is_receiver_gone,
                "the receiver ended before the run: it has taken {taken} of {announced} stacks"
            );
            anyhow::ensure!(
                taken == announced,
                "the receiver has taken {taken} of {announced} stacks: it ended, or frames were lost on the way"
            );
            anyhow::ensure!(
                announced > 0 || overrun == 0,
                "the receiver never had a free buffer: all {overrun} stacks are lost"
            );
        }
        anyhow::ensure!(
            self.balance.is_balanced(),
            "the loss ledger does not balance: please report this with the JSON report"
        );
        Ok(())
    }
}
