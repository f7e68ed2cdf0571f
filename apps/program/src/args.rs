//! Values on a command line, and options that programs share.

use std::time::Duration;

use pollux_pmd::{ClockChoice, TscClock};

use crate::Failure;

/// The option of every program whose loops read the clock; flattened into its command line.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[group(skip)]
pub struct ClockOption {
    /// What loops read the time from: auto, tsc or raw
    ///
    /// tsc: the CPU's time stamp counter. raw: CLOCK_MONOTONIC_RAW of the kernel, which takes longer
    /// and may enter the kernel. auto: tsc where the CPU or the kernel trusts it, else raw, with a
    /// warning (`pollux doctor` says which, and why).
    #[arg(long, value_name = "SOURCE", default_value_t, global = true)]
    clock: ClockChoice,
}

impl ClockOption {
    /// Has the process read that clock. To be called before anything reads one.
    ///
    /// # Errors
    /// The process has read another clock before.
    pub fn select(self) -> Result<(), Failure> {
        Ok(TscClock::select(self.clock).map_err(anyhow::Error::from)?)
    }
}

/// Reads a duration in seconds, for clap's `value_parser`.
///
/// # Errors
/// Text that is no number, or not one above 0 and of at most 1e7 seconds, four months.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "not a number of seconds".to_owned())?;
    if seconds > 0.0 && seconds <= 1e7 {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("must be above 0, and at most 1e7".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_durations_are_taken() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for text in ["0", "-1", "nan", "inf", "1e300", "soon", ""] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
