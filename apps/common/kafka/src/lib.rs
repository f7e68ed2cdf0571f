//! Kafka: messages with the schemas of the European Spallation Source, and their producer.
//!
//! | item | what |
//! | --- | --- |
//! | [`Ev44`] | detector events |
//! | [`da00`] | arrays of data |
//! | [`RunMessages`] | start and end of a run |
//! | [`Properties`] | librdkafka's properties in a file |
//! | `KIND` | outputs to Kafka, with the feature `librdkafka` |
//!
//! Messages and their use: docs/formats/kafka.md.

#[cfg(feature = "librdkafka")]
mod broker;
#[cfg(feature = "librdkafka")]
mod collector;
mod da00;
#[cfg(feature = "librdkafka")]
mod epochs;
mod error;
mod ev44;
#[cfg(feature = "librdkafka")]
mod monitor;
#[cfg(feature = "librdkafka")]
mod output;
#[cfg(feature = "librdkafka")]
mod plan;
#[cfg(feature = "librdkafka")]
mod producer;
mod properties;
mod run_messages;
mod schema;

#[cfg(feature = "librdkafka")]
pub use self::broker::Place;
pub use self::da00::{Values, Variable, da00};
pub use self::error::Error;
pub use self::ev44::Ev44;
#[cfg(feature = "librdkafka")]
pub use self::plan::KIND;
#[cfg(feature = "librdkafka")]
pub use self::producer::{Producer, WAITING};
pub use self::properties::Properties;
pub use self::run_messages::RunMessages;
