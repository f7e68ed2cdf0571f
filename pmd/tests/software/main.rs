//! Tests without devices and interfaces: software ports, parsing, event queues, CLOP.

#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod accounting;
mod builders;
mod captures;
mod clop;
#[path = "../common/mod.rs"]
mod common;
mod endpoint;
mod event_queue;
mod faulty_frames;
mod hot_path;
mod igmp;
mod pcap;
mod pinning;
mod ports;
mod queue_config;
mod reassembly;
mod receive_loops;
mod rps;
mod unix;
