//! Merge: hits of all sources into events, by their own times.
//!
//! Instead of [`Build`](super::Build), where what belongs together is not told by the boards' time
//! stamps: an event is a window of time, with a guard on either side of it, so that what happened
//! on an edge is whole in both windows, and is found in the one that holds its time
//! ([`merge`](crate::merge)).
//!
//! A frame is delivered when hits of it were taken, or when it has none and was in time. A fragment
//! without hits says how far its source is. An event is complete when all sources had come to its window before it was closed, and no
//! frame with hits of that time is known to be lost.

use std::sync::Arc;

use pollux_mempool::PoolCache;
use pollux_pipelines::StageEnv;
use pollux_pipelines::build::{BuilderStats as _, Outcome, Outcomes};
use pollux_pipelines::sink::Output;
use pollux_pipelines::stage::{Batch, Moment, Stage};
use pollux_pmd::Cause;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::{HOT_HITS, MAX_DEADLINE_US, MAX_WINDOW, check_hot, check_sources, check_times};
use super::read_mtp::WithoutHits;
use crate::formats::hits::MAX_HITS;
use crate::l0::{
    Closed, Draft, Event, EventHead, Fragment, Fragments, L0Stats, MAX_SOURCES, make_events, stats,
};
use crate::merge::{HitArrival, Merge, MergeOptions, Refusal, SLOT, StampedHit, Window};

/// Options of `merge`: events of hits by their own times, in the place of `build`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MergeHitsOptions {
    /// Width of a window, in slots of 25 ns.
    #[schemars(range(min = 1, max = MAX_WINDOW), extend("x-unit" = "slots of 25 ns"))]
    pub window_slots: u16,
    /// What a window shares with each of its neighbours, in ns; at most half its width.
    #[schemars(range(min = 0.0, max = 1600.0), extend("x-unit" = "ns"))]
    pub guard_ns: f64,
    /// How far hits may be behind earlier ones of their source, in slots of 25 ns.
    #[schemars(extend("x-unit" = "slots of 25 ns"))]
    pub disorder_slots: u64,
    /// How far a hit may be ahead of the last one of its source, beyond the time that has passed,
    /// and of the other sources; in time of the detector, and more than the deadline.
    #[schemars(range(min = 2), extend("x-unit" = "us"))]
    pub horizon_us: u64,
    /// How long a silent source is waited for.
    #[schemars(range(min = 1, max = MAX_DEADLINE_US), extend("x-unit" = "us"))]
    pub deadline_us: u64,
    /// Hits of each source that may wait.
    #[schemars(range(min = 64, max = 16_777_216), extend("x-unit" = "hits"))]
    pub capacity: usize,
    /// Most hits of a source in a window: a source with more is hot, and its hits are masked.
    #[schemars(range(min = 1), extend("x-unit" = "hits"))]
    pub hot_hits: u16,
}

impl Default for MergeHitsOptions {
    fn default() -> Self {
        Self {
            window_slots: 1,
            guard_ns: 2.0,
            disorder_slots: 4,
            horizon_us: 100_000,
            deadline_us: 300,
            capacity: 1 << 14,
            hot_hits: HOT_HITS,
        }
    }
}

/// The stage.
pub struct MergeHits {
    merge: Merge,
    /// The hits of one fragment, by their times.
    hits: Vec<StampedHit>,
    windows: Windows,
    outcomes: Outcomes,
    stats: Arc<L0Stats>,
    /// Whether the frame whose fragments are being taken was admitted, and what became of it so far.
    frame: Option<Result<(), Refusal>>,
    outcome: FrameOutcome,
    /// Frames of each source that were refused since the last one that was not: they are missing
    /// where it went on.
    refused: [u16; MAX_SOURCES],
}

/// Outcome of a frame so far: of its fragments with hits, and of those without.
#[derive(Default)]
struct FrameOutcome {
    hits: Option<Outcome>,
    empty: Option<Outcome>,
}

impl FrameOutcome {
    #[inline]
    fn note(&mut self, is_empty: bool, outcome: Outcome) {
        let of = if is_empty {
            &mut self.empty
        } else {
            &mut self.hits
        };
        if of.is_none() || outcome.is_ok() {
            *of = Some(outcome);
        }
    }

    /// The outcome of the frame, which ends. What became of its hits decides, if it has any.
    #[inline]
    fn take(&mut self) -> Outcome {
        let Self { hits, empty } = std::mem::take(self);
        hits.or(empty).unwrap_or(Ok(()))
    }
}

/// Makes events of windows.
struct Windows {
    /// Bit s for each source s.
    all: u64,
    events: PoolCache,
    stats: Arc<L0Stats>,
}

impl MergeHits {
    /// Makes the stage.
    ///
    /// # Errors
    /// A width, time or number that is zero or too large.
    pub fn new(options: &MergeHitsOptions, env: &mut StageEnv) -> Result<Self, String> {
        let &MergeHitsOptions {
            window_slots,
            guard_ns,
            disorder_slots,
            horizon_us,
            deadline_us,
            capacity,
            hot_hits,
        } = options;
        let sources = check_sources(env)?;
        if env.get::<WithoutHits>().is_ok() {
            return Err("primitives have no hits to merge: take `build`".into());
        }
        if !(1..=MAX_WINDOW).contains(&window_slots) {
            return Err(format!(
                "window_slots = {window_slots}: it must be 1 to {MAX_WINDOW}"
            ));
        }
        let most = f64::from(window_slots) * 12.5;
        if !(0.0..=most).contains(&guard_ns) {
            return Err(format!(
                "guard_ns = {guard_ns}: it must be 0 to {most}, half a window"
            ));
        }
        let deadline = check_times(deadline_us, horizon_us)?;
        let merge = Merge::new(MergeOptions {
            sources,
            width: window_slots * SLOT as u16,
            guard: (guard_ns * SLOT as f64 / 25.0) as u16,
            disorder: disorder_slots.saturating_mul(SLOT),
            horizon: horizon_us.saturating_mul(1000 / 25 * SLOT),
            deadline,
            capacity,
            hot_hits: check_hot(hot_hits)?,
        })
        .map_err(|error| error.to_string())?;
        // A source with a hit in each slot, as at 10 MHz, has as many waiting.
        if (capacity.next_power_of_two() as u64) < disorder_slots {
            env.warnings.push(format!(
                "merge: capacity = {capacity} is less than disorder_slots = {disorder_slots}, for \
                 which each hit waits: of a board with a hit in each slot the rest is lost \
                 (no-room); raise capacity, or lower disorder_slots"
            ));
        }
        let stats = stats(env)?;
        let windows = Windows {
            all: (1 << sources) - 1,
            // A window is an event at once, so none is held here.
            events: make_events(env, 0)?,
            stats: Arc::clone(&stats),
        };
        let outcomes = Outcomes::new(sources);
        env.ledger.add("merge", outcomes.tally());
        Ok(Self {
            merge,
            hits: Vec::with_capacity(MAX_HITS),
            windows,
            outcomes,
            stats,
            frame: None,
            outcome: FrameOutcome::default(),
            refused: [0; MAX_SOURCES],
        })
    }

    fn add(&mut self, fragment: &Fragment, out: &mut impl Output<Event>) -> Outcome {
        let source = usize::from(fragment.source);
        // Beyond all times, it is too far ahead.
        let start = fragment.timestamp.saturating_mul(SLOT);
        let when = HitArrival {
            at: fragment.at,
            arrival: fragment.arrival,
        };
        self.hits.clear();
        self.hits.extend(fragment.hits.iter().map(|hit| StampedHit {
            time: start.saturating_add(hit.fine.into()),
            pm: hit.pm,
        }));
        self.hits.sort_unstable_by_key(|hit| (hit.time, hit.pm));
        let Self {
            merge,
            hits,
            windows,
            outcomes,
            stats,
            frame,
            refused,
            ..
        } = self;
        let mut out = |window: Window| windows.close(&window, out);
        let time = hits.first().map_or(start, |hit| hit.time);
        let admitted = frame.unwrap_or_else(|| {
            merge.settle(fragment.at, &mut out);
            settle(merge, outcomes, stats, refused);
            let admitted = merge.admit(source, time, fragment.at, fragment.reordered, &mut out);
            settle(merge, outcomes, stats, refused);
            admitted
        });
        *frame = (!fragment.ends_frame).then_some(admitted);
        // There may be no such source.
        let refused = &mut refused[source % MAX_SOURCES];
        *refused = refused.saturating_add(u16::from(admitted.is_err() && fragment.ends_frame));
        if let Err(why) = admitted {
            merge.refuse(why, hits.len());
            return Err(why.into());
        }
        let missing = fragment.lost.saturating_add(std::mem::take(refused));
        if missing > 0 {
            merge.missed(source, start, missing);
        }
        if fragment.reordered {
            merge.found(source, start);
        }
        let taken = if hits.is_empty() {
            merge.go_on(source, start, fragment.at, &mut out)
        } else {
            merge.add(source, hits, when, &mut out)
        };
        taken.map_err(Cause::from)
    }

    /// Counts frames that were on trial.
    fn settle(&mut self) {
        settle(
            &mut self.merge,
            &mut self.outcomes,
            &self.stats,
            &mut self.refused,
        );
    }

    /// Shows what the merger counts.
    fn tell(&mut self) {
        let (counts, stats) = (self.merge.counts(), &self.stats);
        stats.events.forced.set(counts.forced);
        stats.events.overfull.set(counts.overfull);
        stats.events.resyncs.set(counts.jumps);
        stats.events.late_hits.set(counts.late);
        stats.events.out_of_window_hits.set(counts.ahead);
        stats.events.skewed_hits.set(counts.skewed);
        stats.events.no_room_hits.set(counts.full);
        self.merge.show_clocks(stats);
    }
}

/// Counts frames that were on trial.
#[inline]
fn settle(
    merge: &mut Merge,
    outcomes: &mut Outcomes,
    stats: &L0Stats,
    refused: &mut [u16; MAX_SOURCES],
) {
    let Some(outcome) = merge.take_settled() else {
        return;
    };
    if outcome.is_err() {
        for (refused, &frames) in refused.iter_mut().zip(outcomes.on_trial()) {
            *refused = refused.saturating_add(frames.min(u16::MAX.into()) as u16);
        }
    }
    outcomes.settle(stats, outcome.map_err(Cause::from));
}

impl Windows {
    /// Makes an event of a window.
    fn close(&mut self, window: &Window, out: &mut impl Output<Event>) {
        let Some(mut draft) = Draft::new(&mut self.events) else {
            self.stats.events.no_buffer.add(1);
            return;
        };
        if window.hot != 0 {
            self.stats.count_hot(window.hot);
        }
        // They fit: a window has no more than an event.
        let _ = draft.insert(0, window.hits);
        let complete = window.sources == self.all && !window.truncated;
        let head = EventHead {
            timestamp: window.start / SLOT,
            // There are no more than MAX_SOURCES.
            sources: window.sources as u16,
            complete,
            truncated: window.truncated,
            disputed: window.disputed,
            burst: window.burst,
            hits: window.hits.len() as u16,
            masked: window.masked,
            arrival: window.arrival,
        };
        let closed = Closed {
            sources: window.sources,
            shared: 2 * window.sources.count_ones() > self.all.count_ones(),
            complete,
            truncated: window.truncated,
            disputed: window.disputed,
            hits: window.hits.len() as u64,
        };
        self.stats.count_event(&closed, None);
        out.push(draft.finish(&head, window.span));
    }
}

impl Stage for MergeHits {
    type In = Fragments;
    type Out = Event;

    fn process(&mut self, batch: &mut Batch<Fragments>, out: &mut impl Output<Event>) {
        for fragment in batch.as_slice().iter().flat_map(Fragments::iter) {
            let outcome = self.add(&fragment, out);
            let source = usize::from(fragment.source);
            self.outcome.note(fragment.hits.is_empty(), outcome);
            if let Err(cause) = outcome {
                self.stats.count_refused(source, cause);
            }
            if fragment.ends_frame {
                let outcome = self.outcome.take();
                let on_trial = outcome.is_ok() && self.merge.is_on_trial(source);
                self.outcomes
                    .count_frame(&*self.stats, source, outcome, on_trial);
            }
        }
        self.tell();
    }

    fn tick(&mut self, now: Moment, out: &mut impl Output<Event>) {
        self.merge
            .tick(now, &mut |window| self.windows.close(&window, out));
        self.settle();
        self.tell();
    }

    fn finish(&mut self, out: &mut impl Output<Event>) {
        self.merge
            .finish(&mut |window| self.windows.close(&window, out));
        self.settle();
        self.tell();
    }
}
