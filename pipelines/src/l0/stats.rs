//! Counters of the L0 stages. Each is written by one stage and read by whoever reports.

use std::sync::Arc;

use pollux_pmd::Count;

use super::MAX_SOURCES;

/// What is counted for one source.
#[derive(Debug, Default)]
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
}

/// What is counted for events.
#[derive(Debug, Default)]
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
}

impl L0Stats {
    /// Counters at zero, for at most 16 sources.
    #[must_use]
    pub fn new(sources: usize) -> Arc<Self> {
        let sources = sources.min(MAX_SOURCES);
        Arc::new(Self {
            sources: (0..sources).map(|_| SourceCounts::default()).collect(),
            events: EventCounts::default(),
        })
    }

    /// Counts an event that is closed, with the sources (bit s: source s) that contributed.
    #[inline]
    pub(crate) fn count_event(&self, event: &Closed, apart: &mut Apart) {
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
        let alone = apart.note(shared);
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

    /// What is wrong with a source, in words of reports and metrics; nothing for one that there is
    /// not. A source is named for what it has done since the start of the run:
    ///
    /// | word | when |
    /// | --- | --- |
    /// | `clock` | its time stamps differ from those of most others: frames refused as `clock-skew`, 1 % as `out-of-window`, or a quarter of the events are its own alone |
    /// | `late` | 5 % of its frames came when their events were closed |
    /// | `absent` | it contributed to no more than half of the events that most others contributed to, or of all where those are none |
    /// | `sequence` | its sequence numbers began anew in 1 % of its frames |
    /// | `loss` | 1 % of its frames never came |
    /// | `duplicates` | 1 % of its frames came twice |
    /// | `hot` | in 1 % of the events it had more hits than rings explain |
    /// | `identity` | frames of another board came on its port |
    #[must_use]
    pub fn faults(&self, source: usize) -> Vec<&'static str> {
        let Some(counts) = self.sources.get(source) else {
            return Vec::new();
        };
        let (frames, built) = (counts.frames.get(), self.events.built.get());
        let (shared, missed) = (self.events.shared.get(), counts.missed.get());
        let absent = counts.absent.get();
        let (missing, resyncs) = (counts.missing.get(), counts.resyncs.get());
        let faults = [
            (
                "clock",
                counts.skewed.get() + counts.off.get() > 0
                    || 100 * counts.out_of_window.get() > frames
                    || 4 * counts.apart.get() > built,
            ),
            ("late", 20 * counts.late.get() > frames),
            (
                "absent",
                absent > 0 && 2 * missed >= shared && (shared > 0 || 2 * absent >= built),
            ),
            ("sequence", resyncs > 1 && 100 * resyncs > frames),
            ("loss", 100 * missing > frames + missing),
            ("duplicates", 100 * counts.duplicates.get() > frames),
            ("hot", 100 * counts.hot.get() > built),
            ("identity", counts.misrouted.get() > 0),
        ];
        let holds = faults.into_iter().filter(|&(_, holds)| holds);
        holds.map(|(name, _)| name).collect()
    }
}
