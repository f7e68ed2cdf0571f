//! Command-line options for the faults of the sent frames.

use std::time::Duration;

use crate::config::Faults;
use pollux_app::seconds;

/// Probabilities of faults.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[group(skip)]
pub(crate) struct FaultOptions {
    /// Probability that a frame is never sent [default: 0]
    #[arg(long, value_name = "P", help_heading = "Faults")]
    lost: Option<f64>,

    /// Probability that a frame is sent late [default: 0]
    #[arg(long, value_name = "P", help_heading = "Faults")]
    late: Option<f64>,

    /// Delay of late frames: a number of seconds, or a time like 500us [default: 2ms]
    #[arg(long, value_name = "TIME", help_heading = "Faults", value_parser = seconds)]
    late_by: Option<Duration>,

    /// The same in microseconds [default: 2000]
    #[arg(
        long,
        value_name = "US",
        help_heading = "Faults",
        conflicts_with = "late_by"
    )]
    late_us: Option<u32>,

    /// Probability that a frame is sent twice [default: 0]
    #[arg(long, value_name = "P", help_heading = "Faults")]
    duplicated: Option<f64>,

    /// Probability that a frame is sent after the next one of its sender [default: 0]
    #[arg(long, value_name = "P", help_heading = "Faults")]
    reordered: Option<f64>,

    /// Probability that a byte of a frame is changed [default: 0]
    #[arg(long, value_name = "P", help_heading = "Faults")]
    corrupted: Option<f64>,
}

impl FaultOptions {
    /// Overrides the values of the options that were given.
    pub(crate) fn apply(&self, faults: &mut Faults) {
        // An oversized value is refused as such, with the valid range.
        let late_by = self.late_by.map(|by| by.as_micros().try_into());
        let late_by = late_by.map(|us| us.unwrap_or(u32::MAX));
        faults.lost = self.lost.unwrap_or(faults.lost);
        faults.late = self.late.unwrap_or(faults.late);
        faults.late_us = self.late_us.or(late_by).unwrap_or(faults.late_us);
        faults.duplicated = self.duplicated.unwrap_or(faults.duplicated);
        faults.reordered = self.reordered.unwrap_or(faults.reordered);
        faults.corrupted = self.corrupted.unwrap_or(faults.corrupted);
    }
}
