//! Port specs: the text that names a port on a command line.
//!
//! `driver`, `driver:target`, `driver:key=value,key=value` or `driver:target,key=value`, as in
//! `loopback`, `af_packet:eth0`, `pcap:rx=in.pcap,tx=out.pcapng`, `pci:0000:03:00.0`. Without a
//! target, a comma may replace the colon: `null,size=0`. After the first comma, a `key` alone means
//! `key=on`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::net::MacAddr;

/// A parsed port spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    driver: String,
    target: Option<String>,
    options: Vec<(String, String)>,
}

/// Why a port spec is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The part in front of the colon is empty.
    #[error("port spec `{0}` names no driver; examples: loopback, af_packet:eth0, pcap:rx=FILE")]
    NoDriver(String),
    /// A key occurs twice.
    #[error("port spec `{spec}`: option `{key}` is given twice")]
    Twice {
        /// The whole spec.
        spec: String,
        /// The key.
        key: String,
    },
    /// The driver has no such option.
    #[error("port spec `{spec}`: {driver} has no option `{key}`; it has: {known}")]
    UnknownOption {
        /// The whole spec.
        spec: String,
        /// The driver.
        driver: String,
        /// The key.
        key: String,
        /// The driver's keys.
        known: String,
    },
    /// The driver does not accept the value.
    #[error("port spec `{spec}`: `{value}` is not a valid {key}: {expected}")]
    BadValue {
        /// The whole spec.
        spec: String,
        /// The key, or `target`.
        key: String,
        /// The value.
        value: String,
        /// The accepted values.
        expected: String,
    },
    /// A missing or superfluous target.
    #[error("port spec `{spec}`: {what}")]
    Target {
        /// The whole spec.
        spec: String,
        /// The fault.
        what: String,
    },
}

impl FromStr for PortSpec {
    type Err = SpecError;

    fn from_str(spec: &str) -> Result<Self, SpecError> {
        let end = spec.find([':', ',']).unwrap_or(spec.len());
        let (driver, rest) = spec.split_at(end);
        let (rest, may_be_target) = match rest.strip_prefix(',') {
            Some(options) => (options, false),
            None => (rest.strip_prefix(':').unwrap_or(""), true),
        };
        if driver.is_empty() {
            return Err(SpecError::NoDriver(spec.into()));
        }
        let mut parsed = Self {
            driver: driver.into(),
            target: None,
            options: Vec::new(),
        };
        for (i, part) in rest.split(',').filter(|part| !part.is_empty()).enumerate() {
            let may_be_target = may_be_target && i == 0;
            let (key, value) = match part.split_once('=') {
                // A target with arguments: `net_tap0;iface=x`.
                Some((target, _)) if may_be_target && target.contains(';') => {
                    parsed.target = Some(part.into());
                    continue;
                }
                Some(option) => option,
                None if may_be_target => {
                    parsed.target = Some(part.into());
                    continue;
                }
                None => (part, "on"),
            };
            if parsed.option(key).is_some() {
                return Err(SpecError::Twice {
                    spec: spec.into(),
                    key: key.into(),
                });
            }
            parsed.options.push((key.into(), value.into()));
        }
        Ok(parsed)
    }
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.driver)?;
        let options = self
            .options
            .iter()
            .map(|(key, value)| format!("{key}={value}"));
        // After a colon, a first key with a semicolon would read as a target with arguments.
        let first = self.options.first().filter(|_| self.target.is_none());
        let colon = first.is_none_or(|(key, _)| !key.contains(';'));
        for (i, part) in self.target.iter().cloned().chain(options).enumerate() {
            write!(f, "{}{part}", if i == 0 && colon { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl PortSpec {
    /// A spec without options.
    pub(crate) fn of(driver: &str, target: Option<String>) -> Self {
        Self {
            driver: driver.into(),
            target,
            options: Vec::new(),
        }
    }

    /// The driver's name.
    #[must_use]
    pub fn driver(&self) -> &str {
        &self.driver
    }

    /// The part after the colon without a key: an interface, an address.
    #[must_use]
    pub fn target(&self) -> Option<&str> {
        self.target.as_deref()
    }

    /// The value of an option.
    #[must_use]
    pub fn option(&self, key: &str) -> Option<&str> {
        self.options
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, value)| value.as_str())
    }

    /// Sets an option, or adds it.
    pub(crate) fn set_option(&mut self, key: &str, value: String) {
        match self.options.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.options.push((key.into(), value)),
        }
    }

    /// Removes an option, if it is there.
    pub(crate) fn remove_option(&mut self, key: &str) {
        self.options.retain(|(known, _)| known != key);
    }

    /// Sets an option if the spec does not have it.
    #[must_use]
    pub fn with_default(mut self, key: &str, value: &str) -> Self {
        if self.option(key).is_none() {
            self.options.push((key.into(), value.into()));
        }
        self
    }

    /// Refuses options that the driver does not have, so that a typo is not ignored.
    ///
    /// # Errors
    /// Names the first unknown option and the known ones.
    pub fn expect_options(&self, known: &[&str]) -> Result<(), SpecError> {
        self.expect_options_of(&self.driver, known)
    }

    /// As [`expect_options`](Self::expect_options), for a name that stands for several drivers;
    /// `driver` is the selected one.
    ///
    /// # Errors
    /// Names the first unknown option and the known ones.
    pub fn expect_options_of(&self, driver: &str, known: &[&str]) -> Result<(), SpecError> {
        match self
            .options
            .iter()
            .find(|(key, _)| !known.contains(&key.as_str()))
        {
            None => Ok(()),
            Some((key, _)) => Err(SpecError::UnknownOption {
                spec: self.to_string(),
                driver: driver.into(),
                key: key.clone(),
                known: if known.is_empty() {
                    "none".into()
                } else {
                    known.join(", ")
                },
            }),
        }
    }

    /// The parsed value of an option, or `default`.
    ///
    /// # Errors
    /// An invalid value; names the valid ones.
    pub fn parse_option<T: FromStr>(
        &self,
        key: &str,
        default: T,
        expected: &str,
    ) -> Result<T, SpecError> {
        match self.option(key) {
            None => Ok(default),
            Some(value) => value
                .parse()
                .map_err(|_| self.bad_value(key, value, expected)),
        }
    }

    /// The value of an `on`/`off` option, or `default`.
    ///
    /// # Errors
    /// Any other value.
    pub fn switch(&self, key: &str, default: bool) -> Result<bool, SpecError> {
        match self.option(key) {
            None => Ok(default),
            Some("on") => Ok(true),
            Some("off") => Ok(false),
            Some(other) => Err(self.bad_value(key, other, "on or off")),
        }
    }

    /// The value of a numeric option with a range, if the spec has it.
    ///
    /// # Errors
    /// A value out of range; names the range.
    pub fn number(
        &self,
        key: &str,
        range: RangeInclusive<usize>,
    ) -> Result<Option<usize>, SpecError> {
        let Some(text) = self.option(key) else {
            return Ok(None);
        };
        match text.parse() {
            Ok(n) if range.contains(&n) => Ok(Some(n)),
            _ => {
                let expected = format!("a number of {} to {}", range.start(), range.end());
                Err(self.bad_value(key, text, &expected))
            }
        }
    }

    /// The value of an option with named values; without the option, the first of them.
    ///
    /// # Errors
    /// An unknown name; lists the known ones.
    pub fn choice<T: Copy, const N: usize>(
        &self,
        key: &str,
        words: [(&str, T); N],
    ) -> Result<T, SpecError> {
        const { assert!(N > 1, "a choice has something to choose") };
        let Some(text) = self.option(key) else {
            return Ok(words[0].1);
        };
        let chosen = words.iter().find(|(word, _)| *word == text);
        chosen.map(|&(_, meaning)| meaning).ok_or_else(|| {
            let [others @ .., (last, _)] = &words[..] else {
                return self.bad_value(key, text, "nothing");
            };
            let others: Vec<_> = others.iter().map(|(word, _)| *word).collect();
            self.bad_value(key, text, &format!("{} or {last}", others.join(", ")))
        })
    }

    /// The unicast address of an option, if the spec has it.
    ///
    /// # Errors
    /// Another text, or a multicast address.
    pub(crate) fn station(&self, key: &str) -> Result<Option<MacAddr>, SpecError> {
        let Some(text) = self.option(key) else {
            return Ok(None);
        };
        match text.parse::<MacAddr>() {
            Ok(mac) if mac.is_unicast() => Ok(Some(mac)),
            _ => {
                let expected = "the address of one station, as in 02:00:00:00:00:01";
                Err(self.bad_value(key, text, expected))
            }
        }
    }

    /// The error for an unacceptable value.
    #[must_use]
    pub fn bad_value(&self, key: &str, value: &str, expected: &str) -> SpecError {
        SpecError::BadValue {
            spec: self.to_string(),
            key: key.into(),
            value: value.into(),
            expected: expected.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn specs_of_the_docs_parse_and_print() {
        for spec in [
            "loopback",
            "loopback:queues=2",
            "af_packet:eth0",
            "af_packet:eth0,frame=4096",
            "pcap:rx=in.pcap,tx=out.pcapng",
            "pci:0000:03:00.0",
            "dpdk:net_af_packet0;iface=eth0,promisc=on",
            "vhost-user:/path.sock,server=1",
            "null,a;b=on",
        ] {
            assert_eq!(spec.parse::<PortSpec>().unwrap().to_string(), spec);
        }
        let spec: PortSpec = "pci:0000:03:00.0,mtu=9000".parse().unwrap();
        assert_eq!(
            (spec.target(), spec.option("mtu")),
            (Some("0000:03:00.0"), Some("9000"))
        );
        let spec: PortSpec = "vhost-user:/path.sock,server".parse().unwrap();
        assert_eq!(spec.to_string(), "vhost-user:/path.sock,server=on");
        // Without a target, a comma may replace the colon; no target can follow it.
        let spec: PortSpec = "null,size=0".parse().unwrap();
        assert_eq!(spec, "null:size=0".parse().unwrap());
        let spec: PortSpec = "af_packet,promisc,ring=a:b".parse().unwrap();
        assert_eq!((spec.driver(), spec.target()), ("af_packet", None));
        assert_eq!(
            (spec.option("promisc"), spec.option("ring")),
            (Some("on"), Some("a:b"))
        );
    }

    #[test]
    fn nonsense_is_named() {
        let error = |spec: &str| spec.parse::<PortSpec>().unwrap_err().to_string();
        assert!(error("").contains("names no driver"));
        assert!(error(":eth0").contains("names no driver"));
        assert!(error("pcap:rx=a,rx=b").contains("`rx` is given twice"));
        let spec: PortSpec = "pcap:rxx=a".parse().unwrap();
        let typo = spec.expect_options(&["rx", "tx"]).unwrap_err().to_string();
        assert_eq!(
            typo,
            "port spec `pcap:rxx=a`: pcap has no option `rxx`; it has: rx, tx"
        );
    }
}
