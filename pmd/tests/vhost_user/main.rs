//! vhost-user tests: front end with back end, over real sockets and shared memory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(target_os = "linux")]

mod back_end;
mod dpdk;
mod lent;
mod memory;
mod nonsense;
mod paths;
mod peer;
mod raw;
mod reconnect;
mod scribbles;
mod support;
mod traffic;
