//! Emulated RICH readout boards: events with a known truth, in frames as the boards send them,
//! with faults on demand; and the judge of what a trigger makes of them. An emulated image detector is
//! in `images` (feature `images`), and the program in `program` (feature `program`, as is the default).
//!
//! | module | what |
//! | --- | --- |
//! | [`config`] | everything that determines a run, in TOML |
//! | [`timeline`], [`truth`] | events ([`pollux_na62::physics`]) and their times, made from seed and number wherever they are needed |
//! | [`frames`], [`faults`], [`stream`] | the boards' frames, what goes wrong, and in which order |
//! | [`foreign`] | the truth about events that were made elsewhere, and its file format |
//! | [`link`] | out through a port or through the kernel's sockets, and the decisions back |
//! | [`check`], [`rings`] | decisions and rings, held against the truth |
//! | `images` | an emulated image detector: JUNGFRAU, EIGER or MOENCH modules |
//! | [`run`] | the poll loop: an [`EmulatorLoop`](run::EmulatorLoop) |
//! | `program` | the program `pollux-emulator`: its command line |

pub mod check;
#[cfg(feature = "program")]
mod cli;
pub mod config;
#[cfg(feature = "program")]
mod fault_options;
pub mod faults;
pub mod foreign;
pub mod frames;
#[cfg(feature = "images")]
pub mod images;
#[cfg(feature = "program")]
mod images_command;
#[cfg(feature = "program")]
mod job;
pub mod link;
#[cfg(feature = "program")]
mod page;
#[cfg(feature = "program")]
pub mod program;
#[cfg(feature = "program")]
mod report;
pub mod rings;
pub mod run;
mod slots;
pub mod stream;
pub mod timeline;
pub mod truth;
