//! The RoCEv2 back end, over wires inside the process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::trivially_copy_pass_by_ref)] // options, as in the API

mod congestion;
mod connect;
mod faults;
mod frames;
mod hostile;
mod hot_path;
mod hub;
mod killed;
mod life;
mod link;
mod messages;
mod raw;
mod reads;
mod requester;
mod responder;
mod rig;
mod threads;
mod traffic;
mod unreliable;
mod wire;
