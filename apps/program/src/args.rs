//! Values on a command line, and options that programs share.

use std::net::{SocketAddr, ToSocketAddrs as _};
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

/// Longest time of an option, in seconds: four months.
const LONGEST: f64 = 1e7;

/// Reads a duration, for clap's `value_parser`: a number of seconds, or numbers with units as
/// `humantime` reads them (`250ms`, `1.5min`, `1h 30min`).
///
/// # Errors
/// Text that is neither, or not a time above 0 and of at most 1e7 seconds, four months.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = match text.parse::<f64>() {
        Ok(seconds) => seconds,
        Err(_) => humantime::parse_duration(text)
            .map_err(|_| {
                "write a number of seconds, or a time like 250ms, 1.5min or 1h".to_owned()
            })?
            .as_secs_f64(),
    };
    (seconds <= LONGEST)
        .then(|| Duration::try_from_secs_f64(seconds).ok())
        .flatten()
        .filter(|span| !span.is_zero())
        .ok_or_else(|| format!("must be above 0, and at most {LONGEST:e} seconds"))
}

/// One item of a list of CPUs, `2` or `2-5`: the element of an option `--cores` with
/// `value_delimiter = ','`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus(RangeInclusive<usize>);

impl Cpus {
    /// More than any machine has: a list of all of them is still short.
    const MAX: usize = 100_000;

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

/// Reads the address and port that a program serves something at, for clap's `value_parser`:
/// `127.0.0.1:8080`, `[::1]:8080` or, with a name that this machine resolves, `localhost:8080`. Of
/// the addresses of a name, the first of IPv4 is taken, or else the first.
///
/// # Errors
/// Text that is no such pair, and a name that means nothing here.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    const FORM: &str = "write ADDRESS:PORT, as 127.0.0.1:8080, localhost:8080 or [::1]:8080";
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (name, port) = text.rsplit_once(':').ok_or(FORM)?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if name.is_empty() || !name.chars().all(is_name) || port.parse::<u16>().is_err() {
        return Err(FORM.into());
    }
    let found = text.to_socket_addrs();
    let found: Vec<_> = found
        .map_err(|error| format!("{name} has no address here: {error}"))?
        .collect();
    let ipv4 = found.iter().find(|address| address.is_ipv4());
    let chosen = ipv4.or(found.first()).copied();
    chosen.ok_or_else(|| format!("{name} has no address here"))
}

/// Reads the size of a file, for clap's `value_parser`.
///
/// # Errors
/// Text that is no size, or one below 10 000 bytes: a file with nothing in it.
pub fn bytes(text: &str) -> Result<u64, String> {
    /// Header, statistics and a frame or two.
    const LEAST: u32 = 10_000;
    /// Above it, not every number of bytes is one of the floating point's.
    const MOST: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;
    match prefixed(text) {
        Some((size, "" | "B")) if size < f64::from(LEAST) => {
            Err(format!("must be at least {LEAST} bytes"))
        }
        Some((size, "" | "B")) if size <= MOST => Ok(size as u64),
        _ => Err("write a number of bytes like 500k, 100MB or 4GB".into()),
    }
}

/// Reads a number, which may have decimals, and its prefix; and leaves the unit. No exponents and
/// no signs. Small letters but k are no prefixes: m is a thousandth.
#[must_use]
pub fn prefixed(text: &str) -> Option<(f64, &str)> {
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
            "100000",
            "0-100000",
            "1 ",
            "99999999999999999999",
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains("a list like 2-3,8"), "{text}: {error}");
        }
    }

    #[test]
    fn addresses_are_read_and_names_resolved() {
        for text in ["127.0.0.1:8080", "[::1]:8080", "0.0.0.0:0"] {
            assert_eq!(address(text).map(|a| a.to_string()), Ok(text.into()));
        }
        let local = address("localhost:8080");
        assert!(
            local
                .as_ref()
                .is_ok_and(|a| a.ip().is_loopback() && a.port() == 8080),
            "{local:?}"
        );
        for text in [
            "",
            "8080",
            ":8080",
            "localhost",
            "localhost:",
            "::1:80:x",
            "a b:1",
            "a:65536",
        ] {
            let error = address(text);
            assert!(
                error.as_ref().is_err_and(|e| e.contains("ADDRESS:PORT")),
                "{error:?}"
            );
        }
        // Reserved for names that are none (RFC 6761 section 6.4).
        let none = address("nowhere.invalid:80");
        assert!(none.is_err_and(|error| error.contains("nowhere.invalid has no address")));
    }

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
            assert!(seconds(text).is_err(), "{text}");
        }
        assert!(seconds("soon").unwrap_err().contains("250ms"));
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
    }
}
