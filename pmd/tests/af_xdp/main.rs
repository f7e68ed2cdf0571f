//! Network interfaces through AF_XDP, on veth pairs in network namespaces of their own, against the
//! kernel's own UDP.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod life;
mod others;
mod traffic;
