//! The stage that merges hits, in the trigger: outcomes of frames, and rings.

use std::f32::consts::TAU;

use crate::common::{Part, env, l0, stored};
use pollux_mempool::time::Tsc;
use pollux_na62::l0::Reconstructed;
use pollux_na62::rich::Hit;
use pollux_na62::rich::find::FinderConfig;
use pollux_na62::rich::geometry::{board_of, pm_at};
use pollux_na62::stages::{FindRings, MergeHits, MergeHitsOptions};
use pollux_pipelines::{Batch, Moment, Stage, StageEnv, StageExt};
use pollux_pmd::Cause;
use proptest::prelude::*;

const SOURCES: u8 = 4;

fn options() -> MergeHitsOptions {
    MergeHitsOptions::default()
}

/// The fragments of all boards with hits at these times, in units of 25/256 ns: one for each board
/// and slot, with its hits sorted by photomultiplier.
fn fragments(hits: &[(u64, u16)], at: Moment) -> Vec<Part> {
    let mut slots: Vec<u64> = hits.iter().map(|(time, _)| time / 256).collect();
    slots.sort_unstable();
    slots.dedup();
    let fragment = |timestamp: u64, source: u8| {
        let own =
            |&&(time, pm): &&(u64, u16)| time / 256 == timestamp && board_of(pm, SOURCES) == source;
        let hit = |&(time, pm): &(u64, u16)| Hit {
            pm,
            fine: (time % 256) as u16,
        };
        let mut own: Vec<Hit> = hits.iter().filter(own).map(hit).collect();
        own.sort_unstable_by_key(|hit| hit.pm);
        Part {
            timestamp,
            source: source.into(),
            ends_frame: true,
            lost: 0,
            reordered: false,
            at,
            arrival: Tsc(at.0),
            hits: own,
        }
    };
    let all = |slot: u64| (0..SOURCES).map(move |source| fragment(slot, source));
    slots.into_iter().flat_map(all).collect()
}

/// Hits of a ring around a time, spread by 4 units to either side.
fn ring(time: u64, x: f32, y: f32) -> Vec<(u64, u16)> {
    let hit = |i: u64| {
        let (sin, cos) = (TAU * i as f32 / 16.0).sin_cos();
        (
            time + i * 5 % 9 - 4,
            pm_at(0, x + 170.0 * cos, y + 170.0 * sin).unwrap(),
        )
    };
    (0..16).map(hit).collect()
}

/// The output of a chain of merger and ring finder for fragments.
fn chain(options: &MergeHitsOptions, fragments: &[Part]) -> (Vec<Reconstructed>, StageEnv) {
    let mut env = env(SOURCES.into());
    let merge = MergeHits::new(options, &mut env).unwrap();
    let config = FinderConfig {
        time_window: 0,
        ..FinderConfig::default()
    };
    let mut chain = merge.then(FindRings::new(config).unwrap());
    let (mut batch, mut out) = (Batch::with_capacity(8), Vec::new());
    let frames = fragments
        .iter()
        .filter(|fragment| fragment.ends_frame)
        .count() as u64;
    for few in fragments.chunks(3) {
        if batch.is_full() {
            chain.process(&mut batch, &mut out);
            batch.clear();
        }
        batch.push(stored(few)).unwrap();
    }
    chain.process(&mut batch, &mut out);
    chain.finish(&mut out);
    let balance = env.ledger.balance();
    assert_eq!(
        balance.delivered + balance.dropped_total(),
        frames,
        "{balance:?}"
    );
    (out, env)
}

/// Wherever an event lies, also on the boundary of two windows, its ring is found once.
#[test]
fn a_ring_on_an_edge_is_found_once() {
    for window_slots in [1, 3] {
        let options = MergeHitsOptions {
            window_slots,
            ..options()
        };
        // All positions in a window, far enough apart that none is in the guard of another.
        let times: Vec<u64> = (0..800).map(|n| 100_000 + n * (256 * 12 + 1)).collect();
        let hits = times
            .iter()
            .map(|&time| fragments(&ring(time, 11.0, -7.0), Moment(1)));
        let (events, env) = chain(&options, &hits.flatten().collect::<Vec<_>>());
        let found: Vec<u64> = events
            .iter()
            .flat_map(|event| {
                let start = event.head().timestamp * 256;
                let guard = f32::from(event.view().span().guard);
                let time = move |ring: f32| (start as f32 + ring - guard).round() as u64;
                event
                    .rings()
                    .iter()
                    .map(move |ring| time(ring.time))
                    .collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(found.len(), times.len());
        assert!(found.iter().zip(&times).all(|(a, b)| a.abs_diff(*b) <= 8));
        assert_eq!(env.ledger.balance().dropped_total(), 0);
        // Those on a boundary were in two windows.
        assert!(events.len() > times.len());
    }
}

/// Two events in one window, or in neighbours that share their hits.
#[test]
fn events_that_pile_up_are_all_found() {
    for apart in [0, 30, 100, 200, 256, 300] {
        let hits = (0..50).flat_map(|n| {
            let time = 50_000 + n * 5000;
            let mut both = ring(time, -60.0, 10.0);
            both.extend(ring(time + apart, 70.0, -20.0));
            fragments(&both, Moment(1))
        });
        let (events, env) = chain(&options(), &hits.collect::<Vec<_>>());
        let rings: usize = events.iter().map(|event| event.rings().len()).sum();
        assert_eq!(rings, 100, "{apart}");
        assert_eq!(env.ledger.balance().dropped_total(), 0);
    }
}

#[test]
fn what_is_refused_is_counted_as_what_it_is() {
    let mut all = fragments(&ring(1_000_000, 0.0, 0.0), Moment(1000));
    let good = all.len() as u64;
    let with = |timestamp, source| Part {
        timestamp,
        source,
        ..all[0].clone()
    };
    let refused = [
        (with(u64::MAX, 0), Cause::OutOfWindow),
        (with(1 << 40, 0), Cause::OutOfWindow),
        (with(100, 0), Cause::OutOfWindow),
        (with(3000, 4), Cause::Unsupported),
    ];
    let causes = refused.each_ref().map(|refused| refused.1);
    all.extend(refused.map(|(fragment, _)| fragment));
    // One of several of its frame is usable, and one is empty.
    let with = |timestamp, ends_frame| Part {
        timestamp,
        ends_frame,
        ..all[0].clone()
    };
    let empty = Part {
        hits: Vec::new(),
        ..with(1_000_000 / 256 + 9, true)
    };
    let more = [with(1 << 40, false), with(1_000_000 / 256 + 8, true), empty];
    all.extend(more);
    let (events, env) = chain(&options(), &all);
    let balance = env.ledger.balance();
    assert_eq!(balance.delivered, good + 2);
    for cause in causes {
        let count = causes.iter().filter(|&&other| other == cause).count() as u64;
        assert_eq!(balance.dropped_for(cause), count, "{cause:?}");
    }
    assert_eq!(events.len() as u64, l0(&env).stats.events.built.get());
}

/// Nor do hits get lost in frames of which others were taken, or of which the end has none.
#[test]
fn each_hit_is_in_a_window_or_refused_for_a_cause() {
    let options = MergeHitsOptions {
        guard_ns: 0.0,
        capacity: 64,
        disorder_slots: 1000,
        ..options()
    };
    // A frame of a source: a hit in each slot, and the last one empty.
    let frame = |source: u16, from: u64, slots: u64| {
        let part = |slot: u64| Part {
            timestamp: from + slot,
            source,
            ends_frame: slot == slots,
            lost: 0,
            reordered: false,
            at: Moment(1000),
            arrival: Tsc(1),
            hits: vec![Hit { pm: 1, fine: 3 }; usize::from(slot < slots)],
        };
        (0..=slots).map(part).collect::<Vec<_>>()
    };
    // Ten frames of each, of which the rings hold six; the last fragments lack hits.
    let frames = (0..10).flat_map(|n| (0..4).map(move |source| (source, 1000 + 10 * n)));
    let parts: Vec<_> = frames
        .flat_map(|(source, from)| frame(source, from, 9))
        .collect();
    let (_, env) = chain(&options, &parts);
    assert!(env.warnings[0].contains("capacity = 64 is less than disorder_slots = 1000"));
    let (stats, balance) = (&l0(&env).stats, env.ledger.balance());
    let refused: u64 = stats.events.refused_hits().iter().map(|(_, n)| n).sum();
    assert_eq!(stats.events.no_room_hits.get(), refused);
    assert_eq!(refused, 4 * (90 - 64));
    assert_eq!(stats.events.hits.get() + refused, 4 * 90);
    // Of the eighth frames one hit was taken.
    assert_eq!(balance.delivered, 4 * 8);
    assert_eq!(balance.dropped_for(Cause::NoRoom), 4 * 2);
    for source in &stats.sources {
        assert_eq!(source.no_room_fragments.get(), 90 - 64);
    }
    // Whole frames that are refused count with their hits.
    let mut far = frame(0, 1 << 58, 9);
    far.extend(frame(1, 1000, 9));
    let options = MergeHitsOptions {
        guard_ns: 0.0,
        ..self::options()
    };
    let (_, env) = chain(&options, &far);
    assert_eq!(env.warnings, [] as [String; 0]);
    let stats = &l0(&env).stats;
    let refused: u64 = stats.events.refused_hits().iter().map(|(_, n)| n).sum();
    assert_eq!((stats.events.hits.get(), refused), (9, 9));
}

#[test]
fn options_out_of_range_are_refused() {
    let refused = |options: MergeHitsOptions| MergeHits::new(&options, &mut env(4)).err().unwrap();
    let with = |change: fn(&mut MergeHitsOptions)| {
        let mut options = options();
        change(&mut options);
        refused(options)
    };
    assert!(with(|o| o.window_slots = 0).starts_with("window_slots = 0"));
    assert!(with(|o| o.window_slots = 129).starts_with("window_slots = 129"));
    assert!(with(|o| o.guard_ns = 12.6).starts_with("guard_ns = 12.6"));
    assert!(with(|o| o.guard_ns = f64::NAN).starts_with("guard_ns = NaN"));
    assert!(with(|o| o.deadline_us = 0).starts_with("deadline_us = 0"));
    assert!(with(|o| o.capacity = 1).contains("capacity"));
    assert!(MergeHits::new(&options(), &mut env(0)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// After any input, building continues when the boards continue.
    #[test]
    fn a_burst_of_nonsense_passes(
        nonsense in prop::collection::vec((any::<u64>(), 0..64u32, 0..6u16, 0..3u64), 0..300),
    ) {
        let mut env = env(SOURCES.into());
        let mut merge = MergeHits::new(&MergeHitsOptions { capacity: 128, ..options() }, &mut env).unwrap();
        let (mut batch, mut out) = (Batch::with_capacity(1), Vec::new());
        let pattern = fragments(&ring(256, 0.0, 0.0), Moment(0));
        let mut put = |merge: &mut MergeHits, fragment: Part, out: &mut Vec<_>| {
            batch.push(stored(&[fragment])).unwrap();
            merge.process(&mut batch, out);
            batch.clear();
        };
        let mut now = 0;
        for (time, shift, source, wait) in &nonsense {
            now += wait * 1000;
            let fragment = Part { timestamp: time >> shift, source: *source, at: Moment(now), ..pattern[0].clone() };
            put(&mut merge, fragment, &mut out);
        }
        out.clear();
        let mut sent = nonsense.len() as u64;
        for n in 0..600u64 {
            now += 5000;
            for fragment in fragments(&ring((50_000 + n * 200) * 256 + 100, 0.0, 0.0), Moment(now)) {
                put(&mut merge, fragment, &mut out);
                sent += 1;
            }
            if n == 400 {
                // 2 ms of valid data: more than a few deadlines.
                out.clear();
            }
        }
        merge.finish(&mut out);
        let whole = out.iter().filter(|event| event.hits().len() == 16).count();
        prop_assert!(whole >= 195, "{whole}");
        let balance = env.ledger.balance();
        prop_assert_eq!(balance.delivered + balance.dropped_total(), sent);
    }
}
