//! The trigger as its users meet it: the program, its reports, its exit status.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bad_input;
mod bad_sources;
mod common;
mod configuration;
mod control;
mod dashboard;
mod demonstration;
mod ejfat;
mod ejfat_port;
mod groups;
mod interface;
#[cfg(feature = "kafka")]
mod kafka;
mod long_burst;
mod outputs;
mod page;
mod readers;
mod reassembly;
mod receive_loops;
mod record;
mod replay;
mod rules;
mod running;
mod service;
mod usage;
mod workers;
