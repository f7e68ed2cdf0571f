//! Counters of the switch, and their report.

use std::fmt;
use std::sync::Arc;

use pollux_pmd::Count;
use serde::Serialize;

/// Counters of the decisions.
#[derive(Default)]
pub(crate) struct Decisions {
    pub(crate) unicast: Count,
    pub(crate) flooded: Count,
    pub(crate) copies: Count,
    pub(crate) learned: Count,
    pub(crate) moved: Count,
    pub(crate) table_full: Count,
}

/// Counters of an output.
#[derive(Default)]
pub(crate) struct OutputCounts {
    pub(crate) offered: Count,
    pub(crate) offered_bytes: Count,
    pub(crate) sent: Count,
    pub(crate) output_full: Count,
    pub(crate) no_mbuf: Count,
    pub(crate) aborted: Count,
    pub(crate) peak_bytes: Count,
}

/// Reader of the counters of a switch.
#[derive(Clone)]
pub struct SwitchView {
    pub(crate) decisions: Arc<Decisions>,
    /// Ports that send, by name.
    pub(crate) outputs: Vec<(String, Arc<OutputCounts>)>,
}

impl SwitchView {
    /// The counters now. They are consistent when the switch does not run.
    #[must_use]
    pub fn report(&self) -> SwitchReport {
        let decisions = &self.decisions;
        let outputs = self.outputs.iter().map(|(port, counts)| OutputReport {
            port: port.clone(),
            offered: counts.offered.get(),
            offered_bytes: counts.offered_bytes.get(),
            sent: counts.sent.get(),
            output_full: counts.output_full.get(),
            no_mbuf: counts.no_mbuf.get(),
            aborted: counts.aborted.get(),
            peak_bytes: counts.peak_bytes.get(),
        });
        SwitchReport {
            unicast: decisions.unicast.get(),
            flooded: decisions.flooded.get(),
            copies: decisions.copies.get(),
            learned: decisions.learned.get(),
            moved: decisions.moved.get(),
            table_full: decisions.table_full.get(),
            outputs: outputs.collect(),
        }
    }
}

/// Counters of a switch, for a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SwitchReport {
    /// Frames to an address known at another port.
    pub unicast: u64,
    /// Frames to a group or to an unknown address.
    pub flooded: u64,
    /// Copies made of flooded frames; the frame itself goes to one of the outputs.
    pub copies: u64,
    /// Addresses that became known.
    pub learned: u64,
    /// Frames whose source was known at another port.
    pub moved: u64,
    /// Frames whose source did not become known, because the table was full.
    pub table_full: u64,
    /// Outputs, by port.
    pub outputs: Vec<OutputReport>,
}

/// Counters of an output. `offered = sent + output_full + no_mbuf + aborted`, once the switch has
/// been [finished](crate::Switch::finish).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutputReport {
    /// Name of the port.
    pub port: String,
    /// Frames and copies for this output.
    pub offered: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Frames that the port took.
    pub sent: u64,
    /// Frames for which the buffer had no room.
    pub output_full: u64,
    /// Copies that could not be made because no packet buffer was free.
    pub no_mbuf: u64,
    /// Frames that waited when the switch was stopped.
    pub aborted: u64,
    /// Most bytes that the buffer held.
    pub peak_bytes: u64,
}

impl SwitchReport {
    /// Whether the frames and copies of each output are accounted for.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        self.outputs.iter().all(|output| {
            output.offered == output.sent + output.output_full + output.no_mbuf + output.aborted
        })
    }
}

/// A line of decisions, and a table of the outputs.
impl fmt::Display for SwitchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "switched  {} to one port, {} flooded ({} copies)",
            self.unicast, self.flooded, self.copies
        )?;
        writeln!(
            f,
            "addresses {} learned, {} moved, {} frames not learned from (table full)",
            self.learned, self.moved, self.table_full
        )?;
        writeln!(
            f,
            "{:>12} {:>12} {:>12} {:>10} {:>10} {:>10}  output",
            "offered", "sent", "output-full", "no-mbuf", "aborted", "peak bytes"
        )?;
        for output in &self.outputs {
            writeln!(
                f,
                "{:>12} {:>12} {:>12} {:>10} {:>10} {:>10}  {}",
                output.offered,
                output.sent,
                output.output_full,
                output.no_mbuf,
                output.aborted,
                output.peak_bytes,
                output.port
            )?;
        }
        Ok(())
    }
}
