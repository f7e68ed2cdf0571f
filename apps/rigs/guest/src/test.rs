//! What a test is.

use anyhow::Result;

use crate::bench::Bench;

/// A test, which runs on the NICs of a machine.
pub(crate) struct Test {
    pub(crate) name: &'static str,
    /// What it shows, in a line.
    pub(crate) shows: &'static str,
    pub(crate) run: fn(&Bench) -> Result<()>,
}
