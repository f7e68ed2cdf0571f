//! The L0 trigger as a library: frames in, decisions out, nothing lost.
//!
//! [`Trigger::builder`] accepts port drivers and stages of the embedding program in addition to the
//! built-in ones, so that neither needs a fork. [`TriggerBuilder::main`] is the whole program
//! `l0-trigger`, with its command line; [`TriggerBuilder::build`] and [`Trigger::run`] run it once
//! within a larger program.
//!
//! | item | what |
//! | --- | --- |
//! | [`TriggerBuilder`] | registries, ports, configuration, outputs |
//! | [`Trigger`] | a run that was checked and can be started |
//! | [`Report`] | the report of a run: counts, JSON (docs/formats/report.md), text |
//! | [`RunError`] | why a run failed, with its report |
//! | [`StopFlag`] | ends a run |
//! | [`L0Record`] | a decision, for [`TriggerBuilder::on_decision`] |
//! | [`command`] | the command line of the program |
//!
//! The demonstration, with 2000 events, on two loops of this process:
//!
//! ```
//! use l0_trigger::Trigger;
//!
//! let report = Trigger::builder().events(2000).build()?.run()?;
//! assert_eq!(report.events(), 2000);
//! assert!(report.is_balanced());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A custom stage is registered under a name, which a `[[stage]]` table of the configuration then
//! uses: `scripts/out-of-tree.d/extended-trigger` is such a program. `pollux_pipelines` documents stages, `pollux_na62::l0` the
//! data between them; a driver implements `pollux_pmd::driver::Driver`.

// The modules are private: `pub` in them means the crate, and the API consists of the re-exports
// here.
#![allow(unreachable_pub)]

mod answer_watch;
mod boards;
mod builder;
mod burst_number;
mod check;
mod cli;
mod clock;
mod config;
mod control;
mod counters;
mod decision_output;
mod decision_sink;
mod event_display;
mod event_file;
mod event_outputs;
mod execution;
mod file_counts;
mod file_writer;
mod files;
mod groups;
#[cfg_attr(not(feature = "hdf5"), path = "no_hdf5_file.rs")]
mod hdf5_file;
mod input;
mod monitoring;
mod outputs;
mod page;
mod plan;
mod poll_loop;
mod program;
mod receive_loop;
mod record_queue;
mod reference;
mod registries;
mod reload;
mod report;
mod run;
mod session;
mod setup;
mod stage_metrics;
mod summary;
mod supervisor;
mod tap;
mod worker;
mod worker_pool;

pub use builder::{Report, RunError, Trigger, TriggerBuilder};
pub use pollux_na62::l0::L0Record;
pub use pollux_pmd::lcore::StopFlag;
pub use program::command;
