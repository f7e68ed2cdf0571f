#![allow(clippy::unwrap_used, clippy::panic)]
use std::collections::BTreeSet;
use std::f32::consts::TAU;

use proptest::prelude::*;

use super::seeds::Triplets;
use super::*;
use crate::rich::fit::Circle;
use crate::rich::geometry::{PMS, pm_at};

fn finder() -> RingFinder {
    RingFinder::new(FinderConfig::default()).unwrap()
}

/// Hits of evenly spread light on a ring.
fn ring_hits(disk: u8, circle: Circle, photons: usize, fine: u16) -> Vec<Hit> {
    let mut hits: Vec<Hit> = (0..photons)
        .filter_map(|i| {
            let (sin, cos) = (TAU * i as f32 / photons as f32 + 0.1).sin_cos();
            let pm = pm_at(disk, circle.x + circle.r * cos, circle.y + circle.r * sin)?;
            Some(Hit { pm, fine })
        })
        .collect();
    hits.dedup_by_key(|hit| hit.pm);
    hits
}

fn event(rings: &[(u8, Circle)]) -> Vec<Hit> {
    let mut hits: Vec<Hit> = rings
        .iter()
        .flat_map(|&(disk, circle)| ring_hits(disk, circle, 16, 100))
        .collect();
    hits.sort_unstable_by_key(|hit| hit.pm);
    hits.dedup_by_key(|hit| hit.pm);
    hits
}

fn assert_found(rings: &[Ring], truth: &[(u8, Circle)]) {
    assert_eq!(rings.len(), truth.len(), "{rings:?}");
    for (disk, circle) in truth {
        assert!(
            rings.iter().any(|ring| ring.disk == *disk
                && (ring.x - circle.x).hypot(ring.y - circle.y) < 10.0
                && (ring.r - circle.r).abs() < 6.0),
            "{circle:?} not in {rings:?}"
        );
    }
}

const A: Circle = Circle {
    x: 20.0,
    y: -40.0,
    r: 185.0,
};
const B: Circle = Circle {
    x: -60.0,
    y: 30.0,
    r: 165.0,
};
const C: Circle = Circle {
    x: 70.0,
    y: 60.0,
    r: 120.0,
};

#[test]
fn rings_are_found_alone_and_together() {
    let mut finder = finder();
    let events: [&[(u8, Circle)]; 6] = [
        &[],
        &[(0, A)],
        &[(1, B)],
        &[(0, A), (1, A)],
        &[(0, A), (0, B)],
        &[(1, A), (1, B), (1, C), (0, C)],
    ];
    for truth in events {
        assert_found(finder.find(&event(truth)), truth);
    }
}

#[test]
fn a_ring_says_what_it_is_made_of() {
    let hits = event(&[(1, A)]);
    let rings = finder().find(&hits).to_vec();
    assert_eq!(usize::from(rings[0].hits), hits.len());
    assert!((rings[0].time - 100.0).abs() < 1e-3);
    assert!(rings[0].chi2 > 1.0 && rings[0].chi2 < 40.0);
}

#[test]
fn an_earlier_event_leaves_no_trace() {
    let mut finder = finder();
    let quiet = event(&[(0, A)]);
    let first = finder.find(&quiet).to_vec();
    finder.find(&event(&[(0, A), (0, B), (0, C), (1, A), (1, B)]));
    assert_eq!(finder.find(&quiet), first);
}

#[test]
fn too_few_hits_or_hits_in_a_row_are_no_ring() {
    let mut finder = finder();
    assert!(finder.find(&ring_hits(0, A, 4, 0)).is_empty());
    // A row of neighbours: a line.
    let row: Vec<Hit> = (480..500).map(|pm| Hit { pm, fine: 9 }).collect();
    assert!(finder.find(&row).is_empty());
    let same = [Hit { pm: 100, fine: 0 }; 50];
    assert!(finder.find(&same).is_empty());
}

#[test]
fn hits_of_each_time_are_looked_at_by_themselves() {
    let mut hits = ring_hits(0, A, 16, 100);
    hits.extend(ring_hits(0, B, 14, 180));
    let found = finder().find(&hits).to_vec();
    assert_found(&found, &[(0, A), (0, B)]);
    let times = [found[0].time, found[1].time].map(f32::to_bits);
    assert_eq!(times, [100.0f32, 180.0].map(f32::to_bits));
    assert!(found.iter().all(|ring| ring.time_spread.abs() < 1e-3));
    // Closer than the window, so they share one time.
    let mut hits = ring_hits(0, A, 16, 100);
    hits.extend(ring_hits(0, B, 14, 110));
    assert_found(finder().find(&hits), &[(0, A), (0, B)]);
    let all = FinderConfig {
        time_window: 0,
        ..FinderConfig::default()
    };
    assert_found(RingFinder::new(all).unwrap().find(&hits), &[(0, A), (0, B)]);
}

/// Bursts of noise on one disk, each with more hits at one time than a ring has.
#[test]
fn bursts_on_one_disk_hide_nothing_on_the_other() {
    let bursts = [0u16, 60, 160, 220]
        .iter()
        .enumerate()
        .flat_map(|(n, &fine)| {
            let pms = (0..17).map(move |i| (i * 53 + n * 211) % PMS_PER_DISK);
            pms.map(move |pm| Hit {
                pm: pm as u16,
                fine,
            })
        });
    let mut hits: Vec<Hit> = bursts.collect();
    assert!(finder().find(&hits).is_empty());
    hits.extend(ring_hits(1, A, 14, 100));
    assert_found(finder().find(&hits), &[(1, A)]);
}

#[test]
fn both_methods_find_the_same_rings() {
    let grid = FinderConfig {
        method: Method::CentreGrid,
        ..FinderConfig::default()
    };
    let mut finder = RingFinder::new(grid).unwrap();
    for rings in [&[(0, A)][..], &[(0, A), (0, B)], &[(1, A), (1, B), (1, C)]] {
        assert_found(finder.find(&event(rings)), rings);
    }
}

/// Sets of hits that are difficult for ring finders.
fn degenerate() -> Vec<Vec<Hit>> {
    let all = |pms: &mut dyn Iterator<Item = u16>| -> Vec<Hit> {
        pms.map(|pm| Hit { pm, fine: 50 }).collect()
    };
    vec![
        vec![],
        all(&mut [5].into_iter()),
        all(&mut [5, 900].into_iter()),
        all(&mut std::iter::repeat_n(7, 2000)),
        all(&mut (0..2000)),
        all(&mut (0..2000).rev()),
        // A row, which is a line, on each disk.
        all(&mut (470..500).chain(1450..1480)),
        // Two positions.
        all(&mut [3, 400].into_iter().cycle().take(40)),
        all(&mut (u16::MAX - 100..u16::MAX)),
    ]
}

/// The rings of each event of a batch, by each instruction set.
fn agree(events: &[Vec<Hit>], cfg: FinderConfig) -> Vec<Vec<Ring>> {
    let found = |simd| {
        let mut finder = RingFinder::with_simd(cfg, simd).unwrap();
        let mut found = Vec::new();
        for batch in events.chunks(MAX_BATCH) {
            let n = finder.find_batch(batch.iter().map(|hits| &hits[..]));
            found.extend((0..n).map(|i| finder.rings(i).to_vec()));
        }
        found
    };
    let expected = found(Simd::SCALAR);
    for simd in Simd::all() {
        assert_eq!(found(simd), expected, "{simd:?}");
    }
    // They do not depend on the other events of the batch either.
    let mut alone = RingFinder::new(cfg).unwrap();
    for (hits, expected) in events.iter().zip(&expected) {
        assert_eq!(alone.find(hits), expected);
    }
    assert_eq!(expected.len(), events.len());
    expected
}

#[test]
fn degenerate_hits_are_survived() {
    for time_window in [0, 20] {
        for method in [Method::Triplets, Method::CentreGrid] {
            let cfg = FinderConfig {
                time_window,
                method,
                ..FinderConfig::default()
            };
            let mut events = degenerate();
            events.extend([event(&[(0, A)]), event(&[(0, A), (0, B), (1, C)])]);
            let found = agree(&events, cfg);
            assert_eq!([found[0].len(), found[1].len(), found[2].len()], [0; 3]);
            assert!(found[3].is_empty() && found[6].is_empty() && found[7].is_empty());
            assert_found(&found[degenerate().len()], &[(0, A)]);
            assert_found(&found[degenerate().len() + 1], &[(0, A), (0, B), (1, C)]);
        }
    }
}

#[test]
fn a_lit_up_detector_and_unknown_photomultipliers_are_survived() {
    let mut finder = finder();
    let mut flood: Vec<Hit> = (0..=u16::MAX).map(|pm| Hit { pm, fine: 50 }).collect();
    flood.extend((0..PMS as u16).map(|pm| Hit { pm, fine: 50 }));
    assert!(finder.find(&flood).len() <= MAX_RINGS);
    assert_found(finder.find(&event(&[(0, A)])), &[(0, A)]);
}

#[test]
fn configurations_that_make_no_sense_are_refused() {
    let default = FinderConfig::default();
    let refused = |cfg: FinderConfig| RingFinder::new(cfg).err();
    assert_eq!(refused(default), None);
    assert_eq!(
        refused(FinderConfig {
            min_hits: 3,
            ..default
        }),
        Some(FinderError::MinHits)
    );
    for max_rings in [0, 5] {
        assert_eq!(
            refused(FinderConfig {
                max_rings,
                ..default
            }),
            Some(FinderError::MaxRings)
        );
    }
    for searches in [0, 9] {
        assert_eq!(
            refused(FinderConfig {
                searches,
                ..default
            }),
            Some(FinderError::Searches)
        );
    }
    for cfg in [
        FinderConfig {
            road_mm: 0.0,
            ..default
        },
        FinderConfig {
            road_mm: f32::NAN,
            ..default
        },
        FinderConfig {
            min_radius_mm: 300.0,
            ..default
        },
        FinderConfig {
            max_radius_mm: f32::INFINITY,
            ..default
        },
    ] {
        assert_eq!(refused(cfg), Some(FinderError::Lengths));
    }
}

#[test]
fn triplets_are_distinct_and_complete_when_few() {
    for n in 0..12 {
        let all: Vec<_> = Triplets::new(n, 1000).collect();
        let set: BTreeSet<_> = all.iter().collect();
        assert_eq!(all.len(), n * n.saturating_sub(1) * n.saturating_sub(2) / 6);
        assert_eq!(set.len(), all.len());
        assert!(all.iter().all(|&[i, j, k]| i < j && j < k && k < n));
    }
    for n in [12, 40, 64] {
        let drawn: Vec<_> = Triplets::new(n, 128).collect();
        assert_eq!(drawn.len(), 128);
        for &[i, j, k] in &drawn {
            assert!(i != j && j != k && i != k && i.max(j).max(k) < n);
        }
        // Every hit is tested.
        let used: BTreeSet<_> = drawn.iter().flatten().collect();
        assert!(used.len() >= n.min(250));
    }
}

proptest! {
    #[test]
    fn any_hits_are_safe(
        raw in prop::collection::vec(
            prop::collection::vec((0..2100u16, any::<u8>()), 0..150), 1..20),
        time_window in prop::sample::select(vec![0, 20]),
    ) {
        let events: Vec<Vec<Hit>> = raw
            .into_iter()
            .map(|hits| hits.into_iter().map(|(pm, fine)| Hit { pm, fine: u16::from(fine) }).collect())
            .collect();
        let cfg = FinderConfig { time_window, ..FinderConfig::default() };
        for ring in agree(&events, cfg).iter().flatten() {
            prop_assert!(ring.hits > 0);
            let numbers = [ring.x, ring.y, ring.chi2, ring.time, ring.time_spread];
            prop_assert!(numbers.iter().all(|v| v.is_finite()));
            prop_assert!((cfg.min_radius_mm..=cfg.max_radius_mm).contains(&ring.r));
        }
    }
}
