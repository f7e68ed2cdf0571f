//! Errors before a run.

use std::io;

/// Reason why an output to Kafka cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file of properties cannot be read.
    #[error("conf={path}: {error}")]
    File {
        /// The file.
        path: String,
        /// Error of the system.
        error: io::Error,
    },
    /// A line of the file of properties has another form.
    #[error("conf={path}, line {line}: `{text}` is not KEY=VALUE")]
    Line {
        /// The file.
        path: String,
        /// Number of the line, from 1.
        line: usize,
        /// The line, up to the first blank: the rest may be a secret.
        text: String,
    },
    /// A property that the output sets itself.
    #[error("conf={path}, line {line}: `{key}` is not for this file: the output sets it")]
    Reserved {
        /// The file.
        path: String,
        /// Number of the line, from 1.
        line: usize,
        /// The property.
        key: String,
    },
    /// librdkafka refuses a property.
    #[error("librdkafka refuses its configuration: {0}")]
    Property(String),
    /// No address of the list has a host that this machine can resolve.
    #[error("the host of {address} has no address: {error}")]
    NoHost {
        /// The last address of the list.
        address: String,
        /// Error of the system.
        error: io::Error,
    },
    /// No broker of the list can be connected to.
    #[error("no broker at {address}: {error}")]
    Unreachable {
        /// The last address of the list.
        address: String,
        /// Error of the system.
        error: io::Error,
    },
    /// What answers is no broker, or refuses to answer.
    #[error("{brokers} does not answer as a Kafka broker: {what} (TLS and SASL: conf=FILE)")]
    NoAnswer {
        /// The addresses.
        brokers: String,
        /// Error of librdkafka.
        what: String,
    },
    /// The brokers refuse to create a topic.
    #[error("topic {topic} is not there and cannot be created: {what}")]
    Create {
        /// The topic.
        topic: String,
        /// Error of the broker.
        what: String,
    },
    /// The topic lacks the partition.
    #[error(
        "topic {topic} has {partitions} partitions, from 0 on: there is no partition={partition}"
    )]
    NoPartition {
        /// The topic.
        topic: String,
        /// Number of its partitions; 1 for one that would be created.
        partitions: usize,
        /// The requested one.
        partition: i32,
    },
}

impl Error {
    /// Whether another attempt can succeed without another spec or another file of properties: a broker
    /// starts, a network comes back.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::NoAnswer { .. } | Self::Create { .. }
        )
    }
}
