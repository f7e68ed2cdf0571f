//! What needs no device and no interface: ports of software, what frames are parsed into, event
//! queues, buffers that are announced.

#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod accounting;
mod captures;
mod clop;
#[path = "../common/mod.rs"]
mod common;
mod event_queue;
mod faulty_frames;
mod igmp;
mod nothing_but_work;
mod pcap;
mod pinning;
mod ports;
mod reassembly;
