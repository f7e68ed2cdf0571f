//! Values on a command line, and options that programs share.

use std::ops::RangeInclusive;
use std::str::FromStr;
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

/// One item of a list of CPUs, `2` or `2-5`: the element of an option `--cores` with
/// `value_delimiter = ','`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus(RangeInclusive<usize>);

impl Cpus {
    /// Most CPUs that a kernel for x86-64 is built for.
    const MAX: usize = 8192;

    /// The CPUs of all items, in the order in which they are given.
    #[must_use]
    pub fn of(list: &[Self]) -> Vec<usize> {
        list.iter().flat_map(|item| item.0.clone()).collect()
    }
}

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse().ok().filter(|_| digits)?;
            (number < Self::MAX).then_some(number)
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self(first..=last)),
            _ => Err(format!(
                "no CPU and no range of CPUs: give a list like 2-3,8, of numbers below {}",
                Self::MAX
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_keep_their_order() {
        let read = |text: &str| {
            let items: Result<Vec<Cpus>, _> = text.split(',').map(str::parse).collect();
            items.map(|items| Cpus::of(&items))
        };
        assert_eq!(read("3"), Ok(vec![3]));
        assert_eq!(read("0-1"), Ok(vec![0, 1]));
        assert_eq!(read("8,2-4,1"), Ok(vec![8, 2, 3, 4, 1]));
        for text in [
            "",
            ",",
            "1,",
            "-",
            "-1",
            "1-",
            "3-2",
            "+1",
            "1-2-3",
            "0x1",
            "8192",
            "0-8192",
            "1 ",
            "99999999999999999999",
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains("a list like 2-3,8"), "{text}: {error}");
        }
    }

    #[test]
    fn only_durations_are_taken() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for text in ["0", "-1", "nan", "inf", "1e300", "soon", ""] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
