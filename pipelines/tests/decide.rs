//! Which events are accepted.
#![allow(clippy::unwrap_used)]

mod common;

use common::{env, hit, reconstructed};
use pollux_pipelines::l0::{Decision, EventHead, MAX_EVENT_HITS};
use pollux_pipelines::rich::find::Ring;
use pollux_pipelines::stages::{Decide, DecideOptions};
use pollux_pipelines::{Batch, Stage};

/// Whether an event with so many hits and rings of these radii is accepted.
fn accepts(options: DecideOptions, hits: usize, radii: &[f32]) -> bool {
    let env = env(1);
    let mut stage = Decide::new(options, &env.stats).unwrap();
    let ring = |&r: &f32| Ring {
        r,
        ..Ring::default()
    };
    let rings: Vec<_> = radii.iter().map(ring).collect();
    let head = EventHead {
        timestamp: 5,
        ..EventHead::default()
    };
    let (mut batch, mut out) = (Batch::default(), Vec::<Decision>::new());
    let event = reconstructed(&head, &vec![hit(0); hits], &rings);
    batch.push(event).unwrap();
    stage.process(&mut batch, &mut out);
    assert_eq!(out[0].head().timestamp, 5);
    assert_eq!(
        (out[0].hits().len(), out[0].rings().len()),
        (hits, rings.len())
    );
    let counts = &env.stats.events;
    assert_eq!(
        (counts.accepted.get(), counts.rejected.get()),
        (out[0].accepted().into(), (!out[0].accepted()).into())
    );
    out[0].accepted()
}

#[test]
fn bounds_belong_to_what_is_accepted() {
    let any = DecideOptions {
        min_rings: 0,
        ..DecideOptions::default()
    };
    assert!(accepts(any, 0, &[]));
    let rings = DecideOptions {
        min_rings: 1,
        max_rings: 2,
        ..any
    };
    let all = [100.0, 150.0, 180.0];
    assert_eq!(
        [0, 1, 2, 3].map(|n| accepts(rings, 0, &all[..n])),
        [false, true, true, false]
    );
    let hits = DecideOptions { min_hits: 7, ..any };
    assert_eq!(
        [6, 7, MAX_EVENT_HITS].map(|n| accepts(hits, n, &[])),
        [false, true, true]
    );
    let radii = DecideOptions {
        radius_mm: [100.0, 150.0],
        min_rings: 1,
        ..any
    };
    let one = [99.9, 100.0, 150.0, 150.1, f32::NAN, f32::INFINITY];
    assert_eq!(
        one.map(|r| accepts(radii, 0, &[r])),
        [false, true, true, false, false, false]
    );
    assert!(
        accepts(
            DecideOptions {
                max_rings: 1,
                ..radii
            },
            0,
            &[90.0, 120.0, 190.0]
        ),
        "one counts"
    );
}

#[test]
fn bounds_that_nothing_could_meet_are_refused() {
    let refused = |options| Decide::new(options, &env(1).stats).err();
    let default = DecideOptions::default();
    assert_eq!(
        refused(DecideOptions {
            min_rings: 3,
            max_rings: 2,
            ..default
        })
        .unwrap(),
        "min_rings = 3 is above max_rings = 2"
    );
    for radius_mm in [
        [2.0, 1.0],
        [-1.0, 5.0],
        [0.0, f32::INFINITY],
        [f32::NAN, 1.0],
        [0.0, f32::NAN],
    ] {
        let message = refused(DecideOptions {
            radius_mm,
            ..default
        })
        .unwrap();
        assert!(message.starts_with("radius_mm = ["), "{message}");
    }
    assert!(
        refused(DecideOptions {
            radius_mm: [1.0, 1.0],
            ..default
        })
        .is_none()
    );
}
