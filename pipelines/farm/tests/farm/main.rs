//! The roles together over a network in memory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod farm;
mod faults;
mod lies;
mod network;
mod plain;
mod policies;
mod random;
mod still;
