//! Events are built as a model says that keeps them in maps.
#![allow(clippy::unwrap_used)]

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use pollux_mempool::time::Ns;
use pollux_pipelines::build::{
    Address, Builder, BuilderError, BuilderOptions, Built, Gather, SourceSet, Sources1024, Wide,
};
use pollux_pipelines::{Batch, Moment, Stage};
use pollux_pmd::{Cause, Ledger, Tally};
use pollux_pmd_testkit::guard::listen;
use proptest::prelude::*;

/// A fragment: key, source, when it came, and its number.
type Fragment = (u64, usize, u64, u32);

/// Gathers the sources and numbers of fragments, in memory of before.
struct Numbers(Vec<Vec<(usize, u32)>>);

impl Gather for Numbers {
    type Fragment = Fragment;
    type Event = Vec<(usize, u32)>;

    fn address(&self, &(key, source, at, _): &Fragment) -> Address {
        let at = Moment(at);
        Address { key, source, at }
    }

    fn open(&mut self, _key: u64) -> Option<Vec<(usize, u32)>> {
        self.0.pop()
    }

    fn add(
        &mut self,
        event: &mut Vec<(usize, u32)>,
        source: usize,
        fragment: Fragment,
    ) -> Result<(), Cause> {
        event.push((source, fragment.3));
        Ok(())
    }
}

fn numbers(events: usize, sources: usize) -> Numbers {
    Numbers((0..events).map(|_| Vec::with_capacity(sources)).collect())
}

const DEADLINE: u64 = 100;
const HORIZON: u64 = 50;

fn options(sources: usize, max_open: usize) -> BuilderOptions {
    BuilderOptions {
        sources,
        deadline: Ns(DEADLINE),
        horizon: HORIZON,
        max_open,
    }
}

type Events<S> = Vec<Built<Vec<(usize, u32)>, S>>;

fn feed<S: SourceSet>(
    builder: &mut Builder<Numbers, S>,
    fragments: impl IntoIterator<Item = Fragment>,
    out: &mut Events<S>,
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

#[derive(Default)]
struct Waiting {
    since: u64,
    deadline: u64,
    parts: BTreeMap<usize, u32>,
}

/// The rules of the builder, one by one, without a bound on open events.
struct Model {
    sources: usize,
    open: BTreeMap<u64, Waiting>,
    floor: u64,
    front: Option<u64>,
    /// By source: its last key that was taken, and when any came.
    heard: BTreeMap<usize, (u64, u64)>,
    out: Vec<(u64, Vec<(usize, u32)>)>,
    dropped: BTreeMap<Cause, u64>,
}

impl Model {
    fn close(&mut self) {
        let (key, event) = self.open.pop_first().unwrap();
        self.floor = key + 1;
        self.front = self.front.max(Some(key));
        self.out.push((key, event.parts.into_iter().collect()));
    }

    fn due(&mut self, now: u64) {
        while let Some(mut oldest) = self.open.first_entry() {
            let (key, event) = (*oldest.key(), oldest.get_mut());
            if event.parts.len() < self.sources {
                if now < event.deadline {
                    return;
                }
                let voters = self.heard.values();
                let reached = voters.clone().filter(|(said, _)| *said >= key).count();
                let behind = voters.filter(|(said, at)| *said < key && *at >= event.since);
                if self.front < Some(key) && behind.count() > reached {
                    event.deadline = now + DEADLINE / 8;
                    return;
                }
            }
            self.close();
        }
    }

    fn take(&mut self, (key, source, at, number): Fragment) {
        self.due(at);
        let said = self.heard.get(&source).map_or(0, |(said, _)| *said);
        self.heard.insert(source, (said, at));
        if self.front.is_none() {
            (self.front, self.floor) = (Some(key), key.saturating_sub(HORIZON));
        }
        let cause = if key < self.floor {
            Some(Cause::Late)
        } else if Some(key) > self.front.map(|front| front + HORIZON) {
            Some(Cause::OutOfWindow)
        } else {
            self.heard.insert(source, (key, at));
            let next = self.open.range(key + 1..).next();
            let deadline = next.map_or(u64::MAX, |(_, next)| next.deadline);
            let event = self.open.entry(key).or_insert_with(|| Waiting {
                since: at,
                deadline: deadline.min(at + DEADLINE),
                parts: BTreeMap::new(),
            });
            if let Entry::Vacant(place) = event.parts.entry(source) {
                place.insert(number);
                if 2 * event.parts.len() > self.sources {
                    self.front = self.front.max(Some(key));
                }
                None
            } else {
                Some(Cause::Duplicate)
            }
        };
        if let Some(cause) = cause {
            *self.dropped.entry(cause).or_default() += 1;
        }
        let sources = self.sources;
        let whole = |event: &Waiting| event.parts.len() == sources;
        while self
            .open
            .first_key_value()
            .is_some_and(|(_, event)| whole(event))
        {
            self.close();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever comes, but for keys that begin anew: events, causes and order are those of the
    /// model, and each fragment has one outcome.
    #[test]
    fn events_are_those_of_the_model(
        sources in 1..6_usize,
        steps in prop::collection::vec(
            (0..6_usize, -8..12_i64, 0..40_u64, 0..4_u64), 1..200),
    ) {
        let mut builder = Builder::<Numbers, u16>::new(numbers(2000, 6), options(sources, 2000)).unwrap();
        let mut model = Model {
            sources,
            open: BTreeMap::new(),
            floor: 0,
            front: None,
            heard: BTreeMap::new(),
            out: Vec::new(),
            dropped: BTreeMap::new(),
        };
        let (mut now, mut key) = (1000, 500_u64);
        let mut fragments = Vec::new();
        for (n, (source, off, wait, step)) in (0..).zip(steps) {
            let source = source % sources;
            fragments.push((key.wrapping_add_signed(off), source, now, n));
            now += wait;
            key += step;
        }
        let mut out = Vec::new();
        feed(&mut builder, fragments.iter().copied(), &mut out);
        for &fragment in &fragments {
            model.take(fragment);
        }
        builder.tick(Moment(now + 30), &mut out);
        model.due(now + 30);
        builder.finish(&mut out);
        while !model.open.is_empty() {
            model.close();
        }
        let got: Vec<_> = out
            .into_iter()
            .map(|mut event| {
                event.event.sort_unstable();
                let contributed: Vec<_> = event.event.iter().map(|part| part.0).collect();
                assert_eq!(contributed, event.sources.iter().collect::<Vec<_>>());
                assert_eq!(event.complete, contributed.len() == sources);
                (event.key, event.event)
            })
            .collect();
        prop_assert_eq!(got, model.out);
        let balance = builder.tally().balance();
        prop_assert_eq!(balance.drops().collect::<BTreeMap<_, _>>(), model.dropped);
        prop_assert_eq!(balance.delivered + balance.dropped_total(), fragments.len() as u64);
    }

    /// Sources that are behind each other by less than the deadline lose nothing, however many.
    #[test]
    fn sources_with_delays_lose_nothing(
        sources in 1..=1024_usize,
        delays in prop::collection::vec(0..DEADLINE, 8),
        events in 1..12_u64,
    ) {
        let mut fragments: Vec<Fragment> = (0..events)
            .flat_map(|key| (0..sources).map(move |source| (key, source)))
            .map(|(key, source)| (key, source, 1000 + key * 20 + delays[source % 8], source as u32))
            .collect();
        fragments.sort_by_key(|&(.., at, _)| at);
        let gather = numbers(64, sources);
        let mut builder = Builder::<_, Sources1024>::new(gather, options(sources, 64)).unwrap();
        let mut out = Vec::new();
        feed(&mut builder, fragments, &mut out);
        prop_assert_eq!(builder.tally().balance().dropped_total(), 0);
        prop_assert_eq!(out.len() as u64, events);
        for (key, event) in (0..).zip(&out) {
            prop_assert!(event.complete && event.key == key && event.event.len() == sources);
        }
    }
}

/// Three sources of which one is ahead for ever: it closes nothing of the others.
#[test]
fn a_source_that_is_ahead_closes_nothing_of_the_others() {
    let mut builder = Builder::<_, u16>::new(numbers(1000, 3), options(3, 1000)).unwrap();
    let mut out = Vec::new();
    for n in 0..100 {
        let at = 1000 + n * 50;
        let fragments = [(n, 0, at, 0), (n, 1, at, 1), (n + 20, 2, at, 2)];
        feed(&mut builder, fragments, &mut out);
    }
    builder.finish(&mut out);
    let shared = out.iter().filter(|event| event.event.len() > 1);
    let keys: Vec<_> = shared.map(|event| event.key).collect();
    assert_eq!(keys, (0..100).collect::<Vec<_>>());
    assert_eq!(builder.tally().balance().dropped_total(), 0);
    assert!(out.windows(2).all(|two| two[0].key < two[1].key));
    // From the twentieth on all three are there.
    assert_eq!(out.iter().filter(|event| event.complete).count(), 80);
}

/// One wrong key moves nothing; a majority that begins anew is followed, with another run.
#[test]
fn keys_begin_anew_with_a_majority() {
    let mut builder = Builder::<_, u64>::new(numbers(1000, 4), options(4, 100)).unwrap();
    let mut out = Vec::new();
    let all = |key: u64, at: u64| (0..4).map(move |source| (key, source, at, 0));
    for key in 5000..5020 {
        feed(&mut builder, all(key, key), &mut out);
        feed(
            &mut builder,
            [(key | 1 << 40, 1, key, 0), (3, 2, key, 0)],
            &mut out,
        );
    }
    assert_eq!(out.len(), 20);
    let dropped = |builder: &Builder<_, _>, cause| builder.tally().balance().dropped_for(cause);
    assert_eq!(dropped(&builder, Cause::OutOfWindow), 20);
    assert_eq!(dropped(&builder, Cause::Late), 20);
    out.clear();
    for key in 0..10 {
        feed(&mut builder, all(key, 6000 + key), &mut out);
    }
    builder.finish(&mut out);
    // Six fragments are lost to the doubt: the wrong key before them is near them.
    assert_eq!(dropped(&builder, Cause::Late), 26);
    let built: Vec<_> = out
        .iter()
        .map(|event| (event.run, event.key, event.complete))
        .collect();
    let expected = (1..10).map(|key| (1, key, key > 1)).collect::<Vec<_>>();
    assert_eq!(built, expected);
    assert_eq!(builder.counts().restarts.get(), 1);
}

/// With all room taken the oldest event is closed, if most sources have come to it.
#[test]
fn room_is_bounded_and_the_ledger_balances() {
    let mut builder = Builder::<_, u16>::new(numbers(1000, 2), options(2, 8)).unwrap();
    let (mut wire, mut ledger) = (Tally::new(), Ledger::new());
    ledger.add("port", wire.view());
    ledger.add("build", builder.tally());
    let mut out = Vec::new();
    // One source alone has half of the room.
    feed(&mut builder, (0..20).map(|key| (key, 0, 5, 0)), &mut out);
    assert_eq!(builder.tally().balance().dropped_for(Cause::NoRoom), 16);
    feed(&mut builder, (4..12).map(|key| (key, 1, 5, 0)), &mut out);
    wire.count_from_wire(28, 0);
    builder.finish(&mut out);
    assert_eq!(ledger.check().unwrap().delivered, 8);
    let sources: usize = out.iter().map(|event| event.event.len()).sum();
    assert_eq!(sources, 8);
    // No memory for events, and a source that there is not.
    let mut builder = Builder::<_, u16>::new(numbers(1, 2), options(2, 8)).unwrap();
    feed(
        &mut builder,
        [(1, 0, 5, 0), (2, 0, 5, 0), (2, 7, 5, 0)],
        &mut out,
    );
    let drops: Vec<_> = builder.tally().balance().drops().collect();
    assert_eq!(drops, [(Cause::NoMbuf, 1), (Cause::Unsupported, 1)]);
}

#[test]
fn options_out_of_range_are_refused() {
    let refusal = |options| {
        Builder::<_, u16>::new(numbers(0, 0), options)
            .err()
            .unwrap()
    };
    assert_eq!(refusal(options(0, 8)), BuilderError::Sources(0, 16));
    assert_eq!(refusal(options(17, 8)), BuilderError::Sources(17, 16));
    assert_eq!(refusal(options(2, 1)), BuilderError::Open(1));
    let deadline = Ns(0);
    assert_eq!(
        refusal(BuilderOptions {
            deadline,
            ..options(2, 8)
        }),
        BuilderError::Zero
    );
}

fn assert_is_a_set<S: SourceSet>() {
    let (mut set, mut model) = (S::default(), BTreeSet::new());
    for n in 0..3 * S::MAX {
        let source = n * 37 % S::MAX;
        if n % 3 == 2 {
            set.remove(source);
            model.remove(&source);
        } else {
            assert_eq!(set.insert(source), model.insert(source));
        }
        assert!((0..S::MAX).all(|source| set.contains(source) == model.contains(&source)));
    }
    assert!(set.iter().eq(model.iter().copied()) && S::MAX >= 16);
}

#[test]
fn sets_of_sources_are_sets() {
    assert_is_a_set::<u16>();
    assert_is_a_set::<u128>();
    assert_is_a_set::<Wide<3>>();
    assert_is_a_set::<Sources1024>();
}

#[test]
fn events_are_built_without_allocation() {
    let mut builder = Builder::<_, u16>::new(numbers(500, 4), options(4, 64)).unwrap();
    let mut batch = Batch::with_capacity(16);
    let mut out = Vec::with_capacity(500);
    let ((), noise) = listen(|ear| {
        ear.during(|| {
            for n in 0..2000_u64 {
                let fragment = (n / 4, (n % 4) as usize, n, n as u32);
                if !n.is_multiple_of(17) {
                    let _ = batch.push(fragment);
                }
                if batch.is_full() {
                    builder.process(&mut batch, &mut out);
                }
            }
        });
    });
    noise.assert_none();
    assert!(out.len() > 400 && out.iter().any(|event| !event.complete));
}
