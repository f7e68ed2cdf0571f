//! The event builder: what it builds of right keys, of wrong ones, and of any.
#![allow(clippy::unwrap_used)]

mod any_keys;
mod limits;
mod model;
mod wrong_keys;

use pollux_mempool::time::Ns;
use pollux_pipelines::build::{
    Address, Builder, BuilderOptions, BuilderStats, Closing, Contribution, Gather,
};
use pollux_pipelines::sources::SourceSet;
use pollux_pipelines::{Batch, Moment, Stage};
use pollux_pmd::{Cause, Count};

/// A fragment with a number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Fragment {
    key: u64,
    source: usize,
    at: u64,
    number: u32,
    /// More of its frame follow.
    goes_on: bool,
}

fn fragment(key: u64, source: usize, at: u64) -> Fragment {
    Fragment {
        key,
        source,
        at,
        ..Fragment::default()
    }
}

/// A closed event, with the sources and numbers of its fragments.
#[derive(Debug, PartialEq)]
struct Built<S> {
    key: u64,
    burst: u16,
    sources: S,
    shared: bool,
    complete: bool,
    disputed: bool,
    parts: Vec<(usize, u32)>,
}

#[derive(Default)]
struct Stats {
    refused: Count,
    lost: Count,
    forced: Count,
    restarts: Count,
}

impl BuilderStats for Stats {
    fn count_refused(&self, _source: usize, _cause: Cause) {
        self.refused.add(1);
    }

    fn count_lost(&self, _source: usize, _cause: Cause, frames: u64) {
        self.lost.add(frames);
    }

    fn count_forced(&self) {
        self.forced.add(1);
    }

    fn count_restart(&self) {
        self.restarts.add(1);
    }
}

/// Gathers the sources and numbers of fragments, in memory of before.
struct Numbers {
    free: Vec<Vec<(usize, u32)>>,
    stats: Stats,
}

impl<S: SourceSet> Gather<S> for Numbers {
    type Input = Fragment;
    type Fragment<'a> = Fragment;
    type Event = Vec<(usize, u32)>;
    type Built = Built<S>;
    type Stats = Stats;

    fn each(batch: &mut Batch<Fragment>, take: impl FnMut(Fragment)) {
        batch.drain().for_each(take);
    }

    fn address(&self, fragment: &Fragment) -> Address {
        Address {
            ends_frame: !fragment.goes_on,
            ..Address::of_frame(fragment.key, fragment.source, Moment(fragment.at))
        }
    }

    fn open(&mut self, _first: &Fragment) -> Option<Vec<(usize, u32)>> {
        self.free.pop()
    }

    fn add(
        &mut self,
        event: &mut Vec<(usize, u32)>,
        fragment: Fragment,
        contribution: Contribution<S>,
    ) -> Result<(), Cause> {
        assert_eq!(contribution.before.count(), event.len());
        assert!(!contribution.before.contains(contribution.source));
        event.push((fragment.source, fragment.number));
        Ok(())
    }

    fn close(&mut self, event: &mut Vec<(usize, u32)>, closing: &Closing<S>) -> Option<Built<S>> {
        Some(Built {
            key: closing.key,
            burst: closing.burst,
            sources: closing.sources,
            shared: closing.shared,
            complete: closing.complete,
            disputed: closing.disputed,
            parts: std::mem::take(event),
        })
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }
}

/// Nanoseconds.
const DEADLINE: u64 = 1000;
/// Keys come every so many nanoseconds.
const SPACING: u64 = 20;
/// Keys in ten deadlines.
const HORIZON: u64 = 10 * DEADLINE / SPACING;

fn options(sources: usize, max_open: usize) -> BuilderOptions {
    BuilderOptions {
        sources,
        deadline: Ns(DEADLINE),
        horizon: HORIZON,
        keys_per_ns: 1.0 / SPACING as f64,
        max_open,
        last_burst: 1000,
    }
}

/// A builder with memory for so many events.
fn builder<S: SourceSet>(events: usize, sources: usize, max_open: usize) -> Builder<Numbers, S> {
    let numbers = Numbers {
        free: (0..events).map(|_| Vec::with_capacity(sources)).collect(),
        stats: Stats::default(),
    };
    Builder::new(numbers, options(sources, max_open)).unwrap()
}

fn feed<S: SourceSet>(
    builder: &mut Builder<Numbers, S>,
    fragments: impl IntoIterator<Item = Fragment>,
    out: &mut Vec<Built<S>>,
) {
    let mut batch = Batch::with_capacity(7);
    for fragment in fragments {
        if batch.is_full() {
            builder.process(&mut batch, out);
        }
        batch.push(fragment).unwrap();
    }
    builder.process(&mut batch, out);
}

/// Fragments dropped for a cause.
fn dropped<S: SourceSet>(builder: &Builder<Numbers, S>, cause: Cause) -> u64 {
    builder.tally().balance().dropped_for(cause)
}
