//! Counters of the L0 stages. Each is written by one loop; reports and metrics read them.

use std::sync::Arc;

use pollux_pipelines::build::BuilderStats;
use pollux_pipelines::clocks::News;
use pollux_pipelines::sources::SourceSet;
use pollux_pmd::{Cause, Count};

/// Maximum number of sources of one event.
pub const MAX_SOURCES: usize = 16;

/// Defines counters, and their difference over a part of a run.
macro_rules! counters {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* pub $field:ident: Count,)* }) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        pub struct $name { $($(#[$doc])* pub $field: Count,)* }

        impl $name {
            /// Counts since the state `before`.
            fn since(&self, before: &Self) -> Self {
                let stretch = Self::default();
                $(stretch.$field.set(self.$field.get().saturating_sub(before.$field.get()));)*
                stretch
            }
        }
    };
}

counters! {
/// Counters of one source.
#[non_exhaustive]
pub struct SourceCounts {
    /// Frames with a readable payload.
    pub frames: Count,
    /// Frames missing by sequence number: they never arrived, or arrived unreadable. The sequence
    /// number of a frame that was dropped as corrupt is not trusted, so such a frame counts here as
    /// well.
    pub missing: Count,
    /// Forward jumps of the sequence number.
    pub gaps: Count,
    /// Frames that arrived twice.
    pub duplicates: Count,
    /// Frames out of order.
    pub reordered: Count,
    /// Restarts of the sequence number.
    pub resyncs: Count,
    /// Those of them that most sources had together: new spills.
    pub spills: Count,
    /// Frames without any usable fragment, whose first event was already closed.
    pub late: Count,
    /// Fragments whose event was already closed.
    pub late_fragments: Count,
    /// Fragments of an event that had one from this source.
    pub duplicate_fragments: Count,
    /// Fragments for which there was no room among the open events.
    pub no_room_fragments: Count,
    /// Fragments with a time stamp too far ahead.
    pub out_of_window_fragments: Count,
    /// Fragments that were refused because the source's time stamps differ from those of most others.
    pub skewed_fragments: Count,
    /// Fragments without a free buffer, for themselves or for their event.
    pub unbuffered_fragments: Count,
    /// Events that were closed without this source.
    pub absent: Count,
    /// Events with contributions of most sources but not of this one.
    pub missed: Count,
    /// Events with a contribution of this source but not of most others, while most others had
    /// events of their own.
    pub apart: Count,
    /// Frames that were refused because the source's time stamps differ from those of most others.
    pub skewed: Count,
    /// Frames with a time stamp too far ahead, of a source that returned later.
    pub out_of_window: Count,
    /// 1 while the source differs from the majority, else 0.
    pub off: Count,
    /// Events in which this source had more hits than rings explain, so that its hits were masked.
    pub hot: Count,
    /// Frames on this source's port that claim to be of another configured board.
    pub misrouted: Count,
    /// Frames on this source's port that could not be read, or are of no configured board.
    pub unreadable: Count,
    /// Frames on other ports that claim to be of this source's board.
    pub elsewhere: Count,
    /// Events in its frames.
    pub events: Count,
    /// Times that its time stamps moved far from those of most others, or back.
    pub strays: Count,
}
}

counters! {
/// Counters of events.
#[non_exhaustive]
pub struct EventCounts {
    /// Closed events.
    pub built: Count,
    /// Events with contributions of all sources.
    pub complete: Count,
    /// Events closed with sources missing: by their deadline, by the end of the input, or by force.
    pub incomplete: Count,
    /// Those of them that were closed early, because too many events were open, or too many hits
    /// waited.
    pub forced: Count,
    /// Fragments, or merged hits, that did not fit into their event.
    pub overfull: Count,
    /// Events that lost hits because the event buffer was full.
    pub truncated: Count,
    /// Events with contributions of most sources.
    pub shared: Count,
    /// Events that were closed while sources disagreed on the time, without a majority.
    pub disputed: Count,
    /// Fragments of events, or merged events, without a free buffer: the consumer exceeds the
    /// configured in-flight limit.
    pub no_buffer: Count,
    /// Times that the time of a majority jumped, and the builder was restarted.
    pub resyncs: Count,
    /// Number of the burst that a majority of the sources is in, from 1; it is incremented whenever
    /// their time restarts. 0 before the first event.
    pub burst: Count,
    /// Hits in built events.
    pub hits: Count,
    /// Rings of decided events.
    pub rings: Count,
    /// Events with more rings on a disk than the limit.
    pub rings_cut: Count,
    /// Events that the trigger accepted.
    pub accepted: Count,
    /// Events that the trigger rejected.
    pub rejected: Count,
    /// Frames that arrived and were dropped in front of the stages, because the trigger was too slow
    /// for them. The program sets it, from its ledger.
    pub overload_drops: Count,
    /// Hits that the merger refused, since their window had been closed.
    pub late_hits: Count,
    /// Hits that the merger refused, since they were too far ahead.
    pub out_of_window_hits: Count,
    /// Hits that the merger refused, since their source's time stamps differ from those of most others.
    pub skewed_hits: Count,
    /// Hits that the merger refused, since as many of their source waited as may.
    pub no_room_hits: Count,
}
}

impl SourceCounts {
    /// Refused fragments, by cause: with those that are part of an event, all that readers have made
    /// of the source's frames.
    #[must_use]
    pub fn refused_fragments(&self) -> [(Cause, u64); 6] {
        [
            (Cause::Late, &self.late_fragments),
            (Cause::Duplicate, &self.duplicate_fragments),
            (Cause::NoRoom, &self.no_room_fragments),
            (Cause::OutOfWindow, &self.out_of_window_fragments),
            (Cause::ClockSkew, &self.skewed_fragments),
            (Cause::NoMbuf, &self.unbuffered_fragments),
        ]
        .map(|(cause, count)| (cause, count.get()))
    }
}

impl EventCounts {
    /// Hits that the merger refused, by cause.
    #[must_use]
    pub fn refused_hits(&self) -> [(Cause, u64); 4] {
        [
            (Cause::Late, &self.late_hits),
            (Cause::OutOfWindow, &self.out_of_window_hits),
            (Cause::ClockSkew, &self.skewed_hits),
            (Cause::NoRoom, &self.no_room_hits),
        ]
        .map(|(cause, count)| (cause, count.get()))
    }
}

/// A closed event, as counted.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other"
)]
pub(crate) struct Closed {
    /// Bit s: source s contributed.
    pub(crate) sources: u64,
    /// Most sources contributed.
    pub(crate) shared: bool,
    pub(crate) complete: bool,
    pub(crate) truncated: bool,
    pub(crate) disputed: bool,
    pub(crate) hits: u64,
}

/// Separates events that a few sources have on their own from events in which the other sources are
/// silent.
#[derive(Debug)]
pub(crate) struct Apart {
    /// Number of events since the last one with contributions of most sources.
    since_shared: u32,
}

/// Number of events for which most others are still assumed to have events of their own.
const APART: u32 = 64;

impl Default for Apart {
    fn default() -> Self {
        Self {
            since_shared: u32::MAX,
        }
    }
}

impl Apart {
    /// Whether an event is one that a few sources have on their own.
    #[inline]
    fn note(&mut self, shared: bool) -> bool {
        let apart = !shared && self.since_shared < APART;
        self.since_shared = if shared {
            0
        } else {
            self.since_shared.saturating_add(1)
        };
        apart
    }
}

/// All counters of one L0 pipeline.
#[derive(Debug)]
pub struct L0Stats {
    /// Counters of each configured source.
    pub sources: Vec<SourceCounts>,
    /// Counters over all sources.
    pub events: EventCounts,
    /// For each source, bit f: fault f was found in a part of the run.
    pub(super) named: Vec<Count>,
}

impl L0Stats {
    /// Counters at zero, for at most 16 sources.
    #[must_use]
    pub fn new(sources: usize) -> Arc<Self> {
        let sources = sources.min(MAX_SOURCES);
        Arc::new(Self {
            sources: (0..sources).map(|_| SourceCounts::default()).collect(),
            events: EventCounts::default(),
            named: (0..sources).map(|_| Count::default()).collect(),
        })
    }

    /// Counts a frame that a reader drops, for the source on whose port it came, if its content is the cause.
    #[cold]
    pub(crate) fn count_unreadable(&self, source: u16, cause: Cause) {
        let contents = [Cause::Malformed, Cause::BadVersion, Cause::Unsupported];
        let source = self.sources.get(usize::from(source));
        if let Some(counts) = source.filter(|_| contents.contains(&cause)) {
            counts.unreadable.add(1);
        }
    }

    /// Counts fragments of a source without a free buffer.
    #[cold]
    pub(crate) fn count_unbuffered(&self, source: usize, fragments: u64) {
        self.events.no_buffer.add(fragments);
        if let Some(counts) = self.sources.get(source) {
            counts.unbuffered_fragments.add(fragments);
        }
    }

    /// Counts a closed event. `apart` is given where the event is built from fragments.
    #[inline]
    pub(crate) fn count_event(&self, event: &Closed, apart: Option<&mut Apart>) {
        let &Closed {
            sources,
            shared,
            complete,
            truncated,
            disputed,
            hits,
        } = event;
        let counts = &self.events;
        counts.built.add(1);
        counts.hits.add(hits);
        counts.shared.add(u64::from(shared));
        counts.disputed.add(u64::from(disputed));
        let alone = apart.is_some_and(|apart| apart.note(shared));
        if complete {
            counts.complete.add(1);
            return;
        }
        counts.incomplete.add(1);
        counts.truncated.add(u64::from(truncated));
        for (source, counts) in self.sources.iter().enumerate() {
            let contributed = sources >> source & 1;
            counts.absent.add(1 - contributed);
            counts.missed.add((1 - contributed) * u64::from(shared));
            counts.apart.add(contributed * u64::from(alone));
        }
    }

    /// Counts an event in which the given sources (bit s: source s) are hot.
    #[cold]
    pub(crate) fn count_hot(&self, hot: u64) {
        for (source, counts) in self.sources.iter().enumerate() {
            counts.hot.add(hot >> source & 1);
        }
    }

    /// Counts since `before`: of a part of the run. Fields that are not counts keep their current
    /// values.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let each = self.sources.iter().zip(&before.sources);
        let sources = each.map(|(now, before)| {
            let stretch = now.since(before);
            stretch.off.set(now.off.get());
            stretch
        });
        Self {
            sources: sources.collect(),
            events: self.events.since(&before.events),
            named: self.sources.iter().map(|_| Count::default()).collect(),
        }
    }
}

impl BuilderStats for L0Stats {
    #[cold]
    fn count_refused(&self, source: usize, cause: Cause) {
        let Some(counts) = self.sources.get(source) else {
            return;
        };
        match cause {
            Cause::Late => counts.late_fragments.add(1),
            Cause::Duplicate => counts.duplicate_fragments.add(1),
            Cause::NoRoom => counts.no_room_fragments.add(1),
            Cause::OutOfWindow => counts.out_of_window_fragments.add(1),
            Cause::ClockSkew => counts.skewed_fragments.add(1),
            Cause::NoMbuf => self.count_unbuffered(source, 1),
            // A builder has no other cause for a source that there is.
            _ => {}
        }
    }

    fn count_lost(&self, source: usize, cause: Cause, frames: u64) {
        if let Some(counts) = self.sources.get(source) {
            match cause {
                Cause::Late => counts.late.add(frames),
                Cause::ClockSkew => counts.skewed.add(frames),
                Cause::OutOfWindow => counts.out_of_window.add(frames),
                _ => {}
            }
        }
    }

    fn count_forced(&self) {
        self.events.forced.add(1);
    }

    fn count_restart(&self) {
        self.events.resyncs.add(1);
    }

    #[cold]
    fn show_clocks(&self, news: &News<'_, impl SourceSet>) {
        for (source, (counts, &strays)) in self.sources.iter().zip(news.strays).enumerate() {
            counts.off.set(news.off.contains(source).into());
            counts.strays.set(strays);
        }
        self.events.burst.set(news.burst.into());
    }
}
