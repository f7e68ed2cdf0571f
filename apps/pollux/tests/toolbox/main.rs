//! The toolbox as its users meet it: the program, its output, its exit status.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bench;
mod bind;
mod capture;
mod doctor;
mod events;
mod examples;
mod forward;
mod generate;
mod help;
mod metrics;
mod physics;
mod ports;
mod programs;
mod rdma;
mod replay;
mod status;
mod streams;
mod support;
mod switch;
mod trigger;
mod usage;
mod verify;
mod veth;
