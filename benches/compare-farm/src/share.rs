//! What each loop is to do, and which members it has: as `farm run` deals them.

use std::ops::Range;

use anyhow::{Context as _, Result};
use pollux_farm::members::Numbers;

/// What a loop is to do.
#[derive(Clone, Copy)]
pub(crate) struct Share {
    pub(crate) number: usize,
    pub(crate) loops: usize,
    pub(crate) events: u64,
    pub(crate) pack: u16,
    pub(crate) fragment: u32,
    /// Members of a loop hand their messages over.
    pub(crate) hands_over: bool,
}

/// The feeders of a loop, of so many.
pub(crate) fn part(of: usize, number: usize, loops: usize) -> Range<usize> {
    of * number / loops..of * (number + 1) / loops
}

/// The nodes of a loop, of so many: in turn.
pub(crate) fn nodes(of: usize, number: usize, loops: usize) -> Numbers {
    Numbers::every(number as u16..of as u16, loops as u16)
}

/// The loop of a feeder.
pub(crate) fn loop_of(feeder: usize, of: usize, loops: usize) -> Result<usize> {
    (0..loops)
        .find(|&number| part(of, number, loops).contains(&feeder))
        .context("a feeder without a loop")
}
