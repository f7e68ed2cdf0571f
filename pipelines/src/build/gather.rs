//! A detector's part of the event builder.

use pollux_pmd::Cause;

use crate::clocks::News;
use crate::sources::SourceSet;
use crate::stage::{Batch, Moment};

/// Where fragments belong, what they are gathered in, and what leaves for an event.
///
/// Its methods are compiled into the builder's loop.
pub trait Gather<S: SourceSet> {
    /// An item of a batch: one fragment, or a buffer with many.
    type Input;
    /// The data of one source for one event.
    type Fragment<'a>;
    /// What the fragments of an event are gathered in while it is open.
    type Event;
    /// What leaves when an event is closed.
    type Built;
    /// Counters: `()` for none.
    type Stats: BuilderStats;

    /// Passes the fragments of a batch to `take`, in order. What is left in the batch belongs to the
    /// caller of the stage.
    fn each(batch: &mut Batch<Self::Input>, take: impl FnMut(Self::Fragment<'_>));

    /// Where a fragment belongs.
    fn address(&self, fragment: &Self::Fragment<'_>) -> Address;

    /// Begins the event of a fragment, which is added next. `None` where there is no memory for it:
    /// the fragment is lost ([`Cause::NoMbuf`]).
    fn open(&mut self, fragment: &Self::Fragment<'_>) -> Option<Self::Event>;

    /// Adds a fragment to its event. Fragments come in any order of their sources, each source once.
    ///
    /// # Errors
    /// The cause for which it is lost; its source counts as heard nevertheless.
    fn add(
        &mut self,
        event: &mut Self::Event,
        fragment: Self::Fragment<'_>,
        contribution: Contribution<S>,
    ) -> Result<(), Cause>;

    /// Ends an event, which is not used afterwards: what leaves for it, if anything does. It is
    /// passed in its place, since most of it need not be copied.
    fn close(&mut self, event: &mut Self::Event, closing: &Closing<S>) -> Option<Self::Built>;

    /// Its counters.
    fn stats(&self) -> &Self::Stats;
}

/// Where a fragment belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Identifies events and orders them: an event number, or a time stamp in windows.
    pub key: u64,
    /// Number of the source. All fragments of a frame are of the source of the first.
    pub source: usize,
    /// When it came, on the time line of the deadlines.
    pub at: Moment,
    /// This is the last fragment of its frame. The first one is admitted or refused for all of
    /// them, and keys ascend from it.
    pub ends_frame: bool,
    /// In the first fragment of a frame: its frame is known to be older than others of its source.
    pub reordered: bool,
}

impl Address {
    /// That of a fragment which is a frame of its own.
    #[must_use]
    pub fn of_frame(key: u64, source: usize, at: Moment) -> Self {
        Self {
            key,
            source,
            at,
            ends_frame: true,
            reordered: false,
        }
    }
}

/// The place of a fragment among those of its event.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Contribution<S> {
    /// Its source.
    pub source: usize,
    /// The sources that contributed before it.
    pub before: S,
    /// Before it, only sources that differ from the majority contributed: what counts from the
    /// beginning of the event counts from here.
    pub begins: bool,
}

/// State of an event when it is closed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Closing<S> {
    /// Its key.
    pub key: u64,
    /// Number of the burst that the key belongs to, from 1.
    pub burst: u16,
    /// The sources that contributed.
    pub sources: S,
    /// Most sources did.
    pub shared: bool,
    /// All sources did.
    pub complete: bool,
    /// Sources disagree on the time, without a majority: this is the event of some of them.
    pub disputed: bool,
}

/// Counters of a builder besides those of its events. The builder's loop alone calls these methods;
/// they do nothing where they are not written. `source` may be the number of a source that does not
/// exist.
pub trait BuilderStats {
    /// A fragment was refused.
    fn count_refused(&self, source: usize, cause: Cause) {
        let _ = (source, cause);
    }

    /// Frames were lost: none of their fragments is part of an event.
    fn count_lost(&self, source: usize, cause: Cause, frames: u64) {
        let _ = (source, cause, frames);
    }

    /// An event was closed before its time, as another one needed the room.
    fn count_forced(&self) {}

    /// A majority went to other keys.
    fn count_restart(&self) {}

    /// State of the sources; called when it may have changed.
    fn show_clocks(&self, news: &News<'_, impl SourceSet>) {
        let _ = news;
    }
}

impl BuilderStats for () {}
