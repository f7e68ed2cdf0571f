//! Report of a managed run.

use std::fmt;

use pollux_images::control::Counts;
use serde::Serialize;

use super::pauses::Pause;

/// Version of the report.
pub(super) const SCHEMA: u32 = 1;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum End {
    /// A node has finished: the source has sent its frames, or a receiver has all that it wants.
    Finished,
    /// By a signal, or after its time.
    Stopped,
    /// By an error.
    Failed,
}

/// A node in the report.
#[derive(Debug, Serialize)]
pub(super) struct NodeReport {
    pub(super) name: String,
    pub(super) control: String,
    /// Name and version of its program.
    pub(super) program: String,
    /// Whether the counts are final.
    pub(super) finished: bool,
    #[serde(flatten)]
    pub(super) counts: Counts,
}

/// Report of a run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) schema: u32,
    pub(super) end: End,
    pub(super) errors: Vec<String>,
    /// From the start of the source to the end of the run.
    pub(super) duration_s: f64,
    pub(super) source: NodeReport,
    pub(super) receivers: Vec<NodeReport>,
    /// Number of pauses.
    pub(super) pause_count: u64,
    /// Time in pauses.
    pub(super) paused_s: f64,
    /// The first ones.
    pub(super) pauses: Vec<Pause>,
}

impl Report {
    /// What has failed.
    pub(super) fn errors(&self) -> &[String] {
        &self.errors
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = match self.end {
            End::Finished => "finished",
            End::Stopped => "stopped",
            End::Failed => "failed",
        };
        writeln!(f, "run       {end} after {:.3} s", self.duration_s)?;
        let open = |node: &NodeReport| if node.finished { "" } else { ", not final" };
        let source = &self.source;
        writeln!(
            f,
            "source    {}: {} frames{}",
            source.name,
            source.counts.frames,
            open(source)
        )?;
        for node in &self.receivers {
            let (name, frames) = (&node.name, node.counts.frames);
            writeln!(f, "receiver  {name}: {frames} images{}", open(node))?;
            for transfer in &node.counts.transfers {
                writeln!(
                    f,
                    "  {}: {} sub-images, {} bytes, {} lost by overrun",
                    transfer.name, transfer.images, transfer.bytes, transfer.overrun
                )?;
            }
        }
        writeln!(f, "pauses    {}, {:.3} s", self.pause_count, self.paused_s)?;
        self.errors
            .iter()
            .try_for_each(|error| writeln!(f, "error     {error}"))
    }
}
