//! Events of right keys are those of a model that keeps them in maps.

use std::collections::BTreeMap;

use pollux_pipelines::Stage;
use pollux_pipelines::sources::Sources1024;
use pollux_pmd::Cause;
use proptest::prelude::*;

use crate::{DEADLINE, Fragment, SPACING, builder, feed, fragment};

#[derive(Default)]
struct Waiting {
    deadline: u64,
    parts: BTreeMap<usize, u32>,
}

/// The rules of the builder where all keys are right, one by one, without a bound on open events.
struct Model {
    sources: usize,
    open: BTreeMap<u64, Waiting>,
    floor: u64,
    out: Vec<(u64, Vec<(usize, u32)>)>,
    dropped: BTreeMap<Cause, u64>,
}

impl Model {
    fn close(&mut self) {
        let (key, event) = self.open.pop_first().unwrap();
        self.floor = key + 1;
        self.out.push((key, event.parts.into_iter().collect()));
    }

    fn close_due(&mut self, now: u64) {
        while let Some((_, oldest)) = self.open.first_key_value()
            && (oldest.parts.len() == self.sources || oldest.deadline <= now)
        {
            self.close();
        }
    }

    fn take(&mut self, fragment: Fragment) {
        self.close_due(fragment.at);
        let outcome = self.add(fragment);
        if let Err(cause) = outcome {
            *self.dropped.entry(cause).or_default() += 1;
        }
        self.close_due(0);
    }

    fn add(&mut self, fragment: Fragment) -> Result<(), Cause> {
        if fragment.key < self.floor {
            return Err(Cause::Late);
        }
        let deadline = fragment.at + DEADLINE;
        let event = self.open.entry(fragment.key).or_insert_with(|| Waiting {
            deadline,
            ..Waiting::default()
        });
        if event.parts.contains_key(&fragment.source) {
            return Err(Cause::Duplicate);
        }
        event.parts.insert(fragment.source, fragment.number);
        if event.parts.len() == self.sources / 2 + 1 {
            event.deadline = event.deadline.max(deadline);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Fragments may be lost, sent twice, and delayed by less than a deadline.
    #[test]
    fn events_are_those_of_the_model(
        sources in 1..6_usize,
        start in 0..1_u64 << 40,
        disturbances in prop::collection::vec((0..10_u8, 0..DEADLINE / 10), 1..600),
    ) {
        let (mut fragments, mut before) = (Vec::new(), [0; 6]);
        for (number, &(disturbance, delay)) in (0..).zip(&disturbances) {
            let (source, n) = (number as usize % sources, number / sources as u64);
            // A source's fragments stay in order.
            before[source] = before[source].max(5000 + n * SPACING + delay);
            let sent = Fragment {
                number: number as u32,
                ..fragment(start + n, source, before[source])
            };
            match disturbance {
                0 => {}
                1 => fragments.extend([sent; 2]),
                _ => fragments.push(sent),
            }
        }
        fragments.sort_by_key(|fragment| fragment.at);
        let mut model = Model {
            sources,
            open: BTreeMap::new(),
            floor: 0,
            out: Vec::new(),
            dropped: BTreeMap::new(),
        };
        for &fragment in &fragments {
            model.take(fragment);
        }
        while !model.open.is_empty() {
            model.close();
        }
        let mut builder = builder::<u16>(1000, sources, 1000);
        let mut out = Vec::new();
        feed(&mut builder, fragments.iter().copied(), &mut out);
        builder.finish(&mut out);
        let got: Vec<_> = out
            .into_iter()
            .map(|mut event| {
                event.parts.sort_unstable();
                assert_eq!(event.complete, event.parts.len() == sources);
                (event.key, event.parts)
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
        let mut fragments: Vec<_> = (0..events)
            .flat_map(|key| (0..sources).map(move |source| (key, source)))
            .map(|(key, source)| fragment(key, source, 1000 + key * SPACING + delays[source % 8]))
            .collect();
        fragments.sort_by_key(|fragment| fragment.at);
        let mut builder = builder::<Sources1024>(64, sources, 64);
        let mut out = Vec::new();
        feed(&mut builder, fragments, &mut out);
        prop_assert_eq!(builder.tally().balance().dropped_total(), 0);
        prop_assert_eq!(out.len() as u64, events);
        for (key, event) in (0..).zip(&out) {
            prop_assert!(event.complete && event.key == key && event.parts.len() == sources);
        }
    }
}
