//! Sources whose time stamps jump, stray or disagree.

use crate::common::{Rig, l0};
use pollux_na62::stages::BuildOptions;
use pollux_pmd::Cause;

use super::options;

/// 100 ms of detector time are 4 million slots.
const HORIZON: u64 = 4_000_000;

/// The return of a source is no jump; the frame that showed it is lost.
#[test]
fn a_stray_time_stamp_costs_its_own_frame() {
    let mut rig = Rig::new(2, &options());
    rig.frame(0, 1000, 0);
    rig.frame(1, 1000, 0);
    assert_eq!(rig.take(), [(1000, 0b11)]);
    for (n, stray) in [(1, 2000 + HORIZON), (2, 1 << 60), (3, u64::MAX - 1)] {
        rig.frame(1, stray, n);
        rig.frame(0, 1000 + n, n);
        rig.frame(1, 1000 + n, n);
        assert_eq!(rig.take(), [(1000 + n, 0b11)]);
        assert_eq!(rig.dropped(Cause::OutOfWindow), n);
    }
    // Before what is closed, it is late.
    rig.frame(1, 5, 4);
    rig.frame(0, 1004, 4);
    rig.frame(1, 1004, 4);
    assert_eq!((rig.take(), rig.dropped(Cause::Late)), (vec![(1004, 3)], 1));
    // Within the horizon it waits for the others, which are not delayed.
    rig.frame(1, 1004 + HORIZON, 5);
    for n in 5..500 {
        rig.frame(0, 1000 + n, n);
        rig.frame(1, 1000 + n, n);
        assert_eq!(rig.take(), [(1000 + n, 0b11)]);
    }
    rig.finish();
    assert_eq!(rig.take(), [(1004 + HORIZON, 0b10)]);
    assert_eq!(l0(&rig.env).stats.events.resyncs.get(), 0);
    rig.check();
}

/// By the time that has passed.
#[test]
fn idle_time_is_no_jump() {
    let mut rig = Rig::new(2, &options());
    for n in 0..5 {
        let (t, at) = (400_000_000 * n, 10_000_000 * n);
        rig.frame(0, t, at);
        rig.frame(1, t, at + 10);
        assert_eq!(rig.take(), [(t, 0b11)]);
    }
    assert_eq!(l0(&rig.env).stats.events.resyncs.get(), 0);
    rig.check();
}

#[test]
fn a_jump_of_all_sources_costs_nothing() {
    let mut rig = Rig::new(2, &options());
    for (t, at) in [
        (5, 0),
        (1 << 50, 100_001),
        (7, 100_002),
        (u64::MAX - 1, 300_000),
    ] {
        rig.frame(0, t, at);
        rig.frame(1, t, at);
        assert_eq!(rig.take(), [(t, 0b11)]);
    }
    assert_eq!(l0(&rig.env).stats.events.resyncs.get(), 3);
    // The time stamps went back only once.
    assert_eq!(l0(&rig.env).stats.events.burst.get(), 2);
    rig.frame(0, u64::MAX, 500_000); // the last time stamp of all has none after it
    assert_eq!(rig.dropped(Cause::OutOfWindow), 1);
    rig.check();
}

/// A new spill: the first frames of the first sources are kept, too.
#[test]
fn time_begins_anew_without_a_loss() {
    for (sources, all) in [(1, 0b1), (2, 0b11), (3, 0b111), (4, 0b1111)] {
        for (first, second) in [(1_000_000, 0), (0, 1 << 40), (u64::MAX - 500, 3)] {
            let mut rig = Rig::new(sources, &options());
            for (start, at) in [(first, 0), (second, 400)] {
                for t in 0..400 {
                    for source in 0..sources {
                        rig.frame(source as u16, start + t, at + t);
                    }
                }
            }
            rig.finish();
            let expected = (first..first + 400).chain(second..second + 400);
            let expected: Vec<_> = expected.map(|t| (t, all)).collect();
            assert_eq!(rig.take(), expected);
            assert_eq!(rig.env.ledger.balance().dropped_total(), 0);
            let resyncs = l0(&rig.env).stats.events.resyncs.get();
            assert_eq!(resyncs, 1, "{sources} sources, {first}, {second}");
            let burst = l0(&rig.env).stats.events.burst.get();
            assert_eq!(burst, 1 + u64::from(second < first));
            rig.check();
        }
    }
}

/// Boards that agree in pairs, and a wrong majority that recovers.
#[test]
fn a_majority_is_followed_and_pairs_are_both_kept() {
    let mut rig = Rig::new(4, &options());
    let mut sent = 0;
    // Offset of each source in slots, and number of events at 100 kHz.
    let far = 40_000_000;
    let phases = [
        ([0, 0, 0, 0], 300),
        ([0, 0, far, far], 300),
        ([0, 0, 0, 0], 300),
        ([0, far, far, far], 300),
        ([0, 0, 0, 0], 300),
    ];
    for (offsets, events) in phases {
        for _ in 0..events {
            sent += 1;
            for (source, offset) in (0..).zip(offsets) {
                rig.frame(source, 1000 + 400 * sent + offset, 10 * sent);
            }
        }
    }
    rig.finish();
    let mut frames = [0; 4];
    let disputed = rig.out.iter().filter(|event| event.head().disputed).count();
    for (_, sources) in rig.take() {
        for (source, frames) in frames.iter_mut().enumerate() {
            *frames += u64::from(sources >> source & 1);
        }
    }
    // The pairs lose nothing; a single source against three is refused.
    assert!(frames[1..].iter().all(|&n| n + 40 > sent), "{frames:?}");
    assert!((sent - 320..sent - 250).contains(&frames[0]), "{frames:?}");
    assert!(disputed > 400, "{disputed}");
    assert_eq!(
        rig.dropped(Cause::ClockSkew),
        l0(&rig.env).stats.sources[0].skewed.get()
    );
    rig.check();
}

#[test]
fn nonsense_is_survived() {
    let mut rig = Rig::new(
        4,
        &BuildOptions {
            max_open: 64,
            ..options()
        },
    );
    let mut n = 1u64;
    let mut at = 0;
    for _ in 0..20_000 {
        n = n
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        at += n >> 60;
        let timestamp = (n >> 7) >> (n % 57);
        rig.frame((n >> 40) as u16 % 5, timestamp, at); // one source of five is unknown
    }
    assert!(rig.dropped(Cause::Unsupported) > 3000);
    rig.take();
    for t in 0..1000 {
        at += 1;
        for source in 0..4 {
            rig.frame(source, 5_000_000 + 40 * t, at);
        }
    }
    rig.finish();
    let out = rig.take();
    let last = (600..1000).map(|t| (5_000_000 + 40 * t, 0b1111));
    assert_eq!(out[out.len() - 400..], last.collect::<Vec<_>>());
    rig.check();
}

#[test]
fn a_few_late_frames_reopen_nothing() {
    let mut rig = Rig::new(4, &options());
    for source in 0..3 {
        rig.frame(source, 100, 0);
    }
    // The fourth is late by far more than a deadline, as are its next frames, and no other source
    // sends.
    for (t, at) in [(100, 5_000), (99, 10_000), (98, 15_000)] {
        rig.frame(3, t, at);
    }
    rig.finish();
    assert_eq!(rig.take(), [(100, 0b0111)]);
    assert_eq!(rig.dropped(Cause::Late), 3);
    rig.check();
}
