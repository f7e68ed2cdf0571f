//! Output specs: the text that names an output on a command line or in a configuration.
//!
//! `kind:target,key=value,key=value`, as a port spec. The value of a last key `port` is a port spec
//! with its commas: `ejfat:10.0.0.1:19522,port=pcap:tx=out.pcap`.

use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use pollux_pmd::PortSpec;
use pollux_pmd::spec::SpecError;

use crate::error::OutputError;

/// What begins a port spec in an output spec.
const PORT: &str = ",port=";

/// A parsed output spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSpec {
    text: String,
    /// The grammar is that of ports.
    parsed: PortSpec,
    port: Option<String>,
}

impl FromStr for OutputSpec {
    type Err = OutputError;

    fn from_str(text: &str) -> Result<Self, OutputError> {
        let (own, port) = match text.split_once(PORT) {
            Some((own, port)) => (own, Some(port.to_owned())),
            None => (text, None),
        };
        let parsed = own.parse().map_err(|error| error_of(text, &error))?;
        Ok(Self {
            text: text.into(),
            parsed,
            port,
        })
    }
}

impl fmt::Display for OutputSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The error of the grammar, for an output.
fn error_of(text: &str, error: &SpecError) -> OutputError {
    let what = match error {
        SpecError::NoDriver(_) => {
            "it names no kind of output; examples: ejfat:10.0.0.1:19522, kafka:broker:9092,topic=l0"
                .into()
        }
        SpecError::Twice { key, .. } => format!("option `{key}` is given twice"),
        SpecError::UnknownOption {
            driver, key, known, ..
        } => format!("{driver} has no option `{key}`; it has: {known}"),
        SpecError::BadValue {
            key,
            value,
            expected,
            ..
        } => format!("`{value}` is not a valid {key}: {expected}"),
        SpecError::Target { what, .. } => what.clone(),
        other => other.to_string(),
    };
    OutputError::Spec {
        spec: text.into(),
        what,
    }
}

impl OutputSpec {
    /// The kind: the part in front of the colon.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.parsed.driver()
    }

    /// The part after the colon without a key: an address.
    #[must_use]
    pub fn target(&self) -> Option<&str> {
        self.parsed.target()
    }

    /// The port spec of a last option `port`.
    #[must_use]
    pub fn port(&self) -> Option<&str> {
        self.port.as_deref()
    }

    /// The value of an option; of one with an empty value, an error.
    ///
    /// # Errors
    /// An empty value.
    pub fn option(&self, key: &str) -> Result<Option<&str>, OutputError> {
        match self.parsed.option(key) {
            Some("") => Err(self.bad_value(key, "", "a value")),
            value => Ok(value),
        }
    }

    /// Refuses options that the kind does not have, so that a typo is not ignored.
    ///
    /// # Errors
    /// Names the first unknown option and the known ones.
    pub fn expect_options(&self, known: &[&str]) -> Result<(), OutputError> {
        let checked = self.parsed.expect_options(known);
        checked.map_err(|error| error_of(&self.text, &error))?;
        if self.port.is_some() && !known.contains(&"port") {
            let (kind, known) = (self.kind(), known.join(", "));
            return Err(self.error(format!("{kind} has no option `port`; it has: {known}")));
        }
        Ok(())
    }

    /// The value of a numeric option with a range, if the spec has it.
    ///
    /// # Errors
    /// A value out of range; names the range.
    pub fn number(
        &self,
        key: &str,
        range: RangeInclusive<usize>,
    ) -> Result<Option<usize>, OutputError> {
        let number = self.parsed.number(key, range);
        number.map_err(|error| error_of(&self.text, &error))
    }

    /// The value of an option with named values; without the option, the first of them.
    ///
    /// # Errors
    /// An unknown name; lists the known ones.
    pub fn choice<T: Copy, const N: usize>(
        &self,
        key: &str,
        words: [(&str, T); N],
    ) -> Result<T, OutputError> {
        let choice = self.parsed.choice(key, words);
        choice.map_err(|error| error_of(&self.text, &error))
    }

    /// An address and port, with a name or a number, from the option `key` (or `target`) with the
    /// value `text`.
    ///
    /// # Errors
    /// Another text, port 0, or a name without an address.
    pub fn address(&self, key: &str, text: &str) -> Result<SocketAddr, OutputError> {
        let address = pollux_app::address(text).and_then(|address| match address.port() {
            0 => Err("the port is 1 to 65535".into()),
            _ => Ok(address),
        });
        address.map_err(|expected| self.bad_value(key, text, &expected))
    }

    /// The error for an unacceptable value.
    #[must_use]
    pub fn bad_value(&self, key: &str, value: &str, expected: &str) -> OutputError {
        self.error(format!("`{value}` is not a valid {key}: {expected}"))
    }

    /// An error about this spec: the fault, and the remedy.
    #[must_use]
    pub fn error(&self, what: impl Into<String>) -> OutputError {
        OutputError::Spec {
            spec: self.text.clone(),
            what: what.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn specs_of_the_docs_parse() {
        let spec: OutputSpec = "kafka:a:9092+b:9092,topic=l0,format=ev44".parse().unwrap();
        assert_eq!(
            (spec.kind(), spec.target()),
            ("kafka", Some("a:9092+b:9092"))
        );
        assert_eq!(spec.option("topic").unwrap(), Some("l0"));
        assert_eq!(spec.port(), None);
        let spec: OutputSpec = "ejfat:[::1]:19522,mtu=9000,port=pcap:rx=a,tx=b"
            .parse()
            .unwrap();
        assert_eq!(spec.target(), Some("[::1]:19522"));
        assert_eq!(spec.port(), Some("pcap:rx=a,tx=b"));
        assert_eq!(spec.number("mtu", 1..=10_000).unwrap(), Some(9000));
        spec.expect_options(&["mtu", "port"]).unwrap();
    }

    #[test]
    fn wrong_specs_are_refused() {
        let error = |spec: &str| spec.parse::<OutputSpec>().unwrap_err().to_string();
        assert!(error("").starts_with("output spec ``: it names no kind of output"));
        assert_eq!(
            error("kafka:a:1,topic=a,topic=b"),
            "output spec `kafka:a:1,topic=a,topic=b`: option `topic` is given twice"
        );
        let spec: OutputSpec = "kafka:a:1,topc=x,port=null".parse().unwrap();
        let typo = spec.expect_options(&["topic"]).unwrap_err().to_string();
        assert!(
            typo.ends_with("kafka has no option `topc`; it has: topic"),
            "{typo}"
        );
        let port = spec.expect_options(&["topc"]).unwrap_err().to_string();
        assert!(
            port.ends_with("kafka has no option `port`; it has: topc"),
            "{port}"
        );
        let spec: OutputSpec = "kafka:a:1,topic=".parse().unwrap();
        let empty = spec.option("topic").unwrap_err().to_string();
        assert!(
            empty.ends_with("`` is not a valid topic: a value"),
            "{empty}"
        );
        for address in ["1.2.3.4", "1.2.3.4:0", "1.2.3.4:65536", "x y:1", ""] {
            assert!(spec.address("target", address).is_err(), "{address}");
        }
    }
}
