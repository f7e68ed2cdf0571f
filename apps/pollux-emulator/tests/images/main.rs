//! The emulated image detector: its packets, its images, its faults, its pace, and its program.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cable;
mod faults;
mod frames;
mod no_alloc;
mod pace;
mod packets;
mod physics;
mod program;
mod rdma;
mod receiver;
mod stop;
