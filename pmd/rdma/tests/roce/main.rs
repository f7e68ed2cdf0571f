//! The RoCEv2 back end, over wires inside the process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod faults;
mod hostile;
mod hot_path;
mod hub;
mod life;
mod messages;
mod raw;
mod requester;
mod responder;
mod rig;
mod traffic;
