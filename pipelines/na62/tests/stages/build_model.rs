//! The event builder compared with a model of it: plain maps, no bounds, no cursors.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Part, Rig, fragment, l0};
use pollux_na62::rich::Hit;
use pollux_na62::stages::BuildOptions;
use pollux_pipelines::{Moment, Stage};
use pollux_pmd::Cause;
use proptest::prelude::*;

/// An event as the tests compare it: time stamp, sources, hits.
type Built = (u64, u16, Vec<Hit>);

fn built(rig: &mut Rig) -> Vec<Built> {
    let take = |event: pollux_na62::l0::Event| {
        let head = event.head();
        (head.timestamp, head.sources, event.hits().to_vec())
    };
    rig.out.drain(..).map(take).collect()
}

#[derive(Default)]
struct ModelEvent {
    deadline: u64,
    parts: BTreeMap<u16, Vec<Hit>>,
}

/// The rules of the builder where all clocks are right, one by one.
struct Model {
    sources: usize,
    options: BuildOptions,
    open: BTreeMap<u64, ModelEvent>,
    floor: u64,
    out: Vec<Built>,
}

impl Model {
    fn new(sources: usize, options: &BuildOptions) -> Self {
        Self {
            sources,
            options: options.clone(),
            open: BTreeMap::new(),
            floor: 0,
            out: Vec::new(),
        }
    }

    fn close_oldest(&mut self) {
        let (key, event) = self.open.pop_first().unwrap();
        self.floor = key + 1;
        let sources = event.parts.keys().map(|source| 1 << source).sum();
        let hits = event.parts.into_values().flatten().collect();
        self.out
            .push((key * self.options.window_slots, sources, hits));
    }

    fn close_due(&mut self, now: u64) {
        while let Some((_, oldest)) = self.open.first_key_value() {
            if oldest.parts.len() < self.sources && oldest.deadline > now {
                break;
            }
            self.close_oldest();
        }
    }

    fn put(&mut self, fragment: &Part) -> Result<(), Cause> {
        let now = fragment.at.0;
        self.close_due(now);
        let fate = self.add(fragment);
        self.close_due(now);
        fate
    }

    fn add(&mut self, fragment: &Part) -> Result<(), Cause> {
        let key = fragment.timestamp / self.options.window_slots;
        let deadline = fragment.at.0 + self.options.deadline_us * 1000;
        if key < self.floor {
            // A second one for its window.
            return Err(Cause::Late);
        }
        let event = self.open.entry(key).or_insert_with(|| ModelEvent {
            deadline,
            parts: BTreeMap::new(),
        });
        if event.parts.contains_key(&fragment.source) {
            return Err(Cause::Duplicate);
        }
        let slot = fragment.timestamp % self.options.window_slots;
        let later = |hit: &Hit| Hit {
            fine: hit.fine + 256 * slot as u16,
            ..*hit
        };
        let hits = fragment.hits.iter().map(later).collect();
        event.parts.insert(fragment.source, hits);
        if event.parts.len() == self.sources / 2 + 1 {
            event.deadline = event.deadline.max(deadline);
        }
        Ok(())
    }
}

/// Disturbance of a fragment in transit.
#[derive(Clone, Copy, Debug)]
enum Disturbance {
    Sent,
    Lost,
    Delayed(u64),
    Twice(u64),
    Corrupt(u64),
}

fn disturbance() -> impl Strategy<Value = Disturbance> {
    prop_oneof![
        12 => Just(Disturbance::Sent),
        2 => Just(Disturbance::Lost),
        3 => (1u64..60).prop_map(Disturbance::Delayed),
        1 => (60u64..400).prop_map(Disturbance::Delayed),
        1 => (0u64..300).prop_map(Disturbance::Twice),
        1 => any::<u64>().prop_map(|n| Disturbance::Corrupt(n >> (n % 64))),
    ]
}

/// Fragments of `sources`, in the order of their arrival. Event n has the time `start + step * n`,
/// and its fragments are sent `spacing` us after those of the previous event.
fn arrivals(
    sources: u16,
    start: u64,
    step: u64,
    spacing: u64,
    disturbances: &[Disturbance],
) -> Vec<Part> {
    let mut arrivals = Vec::new();
    for (i, disturbance) in disturbances.iter().enumerate() {
        let (source, n) = (
            (i % usize::from(sources)) as u16,
            (i / usize::from(sources)) as u64,
        );
        let (timestamp, sent) = (start.wrapping_add(step * n), 10 + spacing * n);
        let mut arrive = |timestamp, at| arrivals.push(fragment(source, timestamp, at));
        match *disturbance {
            Disturbance::Sent => arrive(timestamp, sent),
            Disturbance::Lost => {}
            Disturbance::Delayed(by) => arrive(timestamp, sent + by),
            Disturbance::Twice(by) => {
                arrive(timestamp, sent);
                arrive(timestamp, sent + by);
            }
            Disturbance::Corrupt(timestamp) => arrive(timestamp, sent),
        }
    }
    arrivals.sort_by_key(|fragment| fragment.at);
    arrivals
}

/// Passes fragments to the builder in batches of the given sizes, repeated.
fn run(rig: &mut Rig, fragments: &[Part], batches: &[usize]) {
    let mut rest = fragments;
    for &n in batches.iter().cycle() {
        let (now, later) = rest.split_at(n.min(rest.len()));
        rig.put_all(now);
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    rig.finish();
}

/// Open events: more than there are fragments.
const NO_LIMIT: usize = 1024;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Fragments may be lost, and delayed by less than a deadline.
    #[test]
    fn equals_the_model(
        sources in 1u16..=5,
        (start, step, spacing) in (1u64 << 30..1 << 41, 40u64..300, 2u64..40),
        disturbances in proptest::collection::vec(disturbance(), 1..800),
        window_slots in prop_oneof![Just(1u64), 2u64..=128],
        ends in proptest::collection::vec(any::<bool>(), 1..40),
        batches in proptest::collection::vec(1usize..40, 1..10),
    ) {
        let options = BuildOptions {
            window_slots,
            deadline_us: 500,
            horizon_us: 50_000,
            max_open: NO_LIMIT,
            ..BuildOptions::default()
        };
        let short = |disturbance: &Disturbance| match *disturbance {
            Disturbance::Delayed(by) => Disturbance::Delayed(by % 60),
            Disturbance::Twice(_) => Disturbance::Sent,
            Disturbance::Corrupt(_) => Disturbance::Lost,
            disturbance => disturbance,
        };
        let disturbances: Vec<_> = disturbances.iter().map(short).collect();
        let mut fragments = arrivals(sources, start, step, spacing, &disturbances);
        // A source's fragments stay in order.
        fragments.sort_by_key(|fragment| fragment.timestamp);
        let mut before = [Moment(0); 5];
        for fragment in &mut fragments {
            let before = &mut before[usize::from(fragment.source)];
            fragment.at = fragment.at.max(*before);
            *before = fragment.at;
        }
        fragments.sort_by_key(|fragment| fragment.at);
        // Frames of several fragments, of one source each.
        for i in 0..fragments.len() {
            let later = |next: &Part| {
                next.source == fragments[i].source && next.timestamp > fragments[i].timestamp
            };
            let same = fragments.get(i + 1).is_some_and(later);
            fragments[i].ends_frame = !same || ends[i % ends.len()];
        }

        let mut model = Model::new(usize::from(sources), &options);
        let (mut delivered, mut dropped) = (0u64, BTreeMap::<Cause, u64>::new());
        for frame in fragments.split_inclusive(|fragment| fragment.ends_frame) {
            let fates: Vec<_> = frame.iter().map(|fragment| model.put(fragment)).collect();
            match fates.iter().find(|fate| fate.is_ok()).unwrap_or(&fates[0]) {
                Ok(()) => delivered += 1,
                Err(cause) => *dropped.entry(*cause).or_default() += 1,
            }
        }
        while !model.open.is_empty() {
            model.close_oldest();
        }

        let mut rig = Rig::new(usize::from(sources), &options);
        run(&mut rig, &fragments, &batches);
        prop_assert_eq!(built(&mut rig), model.out);
        let balance = rig.env.ledger.balance();
        prop_assert_eq!(balance.delivered, delivered);
        prop_assert_eq!(balance.drops().collect::<BTreeMap<_, _>>(), dropped);
        let events = &l0(&rig.env).stats.events;
        prop_assert_eq!((events.forced.get(), events.resyncs.get()), (0, 0));
        rig.check();
    }

    /// Where nothing is late, the events are the fragments grouped by time stamp.
    #[test]
    fn without_pressure_events_are_groups_of_fragments(
        sources in 2u16..=16,
        start in 0u64..1 << 60,
        disturbances in proptest::collection::vec(disturbance(), 1..800),
    ) {
        let options = BuildOptions {
            deadline_us: 1_000_000,
            horizon_us: 2_000_000,
            max_open: NO_LIMIT,
            ..BuildOptions::default()
        };
        let kept = |disturbance: &Disturbance| match *disturbance {
            Disturbance::Corrupt(_) => Disturbance::Lost,
            disturbance => disturbance,
        };
        let disturbances: Vec<_> = disturbances.iter().map(kept).collect();
        // An incomplete event delays all younger ones.
        let mut fragments = vec![fragment(0, start, 0)];
        fragments.extend(arrivals(sources, start + 3, 3, 1, &disturbances));
        let mut groups = BTreeMap::<u64, BTreeMap<u16, Vec<Hit>>>::new();
        for fragment in &fragments {
            let hits = fragment.hits.clone();
            groups.entry(fragment.timestamp).or_default().entry(fragment.source).or_insert(hits);
        }
        let expected: Vec<Built> = groups
            .iter()
            .map(|(timestamp, parts)| {
                let sources = parts.keys().map(|source| 1 << source).sum();
                (*timestamp, sources, parts.values().flatten().copied().collect())
            })
            .collect();
        let mut rig = Rig::new(usize::from(sources), &options);
        run(&mut rig, &fragments, &[7]);
        prop_assert_eq!(built(&mut rig), expected);
        prop_assert_eq!(rig.dropped(Cause::Late), 0);
        rig.check();
    }

    /// The output is sorted and has each event once, until a jump back of the time stamps is
    /// accepted.
    #[test]
    fn the_output_is_sorted(
        sources in 1u16..=4,
        disturbances in proptest::collection::vec(disturbance(), 1..800),
        (spacing, tick) in (0u64..30, 1u64..50),
    ) {
        let options = BuildOptions { deadline_us: 50, max_open: 64, ..BuildOptions::default() };
        let mut rig = Rig::new(usize::from(sources), &options);
        let mut now = 0;
        for fragment in arrivals(sources, 1000, 2, spacing, &disturbances) {
            while now + tick * 1000 < fragment.at.0 {
                now += tick * 1000;
                rig.build.tick(Moment(now), &mut rig.out);
            }
            rig.put(fragment);
        }
        rig.finish();
        rig.check();
        let timestamps: Vec<_> = built(&mut rig).iter().map(|event| event.0).collect();
        let backwards = timestamps.windows(2).filter(|pair| pair[0] >= pair[1]).count() as u64;
        let events = &l0(&rig.env).stats.events;
        prop_assert!(backwards <= events.resyncs.get() + events.disputed.get());
        let unique = timestamps.iter().collect::<BTreeSet<_>>().len();
        prop_assert!(unique == timestamps.len() || backwards > 0);
    }
}
