//! How well rings are found at the light yield of the real RICH: the bars that must hold.

use pollux_na62::physics::model::{EventModel, ModelConfig, Rings, TruthEvent};
use pollux_na62::physics::score::TruthScore;
use pollux_na62::rich::Hit;
use pollux_na62::rich::find::{FinderConfig, RingFinder};
use pollux_na62::rich::geometry::{PMS_PER_DISK, disk_of};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Rings of at least so many hits.
const HITS: u16 = 7;

/// Efficiency and fakes among rings of at least seven hits.
fn score(rings: u32, noise: f64, events: u64) -> (f64, f64) {
    let model = EventModel::new(ModelConfig {
        rings: Rings::Fixed(rings),
        noise,
        ..ModelConfig::default()
    });
    let model = model.unwrap();
    let mut finder = RingFinder::new(FinderConfig::default()).unwrap();
    let (mut event, mut score) = (TruthEvent::default(), TruthScore::default());
    let (mut asked, mut found) = (0, 0);
    for n in 0..events {
        model.event(5, n, &mut event);
        let fitted: Vec<_> = finder.find(&event.hits).to_vec();
        let many: Vec<_> = fitted.iter().filter(|r| r.hits >= HITS).copied().collect();
        let mut of_many = TruthScore::default();
        of_many.add(&event.rings, &many);
        score.merge(&of_many);
        // Each ring of enough hits, held against all that were fitted.
        let matched = pollux_na62::physics::score::matches(&event.rings, &fitted);
        for (i, ring) in event.rings.iter().enumerate() {
            let counts =
                ring.hits >= HITS && pollux_na62::physics::score::is_asked_for(&event.rings, i);
            asked += u64::from(counts);
            found += u64::from(counts && matched.contains(&Some(i)));
        }
    }
    (
        found as f64 / asked as f64,
        score.unmatched as f64 / score.fitted as f64,
    )
}

#[test]
fn single_rings_are_found_and_few_are_fakes() {
    let (efficiency, fakes) = score(1, 0.1, 4000);
    assert!(efficiency >= 0.985, "{efficiency}");
    assert!(fakes <= 0.02, "{fakes}");
}

#[test]
fn of_three_rings_one_fit_in_a_hundred_is_a_fake() {
    let (efficiency, fakes) = score(3, 0.0, 4000);
    // Before rings had a significance: 0.979 and 0.011 of these.
    assert!(efficiency >= 0.975, "{efficiency}");
    assert!(fakes <= 0.0100, "{fakes}");
}

/// Ten hits of one time anywhere on a disk.
#[test]
fn stray_hits_are_hardly_ever_a_ring() {
    let mut rng = SmallRng::seed_from_u64(4);
    let mut finder = RingFinder::new(FinderConfig::default()).unwrap();
    let slots = 4000;
    let mut rings = 0;
    for _ in 0..slots {
        let mut pms = Vec::new();
        while pms.len() < 10 {
            let pm = rng.random_range(0..PMS_PER_DISK as u16);
            if !pms.contains(&pm) {
                pms.push(pm);
            }
        }
        let hits: Vec<_> = pms.iter().map(|&pm| Hit { pm, fine: 100 }).collect();
        rings += u32::from(!finder.find(&hits).is_empty());
    }
    assert!(rings * 100 <= 6 * slots, "{rings} of {slots}");
}

/// At any time of the slot, and with hot neighbours.
#[test]
fn what_is_on_one_disk_costs_the_other_nothing_and_no_ring_has_too_few_hits() {
    let model = EventModel::new(ModelConfig {
        rings: Rings::Fixed(3),
        pileup: 4.0,
        ..ModelConfig::default()
    });
    let model = model.unwrap();
    let cfg = FinderConfig::default();
    let mut finder = RingFinder::new(cfg).unwrap();
    let mut event = TruthEvent::default();
    let mut cut = 0;
    for n in 0..500 {
        model.event(6, n, &mut event);
        let of_disk = |disk: u8| -> Vec<Hit> {
            let hits = event.hits.iter().copied();
            hits.filter(|hit| disk_of(hit.pm) == disk).collect()
        };
        let rings = finder.find(&event.hits).to_vec();
        assert!(rings.iter().all(|ring| ring.hits >= cfg.min_hits));
        for disk in [0, 1] {
            let on = rings.iter().filter(|ring| ring.disk == disk).count();
            assert!(on <= usize::from(cfg.max_rings), "{on}");
            if finder.find(&of_disk(disk)).is_empty() {
                assert_eq!(on, 0);
            }
        }
        finder.find(&event.hits);
        cut += u32::from(finder.was_cut(0));
    }
    assert!(cut > 0);
}
