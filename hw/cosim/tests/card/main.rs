//! Simulated cards: in software, and from their RTL.

mod bring_up;
mod port;
mod soft;
mod verilated;
