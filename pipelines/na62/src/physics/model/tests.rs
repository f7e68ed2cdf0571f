#![allow(clippy::unwrap_used, clippy::panic)]
use crate::rich::geometry::{POSITIONS, pm_at};

use super::*;

fn model() -> EventModel {
    EventModel::new(ModelConfig::default()).unwrap()
}

#[test]
fn an_event_depends_on_seed_and_number_alone() {
    let model = model();
    let (mut a, mut b) = (TruthEvent::default(), TruthEvent::default());
    let mut different = 0;
    for n in (0..200).rev() {
        model.event(7, n, &mut a);
        model.event(7, 1000 + n, &mut b);
        different += u32::from(a.hits != b.hits);
        model.event(8, n, &mut b);
        different += u32::from(a.hits != b.hits);
        model.event(7, n, &mut b);
        assert_eq!((&a.hits, &a.rings, a.noise), (&b.hits, &b.rings, b.noise));
    }
    // All but the pairs of two empty events.
    assert!(different > 340, "{different}");
}

#[test]
fn hits_are_sorted_unique_and_shared_out_to_the_boards() {
    let model = model();
    let mut event = TruthEvent::default();
    for n in 0..500 {
        model.event(1, n, &mut event);
        assert!(event.hits.windows(2).all(|pair| pair[0].pm < pair[1].pm));
        for boards in [1, 3, 4, 16] {
            let parts: Vec<Hit> = (0..boards)
                .flat_map(|board| event.board_hits(board, boards).to_vec())
                .collect();
            assert_eq!(parts, event.hits);
            for board in 0..boards {
                let hits = event.board_hits(board, boards);
                assert!(hits.iter().all(|hit| board_of(hit.pm, boards) == board));
            }
        }
    }
}

#[test]
fn figures_are_those_of_the_configuration() {
    let model = model();
    let mut event = TruthEvent::default();
    let (events, mut rings, mut hits, mut signal, mut noise) = (20_000, 0, 0, 0, 0);
    let (mut off, mut square) = (0.0f64, 0.0f64);
    for n in 0..events {
        model.event(3, n, &mut event);
        rings += event.rings.len();
        hits += event
            .rings
            .iter()
            .map(|ring| usize::from(ring.hits))
            .sum::<usize>();
        signal += event.hits.len() - event.noise as usize;
        noise += event.noise as usize;
        if let ([ring], 0) = (&event.rings[..], event.noise) {
            for hit in &event.hits {
                let [x, y] = POSITIONS[usize::from(hit.pm)];
                let d = f64::from((x - ring.x).hypot(y - ring.y) - ring.r);
                square += d * d;
                off += 1.0;
            }
        }
    }
    let per = |a: usize, b: usize| a as f64 / b as f64;
    assert!((per(rings, events as usize) - 1.5).abs() < 0.03);
    assert!(
        (per(noise, signal) - 0.1).abs() < 0.006,
        "{}",
        per(noise, signal)
    );
    assert!(
        (10.0..12.0).contains(&per(hits, rings)),
        "{}",
        per(hits, rings)
    );
    // A round opening of radius 9 mm has a variance of 9^2 / 4 in any direction.
    assert!((square / off - 20.25).abs() < 1.0, "{}", square / off);
}

/// Spoils a configuration.
type Spoil = fn(&mut ModelConfig);

#[test]
fn configurations_out_of_range_are_refused() {
    let refused: [(Spoil, ModelError); 17] = [
        (|cfg| cfg.rings = Rings::Poisson(-1.0), ModelError::Rings),
        (
            |cfg| cfg.rings = Rings::Poisson(f64::NAN),
            ModelError::Rings,
        ),
        (|cfg| cfg.rings = Rings::Fixed(1000), ModelError::Rings),
        (|cfg| cfg.momentum = [5.0, 35.0], ModelError::Momentum),
        (|cfg| cfg.momentum = [35.0, 15.0], ModelError::Momentum),
        (|cfg| cfg.particles = [0.0; 3], ModelError::Particles),
        (
            |cfg| cfg.particles = [-1.0, 2.0, 0.0],
            ModelError::Particles,
        ),
        (|cfg| cfg.photons = 0.0, ModelError::Light),
        (|cfg| cfg.quantum_efficiency = 0.0, ModelError::Light),
        (|cfg| cfg.noise = -0.1, ModelError::Light),
        (|cfg| cfg.jitter_ns = f64::INFINITY, ModelError::Light),
        (|cfg| cfg.cone_mm = 0.0, ModelError::Cones),
        (|cfg| cfg.cone_mm = f64::NAN, ModelError::Cones),
        (|cfg| cfg.dead = 0.6, ModelError::Cones),
        (|cfg| cfg.dead_seed = u64::MAX, ModelError::Cones),
        (|cfg| cfg.pileup = -0.1, ModelError::Overlap),
        (|cfg| cfg.halo = f64::NAN, ModelError::Overlap),
    ];
    for (change, error) in refused {
        let mut cfg = ModelConfig::default();
        change(&mut cfg);
        assert_eq!(EventModel::new(cfg).err(), Some(error), "{cfg:?}");
    }
    let electrons = ModelConfig {
        momentum: [5.0, 35.0],
        particles: [0.0, 0.0, 1.0],
        ..ModelConfig::default()
    };
    assert!(EventModel::new(electrons).is_ok());
}

#[test]
fn no_rings_and_no_noise_is_an_empty_event() {
    let mut event = TruthEvent::default();
    model().event(1, 1, &mut event);
    for rings in [Rings::Fixed(0), Rings::Poisson(0.0)] {
        let model = EventModel::new(ModelConfig {
            rings,
            ..ModelConfig::default()
        })
        .unwrap();
        model.event(1, 1, &mut event);
        assert!(event.rings.is_empty() && event.hits.is_empty() && event.noise == 0);
    }
}

/// Events of a model, as many as asked for.
fn each(cfg: ModelConfig, events: u64, mut see: impl FnMut(&TruthEvent)) {
    let model = EventModel::new(cfg).unwrap();
    let mut event = TruthEvent::default();
    for n in 0..events {
        model.event(11, n, &mut event);
        see(&event);
    }
}

/// Whether the sum of Poisson-like numbers is within five standard deviations of what is expected.
fn agrees(sum: f64, expected: f64) -> bool {
    (sum - expected).abs() < 5.0 * expected.sqrt()
}

#[test]
fn radii_are_those_of_momentum_and_mass() {
    let cfg = ModelConfig {
        momentum: [15.0, 75.0],
        particles: [1.0, 1.0, 1.0],
        ..ModelConfig::default()
    };
    let (mut kinds, mut rings) = ([0.0; 3], 0.0);
    each(cfg, 3000, |event| {
        for ring in &event.rings {
            let (p, m) = (f64::from(ring.momentum), f64::from(ring.mass));
            // tan(acos(x)) = sqrt(1 / x^2 - 1) with x = 1 / (n beta).
            let n_beta = (1.0 + REFRACTIVITY) * p / p.hypot(m);
            let r = FOCAL_LENGTH_MM * (n_beta * n_beta - 1.0).sqrt();
            assert!((r - f64::from(ring.r)).abs() < 0.05, "{ring:?} {r}");
            assert!((15.0..75.0).contains(&p));
            let kind = MASSES.iter().position(|&mass| (mass - m).abs() < 1e-6);
            kinds[kind.unwrap()] += 1.0;
            rings += 1.0;
        }
    });
    assert!(
        kinds.iter().all(|&count| agrees(count, rings / 3.0)),
        "{kinds:?}"
    );
}

/// Points at which a circle is looked at.
const STEPS: usize = 1440;

#[test]
fn hits_of_a_ring_are_those_of_poisson_light_in_its_cells() {
    for (quantum_efficiency, p, cone_mm) in
        [(0.2, 20.0, 18.0), (0.1, 75.0, 18.0), (0.2, 75.0, 21.0)]
    {
        let cfg = ModelConfig {
            rings: Rings::Fixed(1),
            momentum: [p, p],
            particles: [1.0, 0.0, 0.0],
            quantum_efficiency,
            noise: 0.0,
            cone_mm,
            dead: 0.0,
            ..ModelConfig::default()
        };
        let (mut hits, mut expected, mut variance) = (0.0, 0.0, 0.0);
        each(cfg, 1500, |event| {
            let ring = &event.rings[0];
            let tan = f64::from(ring.r) / FOCAL_LENGTH_MM;
            let limit = (1.0 + REFRACTIVITY) * (1.0 + REFRACTIVITY);
            let light = tan * tan / (1.0 + tan * tan) / (1.0 - 1.0 / limit);
            let seen = cfg.photons * quantum_efficiency * light;
            // A cell with a share s of the circle sees nothing with probability exp(-seen s).
            let mut cells = std::collections::BTreeMap::new();
            for i in 0..STEPS {
                let (sin, cos) = (TAU * i as f32 / STEPS as f32).sin_cos();
                let (x, y) = (ring.x + ring.r * cos, ring.y + ring.r * sin);
                let pm = pm_at(ring.disk, x, y).filter(|&pm| {
                    let [px, py] = POSITIONS[usize::from(pm)];
                    f64::from((x - px).hypot(y - py)) <= cone_mm / 2.0
                });
                *cells.entry(pm).or_insert(0.0) += 1.0 / STEPS as f64;
            }
            for (pm, share) in cells {
                if pm.is_some() {
                    let dark = (-seen * share).exp();
                    expected += 1.0 - dark;
                    variance += dark * (1.0 - dark);
                }
            }
            hits += f64::from(ring.hits);
        });
        assert!(
            (hits - expected).abs() < 5.0 * variance.sqrt(),
            "{hits} {expected}"
        );
    }
}

#[test]
fn centres_are_even_over_the_acceptance_and_halo_lies_outside() {
    let cfg = ModelConfig {
        halo: 0.7,
        ..ModelConfig::default()
    };
    let (mut own, mut halo, mut disks) = (Vec::new(), Vec::new(), [0.0; DISKS]);
    each(cfg, 4000, |event| {
        for ring in &event.rings {
            disks[usize::from(ring.disk)] += 1.0;
            let share = f64::from(ring.x.hypot(ring.y) / ACCEPTANCE_MM);
            match ring.origin {
                Origin::Halo => halo.push(share * share),
                Origin::Event | Origin::PileUp => own.push(share * share),
            }
        }
    });
    assert!(agrees(halo.len() as f64, 0.7 * 4000.0));
    let half = (own.len() + halo.len()) as f64 / 2.0;
    assert!(disks.iter().all(|&rings| agrees(rings, half)), "{disks:?}");
    // The squares are even over 0 to 1, and over 1 to 4: a variance of width^2 / 12.
    for (squares, low, width) in [(own, 0.0, 1.0), (halo, 1.0, 3.0)] {
        let n = squares.len() as f64;
        let mean = squares.iter().sum::<f64>() / n;
        assert!(
            squares
                .iter()
                .all(|&s| s >= low - 1e-3 && s <= low + width + 1e-3)
        );
        assert!((mean - low - width / 2.0).abs() < 5.0 * width / (12.0 * n).sqrt());
    }
}

#[test]
fn hit_times_spread_by_the_jitter_around_the_time_of_the_event() {
    let cfg = ModelConfig {
        rings: Rings::Fixed(1),
        noise: 0.0,
        ..ModelConfig::default()
    };
    let (mut sum, mut square, mut hits) = (0.0, 0.0, 0.0);
    each(cfg, 2000, |event| {
        let time = event.rings[0].time;
        // Far from the edges of the slot, where times are cut off.
        if (30.0..226.0).contains(&time) {
            for hit in &event.hits {
                // The time is cut to a whole unit.
                let late = f64::from(f32::from(hit.fine) + 0.5 - time);
                sum += late;
                square += late * late;
                hits += 1.0;
            }
        }
    });
    let sigma = 0.3 * 256.0 / 25.0;
    let variance = sigma * sigma + 1.0 / 12.0;
    assert!((sum / hits).abs() < 5.0 * f64::sqrt(variance / hits));
    assert!((square / hits / variance - 1.0).abs() < 5.0 * f64::sqrt(2.0 / hits));
}

#[test]
fn noise_falls_evenly_on_all_photomultipliers_and_times() {
    let cfg = ModelConfig {
        rings: Rings::Poisson(0.1),
        noise: 5.0,
        particles: [1.0, 0.0, 0.0],
        dead: 0.0,
        ..ModelConfig::default()
    };
    let (mut pms, mut times, mut noise) = ([0.0; PMS], [0.0; 16], 0.0);
    each(cfg, 20_000, |event| {
        if event.rings.is_empty() {
            for hit in &event.hits {
                pms[usize::from(hit.pm)] += 1.0;
                times[usize::from(hit.fine / 16)] += 1.0;
                noise += 1.0;
            }
        }
    });
    for counts in [&pms[..], &times[..]] {
        let expected = noise / counts.len() as f64;
        let chi2: f64 = counts
            .iter()
            .map(|c| (c - expected).powi(2) / expected)
            .sum();
        let freedom = counts.len() as f64 - 1.0;
        assert!(
            (chi2 - freedom).abs() < 5.0 * (2.0 * freedom).sqrt(),
            "{chi2} {freedom}"
        );
    }
}

#[test]
fn as_many_other_events_are_in_a_slot_as_the_rate_says() {
    let cfg = ModelConfig {
        rings: Rings::Fixed(2),
        pileup: 0.25,
        ..ModelConfig::default()
    };
    let (mut counts, events) = ([0.0; 16], 8000);
    each(cfg, events, |event| {
        let others: Vec<_> = event
            .rings
            .iter()
            .filter(|ring| ring.origin == Origin::PileUp)
            .collect();
        assert_eq!((event.rings.len() - others.len(), others.len() % 2), (2, 0));
        // Both rings of an event have its time.
        assert!(
            others
                .chunks(2)
                .all(|pair| pair[0].time.to_bits() == pair[1].time.to_bits())
        );
        assert!(event.rings[0].time.to_bits() == event.rings[1].time.to_bits());
        counts[others.len() / 2] += 1.0;
    });
    // Poisson: exp(-m) m^k / k!.
    let mut probability = (-0.25f64).exp();
    for (k, &count) in (1..).zip(&counts[..3]) {
        assert!(agrees(count, probability * events as f64), "{counts:?}");
        probability *= 0.25 / f64::from(k);
    }
}

#[test]
fn a_ring_of_the_speed_of_light_has_the_hits_of_the_real_detector() {
    let cfg = ModelConfig {
        rings: Rings::Fixed(1),
        momentum: [35.0, 35.0],
        particles: [0.0, 0.0, 1.0],
        noise: 0.0,
        ..ModelConfig::default()
    };
    let mut hits = 0.0;
    each(cfg, 20_000, |event| hits += f64::from(event.rings[0].hits));
    assert!((hits / 20_000.0 - 14.0).abs() < 0.15, "{}", hits / 20_000.0);
}

/// The light of a plane that is lit evenly: what touching circles cover of it.
#[test]
fn light_between_the_cones_is_lost() {
    let seen = |cone_mm: f64| {
        let cones = Cones::new(&ModelConfig {
            cone_mm,
            dead: 0.0,
            ..ModelConfig::default()
        });
        let steps = || (-800..800).map(|step| 0.17 * step as f32);
        let places = steps().flat_map(|x| steps().map(move |y| (x, y)));
        let inside = places.filter(|(x, y)| x.hypot(*y) < 130.0);
        let (mut lit, mut all) = (0.0, 0.0);
        for (x, y) in inside {
            all += 1.0;
            if let Some(pm) = cones.seen_at(1, x, y) {
                let [px, py] = POSITIONS[usize::from(pm)];
                assert!((x - px).hypot(y - py) <= cone_mm as f32 / 2.0 + 1e-3);
                lit += 1.0;
            }
        }
        lit / all
    };
    let fill = std::f64::consts::PI / (2.0 * 3.0_f64.sqrt());
    assert!((seen(18.0) - fill).abs() < 0.005, "{} {fill}", seen(18.0));
    assert!((seen(9.0) - fill / 4.0).abs() < 0.005);
    assert!((seen(21.0) - 1.0).abs() < 1e-9);
}

#[test]
fn dead_channels_see_nothing_and_are_those_of_their_seed() {
    let dead = |dead, dead_seed| -> Vec<u16> {
        let cones = Cones::new(&ModelConfig {
            dead,
            dead_seed,
            ..ModelConfig::default()
        });
        (0..PMS as u16).filter(|&pm| !cones.is_alive(pm)).collect()
    };
    assert!(dead(0.0, 1).is_empty());
    assert_eq!(dead(0.1, 1).len(), 195);
    assert_eq!(dead(0.1, 1), dead(0.1, 1));
    assert_ne!(dead(0.1, 1), dead(0.1, 2));
    let cfg = ModelConfig {
        dead: 0.1,
        dead_seed: 5,
        noise: 2.0,
        ..ModelConfig::default()
    };
    let (dark, mut hits) = (dead(0.1, 5), 0);
    each(cfg, 500, |event| {
        hits += event.hits.len();
        assert!(event.hits.iter().all(|hit| !dark.contains(&hit.pm)));
    });
    assert!(hits > 10_000);
}
