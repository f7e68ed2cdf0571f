//! A malicious device, and a trial of a driver against it: for tests and fuzzing.
//!
//! An [`Adversary`] wraps an honest [`Model`](crate::fake::Model). At each register access and
//! whenever time passes it may inject a fault: overwrite descriptors, lengths, indices and the
//! bytes of frames, set registers, return any value, lose a write, interrupt, or be unplugged.
//! [`run`] has a driver receive, send, stop and start with it, and checks that the driver keeps its
//! promises to its user. The [`FaultModel`] bounds the faults.

mod canaries;
mod choices;
mod device;
mod trial;

pub use self::choices::Choices;
pub use self::device::{Adversary, FaultModel, FaultPlan};
pub use self::trial::{Outcome, Trial, run};
