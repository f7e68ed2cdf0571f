//! Whatever keys come: each fragment has one outcome, and each set of sources gives the same events.

use std::collections::{BTreeMap, BTreeSet};

use pollux_pipelines::sources::{SourceSet, Sources1024, Wide};
use pollux_pipelines::{Moment, Stage};
use pollux_pmd::Cause;
use proptest::prelude::*;

use crate::{DEADLINE, Fragment, HORIZON, builder, feed};

/// An event without the type of its set: key, burst, sources, disputed, parts.
type Event = (u64, u16, Vec<usize>, bool, Vec<(usize, u32)>);

/// Events, drops, frames delivered, frames lost, and restarts.
type Outcome = (Vec<Event>, BTreeMap<Cause, u64>, u64, u64, u64);

fn build<S: SourceSet>(sources: usize, max_open: usize, fragments: &[Fragment]) -> Outcome {
    let mut builder = builder::<S>(fragments.len(), sources, max_open);
    let mut out = Vec::new();
    let (first, second) = fragments.split_at(fragments.len() / 2);
    feed(&mut builder, first.iter().copied(), &mut out);
    let now = second[0].at;
    builder.tick(Moment(now), &mut out);
    feed(&mut builder, second.iter().copied(), &mut out);
    builder.finish(&mut out);
    let balance = builder.tally().balance();
    let stats = &builder.gather().stats;
    let events = out.into_iter().map(|event| {
        let contributed = event.sources.iter().collect();
        assert_eq!(event.complete, event.parts.len() == sources);
        assert_eq!(event.shared, 2 * event.parts.len() > sources);
        (
            event.key,
            event.burst,
            contributed,
            event.disputed,
            event.parts,
        )
    });
    (
        events.collect(),
        balance.drops().collect(),
        balance.delivered,
        stats.lost.get(),
        stats.restarts.get(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn each_set_of_sources_gives_the_same_events(
        sources in 1..6_usize,
        max_open in prop_oneof![Just(1000_usize), 2..20_usize],
        steps in prop::collection::vec(
            (0..7_usize, 0..40_u8, -8..12_i64, 0..DEADLINE / 4, 0..8_u64), 2..400),
    ) {
        let (mut now, mut key) = (1000, 5000_u64);
        // How far each source is from where it should be.
        let mut apart = [0_i64; 7];
        let mut fragments = Vec::new();
        for (number, (source, jump, off, wait, step)) in (0..).zip(steps) {
            apart[source] += match jump {
                0 => 2 * HORIZON as i64,
                1 => -(HORIZON as i64) / 2,
                2 => -apart[source],
                _ => 0,
            };
            // One of the seven does not exist.
            let source = if source == 6 { 6 } else { source % sources };
            fragments.push(Fragment {
                key: key.saturating_add_signed(off + apart[source]),
                source,
                at: now,
                number,
                goes_on: false,
            });
            now += wait;
            key += step;
        }
        let result = build::<u16>(sources, max_open, &fragments);
        let (events, drops, delivered, lost, _) = &result;
        // Those that are dropped, those of events, and no others.
        let dropped = drops.values().sum::<u64>();
        prop_assert_eq!(delivered + dropped, fragments.len() as u64);
        prop_assert_eq!(*lost, dropped);
        let mut seen = BTreeSet::new();
        for (key, _, contributed, _, parts) in events {
            let mut of_parts: Vec<_> = parts.iter().map(|part| part.0).collect();
            of_parts.sort_unstable();
            prop_assert_eq!(&of_parts, contributed);
            for &(source, number) in parts {
                let fragment = fragments[number as usize];
                prop_assert_eq!((fragment.key, fragment.source), (*key, source));
                prop_assert!(seen.insert(number));
            }
        }
        prop_assert_eq!(seen.len() as u64, *delivered);
        prop_assert_eq!(&build::<u32>(sources, max_open, &fragments), &result);
        prop_assert_eq!(&build::<u64>(sources, max_open, &fragments), &result);
        prop_assert_eq!(&build::<u128>(sources, max_open, &fragments), &result);
        prop_assert_eq!(&build::<Wide<1>>(sources, max_open, &fragments), &result);
        prop_assert_eq!(&build::<Sources1024>(sources, max_open, &fragments), &result);
    }
}
