//! Sizes, rates and times on a command line: one syntax and one error text for each.
//!
//! A size or a rate is a number, which may have decimals, with an optional prefix and unit: `1500`,
//! `1.5k`, `4G`. A time is a number of seconds, or numbers with units: `0.2`, `250ms`, `1h 30min`.
//! The error text of an option lists the forms that it accepts.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Longest time of an option: four months.
const LONGEST: Duration = Duration::from_secs(10_000_000);

/// Reads a duration, for clap's `value_parser`: a number of seconds, or numbers with units as
/// `humantime` reads them (`250ms`, `1.5min`, `1h 30min`).
///
/// # Errors
/// Text that is neither, or not a time above 0 and of at most 1e7 seconds, four months.
pub fn seconds(text: &str) -> Result<Duration, String> {
    seconds_up_to(text, LONGEST)
}

/// Parses a duration above 0 as [`seconds`], with an upper limit.
///
/// # Errors
/// As there.
pub fn seconds_up_to(text: &str, longest: Duration) -> Result<Duration, String> {
    let span = duration(text).filter(|span| !span.is_zero() && *span <= longest);
    span.ok_or_else(|| wrong_time("above 0 and ", longest))
}

/// Parses a time that may be 0, with the syntax of [`seconds`].
///
/// # Errors
/// As there.
pub fn time_up_to(text: &str, longest: Duration) -> Result<Duration, String> {
    let span = duration(text).filter(|span| *span <= longest);
    span.ok_or_else(|| wrong_time("", longest))
}

fn duration(text: &str) -> Option<Duration> {
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => humantime::parse_duration(text).ok(),
    }
}

fn wrong_time(above: &str, longest: Duration) -> String {
    format!(
        "write a number of seconds, or a time like 250ms, 1.5min or 1h, {above}at most {} s",
        longest.as_secs()
    )
}

/// Parses the size of a file, for clap's `value_parser`.
///
/// # Errors
/// Text that is no size, or one below 10 000 bytes: a file with nothing in it.
pub fn bytes(text: &str) -> Result<u64, String> {
    /// Header, statistics and a frame or two.
    const LEAST: u64 = 10_000;
    /// Above it, floating point does not represent every number of bytes.
    const MOST: u64 = 1 << f64::MANTISSA_DIGITS;
    bytes_within(text, LEAST..=MOST)
}

/// Reads a number of bytes: `1500`, `64k`, `1.5MB`.
///
/// # Errors
/// Text that is no such number, or one outside the range.
pub fn bytes_within(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let size = prefixed(text).filter(|(_, unit)| matches!(*unit, "" | "B"));
    // 1.1k is not quite 1100 in floating point.
    let size = size.map(|(size, _)| (size, size.round()));
    let whole = size.filter(|(size, whole)| (size - whole).abs() <= 1e-9 * whole);
    let size = whole.map(|(_, whole)| whole as u64);
    size.filter(|size| range.contains(size)).ok_or_else(|| {
        let (least, most) = range.into_inner();
        format!("write a number of bytes like 1500, 64k or 1.5MB, from {least} to {most}")
    })
}

/// Accepted forms of a rate on a command line.
#[derive(Clone, Debug)]
pub struct Rates {
    /// Units that may follow the number and its prefix.
    pub units: &'static [&'static str],
    /// Least and greatest rate.
    pub range: RangeInclusive<f64>,
    /// Whether `max` is accepted, for the highest possible rate.
    pub max: bool,
}

impl Rates {
    /// Parses a number a second, and its unit, which may be empty; `None` for `max`.
    ///
    /// # Errors
    /// Text that is no such rate.
    pub fn read<'a>(&self, text: &'a str) -> Result<Option<(f64, &'a str)>, String> {
        if self.max && text == "max" {
            return Ok(None);
        }
        let rate = prefixed(text)
            .filter(|(rate, _)| self.range.contains(rate))
            .filter(|(_, unit)| unit.is_empty() || self.units.contains(unit));
        rate.map(Some).ok_or_else(|| self.error_text())
    }

    /// The error text for a value that is not such a rate.
    #[must_use]
    pub fn error_text(&self) -> String {
        let [least, most] = [self.range.start(), self.range.end()].map(|rate| shown(*rate));
        let unit = self.units.first().copied().unwrap_or_default();
        let units = self.units.join(", ");
        let max = if self.max { "; or max" } else { "" };
        format!(
            "write a number a second like 250k or 1.5M{unit}, with a unit ({units}) or none, from {least} \
             to {most}{max}"
        )
    }
}

/// A number in the form that the parser accepts.
fn shown(number: f64) -> String {
    let prefixes = [("G", 1e9), ("M", 1e6), ("k", 1e3)];
    let whole = |(_, factor): &(&str, f64)| number >= *factor && number % factor == 0.0;
    match prefixes.into_iter().find(whole) {
        Some((prefix, factor)) => format!("{}{prefix}", number / factor),
        None => number.to_string(),
    }
}

/// Parses a number, which may have decimals, and its prefix, and returns the rest as the unit.
/// Exponents and signs are refused. No small letter but k is a prefix: m is a thousandth.
fn prefixed(text: &str) -> Option<(f64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let number: f64 = number.parse().ok()?;
    let factors = [('k', 1e3), ('K', 1e3), ('M', 1e6), ('G', 1e9)];
    let found = factors
        .iter()
        .find_map(|&(prefix, factor)| Some((factor, unit.strip_prefix(prefix)?)));
    let (factor, unit) = found.unwrap_or((1.0, unit));
    Some((number * factor, unit))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_durations_are_taken() {
        for (text, millis) in [
            ("0.25", 250),
            ("250ms", 250),
            ("1.5min", 90_000),
            ("2s", 2000),
            ("1h 30min", 5_400_000),
        ] {
            assert_eq!(seconds(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        let error = seconds("soon").unwrap_err();
        assert!(error.contains("250ms") && error.ends_with("above 0 and at most 10000000 s"));
        for text in [
            "0",
            "-1",
            "nan",
            "inf",
            "1e300",
            "soon",
            "",
            "0s",
            "5 parsecs",
            "1y",
            "1e-10",
        ] {
            assert_eq!(seconds(text).unwrap_err(), error, "{text}");
        }
        let hour = Duration::from_hours(1);
        assert_eq!(time_up_to("0us", hour), Ok(Duration::ZERO));
        assert_eq!(time_up_to("300us", hour), Ok(Duration::from_micros(300)));
        assert_eq!(time_up_to("1h", hour), Ok(hour));
        for text in ["3601", "61min", "soon"] {
            assert!(
                time_up_to(text, hour)
                    .unwrap_err()
                    .ends_with(", at most 3600 s")
            );
            assert!(
                seconds_up_to(text, hour)
                    .unwrap_err()
                    .ends_with("0 and at most 3600 s")
            );
        }
    }

    #[test]
    fn numbers_are_read_with_their_prefix() {
        for (text, read) in [
            ("100", (100.0, "")),
            ("1.5Mpps", (1.5e6, "pps")),
            ("250k", (250e3, "")),
            ("4GB", (4e9, "B")),
            ("1mpps", (1.0, "mpps")),
            ("1e6", (1.0, "e6")),
        ] {
            assert_eq!(prefixed(text), Some(read), "{text}");
        }
        for text in ["", "k", "-1", "1..2", "inf", "."] {
            assert_eq!(prefixed(text), None, "{text}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(bytes("100MB"), Ok(100_000_000));
        assert_eq!(bytes("500k"), Ok(500_000));
        assert_eq!(bytes("4G"), Ok(4_000_000_000));
        assert_eq!(bytes("1.5GB"), Ok(1_500_000_000));
        assert_eq!(bytes("65536"), Ok(65_536));
        for text in ["", "MB", "1", "-5MB", "1TB", "99999999999999999999GB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        for (text, size) in [("1.1k", 1100), ("0.3k", 300), ("64", 64), ("9kB", 9000)] {
            assert_eq!(bytes_within(text, 64..=9000), Ok(size), "{text}");
        }
        for text in ["63", "9001", "64.5", "1.00005k", "1 k", "0x40", "1e3"] {
            let error = bytes_within(text, 64..=9000).unwrap_err();
            assert!(error.ends_with("from 64 to 9000"), "{text}: {error}");
        }
    }

    #[test]
    fn rates() {
        let packets = Rates {
            units: &["pps", "p/s"],
            range: 1.0..=1e10,
            max: true,
        };
        assert_eq!(packets.read("max"), Ok(None));
        for (text, rate) in [
            ("1", (1.0, "")),
            ("250k", (250e3, "")),
            ("1.5Mpps", (1.5e6, "pps")),
            ("10Gp/s", (1e10, "p/s")),
        ] {
            assert_eq!(packets.read(text), Ok(Some(rate)), "{text}");
        }
        for text in ["", "fast", "0", "11G", "1e6", "1Hz", "-1", "Max"] {
            let error = packets.read(text).unwrap_err();
            assert_eq!(error, packets.error_text(), "{text}");
            assert!(error.contains("(pps, p/s)") && error.ends_with("from 1 to 10G; or max"));
            assert!(error.contains("1.5Mpps"));
        }
        // The limits in the error text are accepted values.
        assert_eq!(packets.read("10G"), Ok(Some((1e10, ""))));
        let fixed = Rates {
            max: false,
            ..packets
        };
        assert!(!fixed.read("max").unwrap_err().contains("or max"));
    }
}
