//! vhost-user: our front end with our back end, over real sockets and shared memory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;
mod dpdk;
mod nonsense;
mod paths;
mod peer;
mod reconnect;
mod support;
mod traffic;
