//! Ports of DPDK (feature `dpdk`), all in one process, as EAL starts once.
#![cfg(feature = "dpdk")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
mod kernel;
mod lifecycle;
mod offers;

use std::sync::Once;

use common::registry;

/// EAL changes the environment when it starts, which no other thread may read meanwhile, as one does
/// that starts a program. So each test has it started first.
fn start_eal() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| drop(registry().open("dpdk:net_null_first").unwrap()));
}
