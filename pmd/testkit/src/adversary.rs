//! A device that does what it likes, and a run of a driver against it: for tests and fuzzing.
//!
//! An [`Adversary`] stands before an honest [`Model`](crate::fake::Model). Whenever the driver
//! touches a register or lets time pass it may do harm: write over descriptors, lengths, indices and
//! the bytes of frames, set registers, answer anything, lose a write, interrupt, or be unplugged.
//! [`run`] has a driver receive, send, stop and start with it, and holds it to what it owes its user
//! whatever the device does. How far the device goes, its [`Manner`] says.

mod choices;
mod device;
mod kept;
mod trial;

pub use self::choices::Choices;
pub use self::device::{Adversary, Manner, Will};
pub use self::trial::{Outcome, Trial, run};
