//! Hits of fragments, gathered in the buffers of their events.

use std::collections::VecDeque;
use std::sync::Arc;

use pollux_mempool::PoolCache;
use pollux_mempool::time::Tsc;
use pollux_pipelines::StageEnv;
use pollux_pipelines::build::{Address, Closing, Contribution, Gather};
use pollux_pipelines::stage::Batch;
use pollux_pmd::Cause;

use crate::formats::hits::MAX_HITS;
use crate::l0::{
    Apart, Closed, Draft, Event, EventHead, Fragment, Fragments, L0Stats, MAX_SOURCES, Span,
    make_events, stats,
};
use crate::merge::SLOT;
use crate::rich::Hit;

/// Buffers that are asked for before they are needed: the end of the chain used them last. Half of
/// them at a time, so that their cache lines are waited for together.
const AHEAD: usize = 16;

/// Gathers hits in drafts of events.
pub(super) struct Drafts {
    /// Width of an event in slots.
    window: u64,
    /// Most hits of a source that is not hot.
    hot_hits: u16,
    /// Buffers for events.
    events: PoolCache,
    /// The next ones, on their way into the processor's cache.
    ahead: VecDeque<Draft>,
    apart: Apart,
    stats: Arc<L0Stats>,
}

/// An event whose hits are gathered.
pub(super) struct Gathering {
    arrival: Tsc,
    /// Hits of each source.
    hits: [u16; MAX_SOURCES],
    /// Bit s: source s has more hits than rings explain.
    hot: u16,
    /// Hits of a source did not fit.
    truncated: bool,
    /// The event's buffer, until the event is closed.
    draft: Option<Draft>,
}

impl Drafts {
    /// For so many open events.
    pub(super) fn new(
        window: u64,
        hot_hits: u16,
        max_open: usize,
        env: &mut StageEnv,
    ) -> Result<Self, String> {
        Ok(Self {
            window,
            hot_hits,
            events: make_events(env, max_open + AHEAD)?,
            ahead: VecDeque::with_capacity(AHEAD),
            apart: Apart::default(),
            stats: stats(env)?,
        })
    }
}

impl Gather<u16> for Drafts {
    type Input = Fragments;
    /// A fragment, and a slice of constant length that begins with its hits.
    type Fragment<'a> = (Fragment<'a>, &'a [Hit; MAX_HITS]);
    type Event = Gathering;
    type Built = Event;
    type Stats = L0Stats;

    #[inline]
    fn each(batch: &mut Batch<Fragments>, mut take: impl FnMut(Self::Fragment<'_>)) {
        for fragments in batch.as_slice() {
            for fragment in fragments.padded() {
                take(fragment);
            }
        }
    }

    #[inline]
    fn address(&self, (fragment, _): &Self::Fragment<'_>) -> Address {
        Address {
            // Most windows are one slot wide, and a division takes as long as all else.
            key: match self.window {
                1 => fragment.timestamp,
                window => fragment.timestamp / window,
            },
            source: usize::from(fragment.source),
            at: fragment.at,
            ends_frame: fragment.ends_frame,
            reordered: fragment.reordered,
        }
    }

    #[inline]
    fn open(&mut self, (fragment, _): &Self::Fragment<'_>) -> Option<Gathering> {
        if self.ahead.len() <= AHEAD / 2 {
            let more = std::iter::from_fn(|| Draft::new(&mut self.events));
            self.ahead.extend(more.take(AHEAD / 2));
        }
        Some(Gathering {
            arrival: fragment.arrival,
            hits: [0; MAX_SOURCES],
            hot: 0,
            truncated: false,
            draft: Some(self.ahead.pop_front()?),
        })
    }

    #[inline]
    fn add(
        &mut self,
        event: &mut Gathering,
        (fragment, places): Self::Fragment<'_>,
        contribution: Contribution<u16>,
    ) -> Result<(), Cause> {
        let source = contribution.source;
        if contribution.begins {
            event.arrival = fragment.arrival;
        }
        let count = fragment.hits.len();
        let Some(draft) = &mut event.draft else {
            return Err(Cause::NoRoom);
        };
        // No source whose hits come behind has contributed.
        let (before, added) = if contribution.before >> source == 0 {
            (draft.hits(), draft.append(places, count))
        } else {
            let before = event.hits[..source].iter().sum();
            let added = draft.insert(usize::from(before), fragment.hits);
            (before, added)
        };
        if added {
            event.hits[source] = count as u16;
            if count > usize::from(self.hot_hits) {
                event.hot |= 1 << source;
            }
            if self.window > 1 {
                let later = (fragment.timestamp % self.window * SLOT) as u16;
                draft.delay(usize::from(before), count, later);
            }
        } else {
            // The event keeps what it has; the source counts as heard, the overflow as counted.
            event.truncated = true;
            self.stats.events.overfull.add(1);
        }
        Ok(())
    }

    #[inline]
    fn close(&mut self, event: &mut Gathering, closing: &Closing<u16>) -> Option<Event> {
        let mut draft = event.draft.take()?;
        let masked = match event.hot {
            0 => 0,
            hot => {
                self.stats.count_hot(hot.into());
                mask_hot(&mut draft, &event.hits, hot)
            }
        };
        let complete = closing.complete && !event.truncated;
        let hits = draft.hits();
        let closed = Closed {
            sources: closing.sources.into(),
            shared: closing.shared,
            complete,
            truncated: event.truncated,
            disputed: closing.disputed,
            hits: hits.into(),
        };
        let head = EventHead {
            timestamp: closing.key * self.window,
            sources: closing.sources,
            complete,
            truncated: event.truncated,
            disputed: closing.disputed,
            burst: closing.burst,
            hits,
            masked,
            arrival: event.arrival,
        };
        self.stats.count_event(&closed, Some(&mut self.apart));
        Some(draft.finish(&head, Span::default()))
    }

    #[inline]
    fn stats(&self) -> &L0Stats {
        &self.stats
    }
}

/// Puts the hits of hot sources behind all others, which are masked there; how many they are.
#[cold]
fn mask_hot(draft: &mut Draft, hits: &[u16; MAX_SOURCES], hot: u16) -> u16 {
    let (mut before, mut masked) = (0, 0);
    for (source, &count) in hits.iter().enumerate() {
        if hot >> source & 1 == 1 {
            draft.put_last(before, count.into());
            masked += count;
        } else {
            before += usize::from(count);
        }
    }
    masked
}
