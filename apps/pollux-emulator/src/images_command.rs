//! The sub-command `images`: an emulated image detector.

mod cli;
mod control;
mod files;
mod job;
mod page;
mod rdma;
mod report;
mod supervisor;

pub(crate) use cli::ImagesCli;
pub(crate) use job::run;
