//! The RoCEv2 back end, over wires inside the process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod faults;
mod messages;
mod rig;
mod wire;
