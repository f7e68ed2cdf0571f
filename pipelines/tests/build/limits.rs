//! Bounds of the builder: room, memory, options.

use pollux_mempool::time::Ns;
use pollux_pipelines::build::{
    Address, Builder, BuilderError, BuilderOptions, Closing, Contribution, Gather,
};
use pollux_pipelines::sources::{SourceSet, Sources1024};
use pollux_pipelines::{Batch, Moment, Stage};
use pollux_pmd::{Cause, Ledger, Tally};
use pollux_pmd_testkit::guard::listen;

use crate::{
    DEADLINE, Fragment, HORIZON, Numbers, SPACING, Stats, builder, dropped, feed, fragment, options,
};

/// With all room taken the oldest event is closed; one source alone has half of the room while
/// others are heard.
#[test]
fn room_is_bounded_and_the_ledger_balances() {
    let mut builder = builder::<u16>(1000, 2, 8);
    let (mut wire, mut ledger) = (Tally::new(), Ledger::new());
    ledger.add("port", wire.view());
    ledger.add("build", builder.tally());
    let mut out = Vec::new();
    feed(
        &mut builder,
        [fragment(0, 0, 5), fragment(0, 1, 5)],
        &mut out,
    );
    assert_eq!(out.len(), 1);
    let alone = (1..20).map(|key| fragment(key, 0, 5));
    feed(&mut builder, alone, &mut out);
    assert_eq!(dropped(&builder, Cause::NoRoom), 15);
    // Events of both close the oldest.
    let other = (5..17).map(|key| fragment(key, 1, 5));
    feed(&mut builder, other, &mut out);
    wire.count_from_wire(2 + 19 + 12, 0);
    builder.finish(&mut out);
    let delivered = ledger.check().unwrap().delivered;
    let parts: usize = out.iter().map(|event| event.parts.len()).sum();
    assert_eq!(parts as u64, delivered);
    assert!(out.is_sorted_by_key(|event| event.key));
}

#[test]
fn the_oldest_event_is_closed_where_one_more_is_needed() {
    let mut builder = builder::<u16>(1000, 3, 8);
    let mut out = Vec::new();
    let two = (0..20).flat_map(|key| [0, 1].map(|source| fragment(key, source, 5)));
    feed(&mut builder, two, &mut out);
    assert_eq!(out.len(), 12);
    assert_eq!(builder.gather().stats.forced.get(), 12);
    // Older than all that are open, it would be the next to be closed.
    feed(&mut builder, [fragment(3, 2, 5)], &mut out);
    assert_eq!(dropped(&builder, Cause::Late), 1);
    assert!(out.iter().all(|event| event.parts.len() == 2));
}

#[test]
fn without_memory_and_without_its_source_a_fragment_is_lost() {
    let mut builder = builder::<u16>(1, 2, 8);
    let fragments = [fragment(1, 0, 5), fragment(2, 0, 5), fragment(2, 7, 5)];
    feed(&mut builder, fragments, &mut Vec::new());
    let drops: Vec<_> = builder.tally().balance().drops().collect();
    assert_eq!(drops, [(Cause::NoMbuf, 1), (Cause::Unsupported, 1)]);
    // There would be no floor above the last of all keys.
    feed(&mut builder, [fragment(u64::MAX, 0, 5)], &mut Vec::new());
    builder.finish(&mut Vec::new());
    assert_eq!(dropped(&builder, Cause::OutOfWindow), 1);
}

#[test]
fn options_out_of_range_are_refused() {
    let refusal = |options| {
        let (free, stats) = (Vec::new(), Stats::default());
        Builder::<_, u16>::new(Numbers { free, stats }, options)
            .err()
            .unwrap()
    };
    let right = options(2, 8);
    assert_eq!(refusal(options(0, 8)), BuilderError::Sources(0, 16));
    assert_eq!(refusal(options(17, 8)), BuilderError::Sources(17, 16));
    assert_eq!(refusal(options(2, 1)), BuilderError::Open(1));
    let deadline = Ns(0);
    assert_eq!(
        refusal(BuilderOptions { deadline, ..right }),
        BuilderError::Zero
    );
    let last_burst = 0;
    assert_eq!(
        refusal(BuilderOptions {
            last_burst,
            ..right
        }),
        BuilderError::Zero
    );
    for keys_per_ns in [0.0, -1.0, f64::INFINITY] {
        let refused = refusal(BuilderOptions {
            keys_per_ns,
            ..right
        });
        assert_eq!(refused, BuilderError::Rate(keys_per_ns));
    }
    let (horizon, passed) = (HORIZON / 10 - 1, DEADLINE / SPACING);
    let refused = refusal(BuilderOptions { horizon, ..right });
    assert_eq!(refused, BuilderError::Horizon(horizon, passed));
}

/// Adds up numbers of sources, which takes no memory.
struct Sums;

impl<S: SourceSet> Gather<S> for Sums {
    type Input = Fragment;
    type Fragment<'a> = Fragment;
    type Event = usize;
    type Built = (usize, Closing<S>);
    type Stats = ();

    fn each(batch: &mut Batch<Fragment>, take: impl FnMut(Fragment)) {
        batch.drain().for_each(take);
    }

    fn address(&self, fragment: &Fragment) -> Address {
        Address::of_frame(fragment.key, fragment.source, Moment(fragment.at))
    }

    fn open(&mut self, _first: &Fragment) -> Option<usize> {
        Some(0)
    }

    fn add(
        &mut self,
        sum: &mut usize,
        fragment: Fragment,
        _: Contribution<S>,
    ) -> Result<(), Cause> {
        *sum += fragment.source;
        Ok(())
    }

    fn close(&mut self, sum: &mut usize, closing: &Closing<S>) -> Option<(usize, Closing<S>)> {
        Some((*sum, *closing))
    }

    fn stats(&self) -> &() {
        &()
    }
}

fn assert_allocates_nothing<S: SourceSet>() {
    let mut builder = Builder::<_, S>::new(Sums, options(4, 64)).unwrap();
    let mut batch = Batch::with_capacity(16);
    let mut out = Vec::with_capacity(10_000);
    let ((), noise) = listen(|ear| {
        ear.during(|| {
            for n in 0..8000_u64 {
                let (key, source) = (10_000 + n / 4, (n % 4) as usize);
                let key = match n {
                    2000..3000 if source == 1 => key + 1_000_000,
                    4000..5000 if source > 1 => key + 3 * HORIZON,
                    6000.. => key - 9000,
                    _ => key,
                };
                if !n.is_multiple_of(17) {
                    let _ = batch.push(fragment(key, source, 1000 + n * 5));
                    builder.process(&mut batch, &mut out);
                }
            }
        });
    });
    noise.assert_none();
    let some = |holds: fn(&Closing<S>) -> bool| out.iter().any(|(_, closing)| holds(closing));
    assert!(out.len() > 1500 && some(|closing| !closing.complete));
    assert!(some(|closing| closing.disputed) && some(|closing| closing.burst == 2));
    for (sum, closing) in &out {
        assert_eq!(*sum, closing.sources.iter().sum::<usize>());
    }
}

/// Nor while sources jump, differ, and return.
#[test]
fn events_are_built_without_allocation() {
    assert_allocates_nothing::<u16>();
    assert_allocates_nothing::<Sources1024>();
}
