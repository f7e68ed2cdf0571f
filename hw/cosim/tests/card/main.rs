//! Simulated cards: the software card, and the RTL.

mod bring_up;
mod clocks;
mod pcs;
mod port;
mod soft;
mod verilated;
