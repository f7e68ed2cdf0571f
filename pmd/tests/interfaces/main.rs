//! Ports on network interfaces, in namespaces of their own, against the kernel's own UDP.

#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod af_packet;
mod af_xdp;
#[path = "../common/mod.rs"]
mod common;
mod igmp;
mod interface;
mod reassembly;
mod tap;
