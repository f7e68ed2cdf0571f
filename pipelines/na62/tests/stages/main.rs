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
mod hot_path;
mod merge;
mod readers;
mod registry;
mod rings;
mod spills;
