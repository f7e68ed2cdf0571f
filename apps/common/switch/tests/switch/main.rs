//! The switch between ports of one process, with one frame after the other, by a clock that the test
//! sets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a panic is how a test fails

mod forwarding;
mod hot_path;
mod incast;
mod model;
mod rig;
