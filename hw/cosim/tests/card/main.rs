//! Simulated cards: the software card, and the RTL.

mod bring_up;
mod port;
mod soft;
mod verilated;
