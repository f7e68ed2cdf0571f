//! Ports of DPDK (feature `dpdk`), all in one process, as EAL starts once.
#![cfg(feature = "dpdk")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
mod kernel;
mod lifecycle;
