//! The tests.

mod frames;
mod life;

use anyhow::Result;

use crate::bench::Bench;

pub(crate) use self::frames::FRAMES;
pub(crate) use self::life::{LIFE, LINK};

pub(crate) struct Test {
    pub(crate) name: &'static str,
    /// What it shows, in a line.
    pub(crate) shows: &'static str,
    pub(crate) run: fn(&Bench) -> Result<()>,
}
