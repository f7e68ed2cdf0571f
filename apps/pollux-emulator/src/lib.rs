//! Emulated RICH readout boards.

pub mod physics;
pub mod score;
