//! Tests of the stages, alone and in chains.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answer;
mod bad_input;
mod boards;
mod build;
mod build_model;
mod chain;
mod common;
mod decide;
mod decompress;
mod merge;
mod nothing_but_work;
mod readers;
mod registry;
mod rings;
mod spills;
