//! A file of librdkafka's properties.

use std::fs;
use std::path::Path;

use crate::error::Error;

/// Properties that the output sets itself, with their other names in librdkafka.
const RESERVED: [&str; 11] = [
    "bootstrap.servers",
    "metadata.broker.list",
    "enable.idempotence",
    "transactional.id",
    "queue.buffering.max.kbytes",
    "queue.buffering.max.messages",
    "message.timeout.ms",
    "delivery.timeout.ms",
    "delivery.report.only.error",
    "test.mock.num.brokers",
    "debug",
];

/// Properties of a file, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties(Vec<(String, String)>);

impl Properties {
    /// Reads a file of lines KEY=VALUE; empty lines and lines that begin with `#` have no meaning.
    ///
    /// # Errors
    /// A file that cannot be read, a line of another form, a property that the output sets itself.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let shown = || path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| Error::File {
            path: shown(),
            error,
        })?;
        let mut properties = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let Some((key, value)) = text.split_once('=') else {
                return Err(Error::Line {
                    path: shown(),
                    line,
                    text: text.split_whitespace().next().unwrap_or_default().into(),
                });
            };
            let (key, value) = (key.trim(), value.trim());
            if RESERVED.contains(&key) {
                return Err(Error::Reserved {
                    path: shown(),
                    line,
                    key: key.into(),
                });
            }
            properties.push((key.into(), value.into()));
        }
        Ok(Self(properties))
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&key[..], &value[..]))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_is_read_and_what_is_wrong_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kafka.conf");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            Properties::read(&path)
        };
        let properties = read("# TLS\n\n security.protocol = ssl\nsasl.password=a=b\n").unwrap();
        let pairs: Vec<_> = properties.iter().collect();
        assert_eq!(
            pairs,
            [("security.protocol", "ssl"), ("sasl.password", "a=b")]
        );
        let told = |text: &str| read(text).unwrap_err().to_string();
        let line = told("a=b\nsasl.password secret\n");
        assert!(
            line.ends_with("line 2: `sasl.password` is not KEY=VALUE"),
            "{line}"
        );
        let reserved = told("bootstrap.servers=other:9092");
        assert!(
            reserved.contains("line 1: `bootstrap.servers` is not for this file"),
            "{reserved}"
        );
        let missing = Properties::read(&folder.path().join("none")).unwrap_err();
        assert!(
            missing
                .to_string()
                .ends_with("No such file or directory (os error 2)")
        );
    }
}
