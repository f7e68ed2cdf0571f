//! Emulated RICH readout boards: events with a known truth, in frames as the boards send them,
//! with faults on demand; and the judge of what a trigger makes of them.
//!
//! | module | what |
//! | --- | --- |
//! | [`config`] | everything that determines a run, in TOML |
//! | [`physics`], [`truth`] | events, made from seed and number wherever they are needed |
//! | [`frames`], [`faults`], [`stream`] | the boards' frames, what goes wrong, and in which order |
//! | [`link`] | out through a port or through the kernel's sockets, and the decisions back |
//! | [`check`], [`rings`], [`score`] | decisions and rings, held against the truth |
//! | [`run`] | the poll loop: an [`EmulatorLoop`](run::EmulatorLoop) |

pub mod check;
pub mod config;
pub mod faults;
pub mod frames;
pub mod link;
pub mod physics;
pub mod rings;
pub mod run;
pub mod score;
pub mod stream;
pub mod truth;
