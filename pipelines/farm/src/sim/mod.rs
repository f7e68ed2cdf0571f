//! Discrete-event simulation of event builders.
//!
//! One engine ([`Engine`]) with whole picoseconds, ties by number and a seed runs all models, and one
//! seed gives one digest of all that happened. [`Scenario`]s combine a network, a policy and a
//! source of events, and have parameters ([`Key`]) with units, ranges and defaults.

mod builder;
mod engine;
pub mod level1;
pub mod network;
pub mod policy;
mod queue;
mod scenario;
mod settings;
mod sizes;
mod statistics;
pub mod torus;

pub use builder::{Builder, Parts, Triggers};
pub use engine::{Digest, Engine};
pub use policy::PolicyName;
pub use scenario::{Scenario, SimError};
pub use settings::{Key, Kind, Settings, SettingsError, Value};
pub use sizes::{Shape, Sizes};
pub use statistics::{Latency, Progress, Results, Times};
