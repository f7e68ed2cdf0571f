//! Command-line value types, and options that several programs share.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::ops::RangeInclusive;
use std::str::FromStr;

use pollux_pmd::{ClockChoice, TscClock};

use crate::Failure;

/// Clock option of every program whose loops read the clock. Flatten it into the command line.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[group(skip)]
pub struct ClockOption {
    /// Time source of loops: auto, tsc or raw
    ///
    /// tsc: the CPU's time stamp counter. raw: CLOCK_MONOTONIC_RAW of the kernel, which takes longer
    /// and may enter the kernel. auto: tsc where the CPU or the kernel trusts it, else raw, with a
    /// warning (`pollux doctor` says which, and why).
    #[arg(long, value_name = "SOURCE", default_value_t, global = true)]
    clock: ClockChoice,
}

impl ClockOption {
    /// Selects the clock of the process. Call it before the first read of the clock.
    ///
    /// # Errors
    /// The process has read another clock before.
    pub fn select(self) -> Result<(), Failure> {
        Ok(TscClock::select(self.clock).map_err(anyhow::Error::from)?)
    }
}

/// One item of a list of CPUs, `2` or `2-5`: the element of an option `--cores` with
/// `value_delimiter = ','`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus(RangeInclusive<usize>);

impl Cpus {
    /// Upper limit of a CPU number: above that of any machine, yet a list of all CPUs stays short.
    const MAX: usize = 100_000;

    /// CPUs of all items, in the given order.
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
                "neither a CPU nor a range of CPUs: give a list like 2-3,8, of numbers below {}",
                Self::MAX
            )),
        }
    }
}

/// Parses the address and port that a program serves, for clap's `value_parser`: `127.0.0.1:8080`,
/// `[::1]:8080` or, with a name that this machine resolves, `localhost:8080`. Of the addresses of a
/// name, the first IPv4 address is used, or else the first.
///
/// # Errors
/// Text that is no such pair, and a name that does not resolve here.
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
        // Reserved as an invalid name (RFC 6761 section 6.4).
        let none = address("nowhere.invalid:80");
        assert!(none.is_err_and(|error| error.contains("nowhere.invalid has no address")));
    }
}
