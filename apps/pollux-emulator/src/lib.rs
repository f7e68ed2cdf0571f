//! Emulated RICH readout boards.

pub mod check;
pub mod config;
pub mod faults;
pub mod frames;
pub mod physics;
pub mod score;
pub mod stream;
pub mod truth;
