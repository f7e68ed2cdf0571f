//! What each loop is to do, and which members it has: as `farm run` deals them.

use std::ops::Range;

use anyhow::{Context as _, Result};

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

/// The members of a loop, of so many of a kind.
pub(crate) fn part(of: usize, number: usize, loops: usize) -> Range<usize> {
    of * number / loops..of * (number + 1) / loops
}

/// The loop of a member.
pub(crate) fn loop_of(member: usize, of: usize, loops: usize) -> Result<usize> {
    (0..loops)
        .find(|&number| part(of, number, loops).contains(&member))
        .context("a member without a loop")
}
