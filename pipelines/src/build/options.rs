//! What can be chosen of the builder, what it is given, and what it counts.

use pollux_mempool::time::Ns;
use pollux_pmd::{Cause, Count};

use super::sources::SourceSet;
use crate::stage::Moment;

/// Most open events.
const MAX_OPEN: usize = 1 << 20;

/// How fragments say where they belong, and what becomes of them in an event.
pub trait Gather {
    /// What one source has to say about one event.
    type Fragment;
    /// What the fragments of an event are gathered in.
    type Event;

    /// Where a fragment belongs.
    fn address(&self, fragment: &Self::Fragment) -> Address;

    /// Begins an event; `None` where there is no memory for it, and its fragment is lost.
    fn open(&mut self, key: u64) -> Option<Self::Event>;

    /// Adds a fragment to its event. Fragments come in any order of their sources, each source once.
    ///
    /// # Errors
    /// The cause for which it is lost; its source counts as heard nevertheless.
    fn add(
        &mut self,
        event: &mut Self::Event,
        source: usize,
        fragment: Self::Fragment,
    ) -> Result<(), Cause>;
}

/// Where a fragment belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// What tells events apart and orders them: an event number, or a time stamp in windows.
    pub key: u64,
    /// Number of the source.
    pub source: usize,
    /// When it came, on the time line of the deadlines.
    pub at: Moment,
}

/// Options of the builder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuilderOptions {
    /// Number of sources.
    pub sources: usize,
    /// How long an event waits for its sources, from its first fragment on.
    pub deadline: Ns,
    /// How far a key may be ahead of what most sources have come to.
    pub horizon: u64,
    /// Most events that may be open at once.
    pub max_open: usize,
}

impl BuilderOptions {
    pub(super) fn check<S: SourceSet>(&self) -> Result<(), BuilderError> {
        if !(1..=S::MAX).contains(&self.sources) {
            return Err(BuilderError::Sources(self.sources, S::MAX));
        }
        if self.deadline.0 == 0 || self.horizon == 0 {
            return Err(BuilderError::Zero);
        }
        if !(2..=MAX_OPEN).contains(&self.max_open) {
            return Err(BuilderError::Open(self.max_open));
        }
        Ok(())
    }
}

/// Why a builder could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuilderError {
    /// The number of sources is wrong.
    #[error("{0} sources: it must be 1 to {1}, which the set of sources has")]
    Sources(usize, usize),
    /// A deadline or horizon of zero.
    #[error("the deadline and the horizon of a builder must be at least 1")]
    Zero,
    /// The number of open events is wrong.
    #[error("{0} open events: it must be 2 to {MAX_OPEN}")]
    Open(usize),
}

/// An event whose fragments are there, as far as they came in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built<E, S> {
    /// What its fragments said.
    pub key: u64,
    /// How often the keys had begun anew before.
    pub run: u32,
    /// The sources that contributed.
    pub sources: S,
    /// All of them did.
    pub complete: bool,
    /// What they were gathered in.
    pub event: E,
}

/// What a builder counts. Written by its loop alone.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct BuilderCounts {
    /// Events with all sources.
    pub complete: Count,
    /// Events without some.
    pub incomplete: Count,
    /// Events that were closed before their time, as another one needed the room.
    pub forced: Count,
    /// Times that a majority went to other keys.
    pub restarts: Count,
}
