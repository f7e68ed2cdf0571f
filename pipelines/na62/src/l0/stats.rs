//! Counters of the L0 stages. Each is written by one stage and read by whoever reports.

use std::sync::Arc;

use pollux_pipelines::clocks::{Clocks, News};
use pollux_pmd::Count;

/// Most sources of one event.
pub const MAX_SOURCES: usize = 16;

/// Defines counters, and what they were of a stretch of a run.
macro_rules! counters {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* pub $field:ident: Count,)* }) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        pub struct $name { $($(#[$doc])* pub $field: Count,)* }

        impl $name {
            /// What has been counted since these were as before.
            fn since(&self, before: &Self) -> Self {
                let stretch = Self::default();
                $(stretch.$field.set(self.$field.get().saturating_sub(before.$field.get()));)*
                stretch
            }
        }
    };
}

counters! {
/// What is counted for one source.
pub struct SourceCounts {
    /// Frames with a readable payload.
    pub frames: Count,
    /// Frames that sequence numbers say never arrived, or arrived unreadable: a number in a frame
    /// that was dropped as corrupt is not believed, so such a frame is counted there as well.
    pub missing: Count,
    /// Times that the sequence jumped ahead.
    pub gaps: Count,
    /// Frames that came twice.
    pub duplicates: Count,
    /// Frames that came out of order.
    pub reordered: Count,
    /// Times that the sequence began anew.
    pub resyncs: Count,
    /// Those of them that most sources made together: new spills.
    pub spills: Count,
    /// Frames of which nothing was of use, the first event having been closed already.
    pub late: Count,
    /// Fragments whose event had been closed.
    pub late_fragments: Count,
    /// Fragments of which the event had one from this source.
    pub duplicate_fragments: Count,
    /// Events that were closed without this source.
    pub absent: Count,
    /// Events that most sources contributed to, and this one did not.
    pub missed: Count,
    /// Events that this source contributed to and most others did not, while most others had events
    /// of their own.
    pub apart: Count,
    /// Frames that were refused because the source's time stamps differ from those of most others.
    pub skewed: Count,
    /// Frames with a time stamp too far ahead, of a source that came back.
    pub out_of_window: Count,
    /// 1 while the source differs from the majority, else 0.
    pub off: Count,
    /// Events in which this source had more hits than rings explain, so that they were masked.
    pub hot: Count,
    /// Frames on this source's port that claim to be of another configured board.
    pub misrouted: Count,
    /// Frames on other ports that claim to be of this source's board.
    pub elsewhere: Count,
    /// Events in its frames.
    pub events: Count,
    /// Times that its time stamps were found to be far from those of most others, or came back from
    /// there.
    pub strays: Count,
}
}

counters! {
/// What is counted for events.
pub struct EventCounts {
    /// Events that were closed.
    pub built: Count,
    /// Those to which all sources contributed.
    pub complete: Count,
    /// Events closed with sources missing: by their deadline, by the end of the input, or by force.
    pub incomplete: Count,
    /// Those of them that were closed early, because too many were open, or too many hits waited.
    pub forced: Count,
    /// Fragments, or merged hits, that did not fit their event.
    pub overfull: Count,
    /// Events of which hits were left out for want of room.
    pub truncated: Count,
    /// Events that most sources contributed to.
    pub shared: Count,
    /// Events that were closed while sources disagreed on the time, and none had a majority.
    pub disputed: Count,
    /// Fragments of events, or merged events, for which there was no buffer: somebody behind the pipeline holds more
    /// events than was said.
    pub no_buffer: Count,
    /// Times that the time of a majority jumped, and building began anew.
    pub resyncs: Count,
    /// The burst that a majority of the sources is in: 1, and one more whenever its time has begun anew.
    /// 0 before anything was built.
    pub burst: Count,
    /// Hits in built events.
    pub hits: Count,
    /// Rings of the events that were decided.
    pub rings: Count,
    /// Events with more rings on a disk than are looked for.
    pub rings_cut: Count,
    /// Events that the trigger accepted.
    pub accepted: Count,
    /// Events that it rejected.
    pub rejected: Count,
}
}

/// An event that is closed, as far as it is counted.
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

/// Tells events of a few sources while most others have their own from events of a few sources
/// because the others are silent.
#[derive(Debug)]
pub(crate) struct Apart {
    /// Events since the last one that most sources contributed to.
    since_shared: u32,
}

/// Most others are taken to have events of their own for so many events without them.
const APART: u32 = 64;

impl Default for Apart {
    fn default() -> Self {
        Self {
            since_shared: u32::MAX,
        }
    }
}

impl Apart {
    /// Whether an event is one apart.
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
    /// One for each configured source.
    pub sources: Vec<SourceCounts>,
    /// Of all sources together.
    pub events: EventCounts,
    /// Of each source, bit f: fault f was found in a stretch of the run.
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

    /// Counts an event that is closed. What is apart is told by fragments, where there are some.
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

    /// Counts an event in which sources (bit s: source s) are hot.
    #[cold]
    pub(crate) fn count_hot(&self, hot: u64) {
        for (source, counts) in self.sources.iter().enumerate() {
            counts.hot.add(hot >> source & 1);
        }
    }

    /// Shows what the clocks say of the sources, if that has changed.
    #[inline]
    pub(crate) fn show_clocks(&self, clocks: &mut Clocks) {
        if let Some(news) = clocks.take_news() {
            self.show_news(news);
        }
    }

    #[cold]
    fn show_news(&self, news: News<'_>) {
        for (source, (counts, &strays)) in self.sources.iter().zip(news.strays).enumerate() {
            counts.off.set(news.off >> source & 1);
            counts.strays.set(strays);
        }
        self.events.burst.set(news.burst.into());
    }

    /// What has been counted since the counters were as before: of a stretch of the run. Of what is
    /// no count, as it is now.
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
