//! Simulated cards: the software card, and the RTL.

#![allow(clippy::expect_used, clippy::panic)]

mod bring_up;
mod clocks;
mod pcs;
mod port;
mod soft;
mod verilated;
