//! The event builder, case by case.

mod clocks;

use crate::common::{Rig, env, fragment, hit, l0};
use pollux_mempool::time::Tsc;
use pollux_na62::rich::Hit;
use pollux_na62::stages::{Build, BuildOptions};
use pollux_pmd::Cause;

fn options() -> BuildOptions {
    BuildOptions::default()
}

#[test]
fn an_event_closes_when_all_sources_are_there() {
    let mut rig = Rig::new(3, &options());
    rig.frame(2, 7, 10);
    rig.frame(0, 7, 12);
    assert_eq!(rig.take(), []);
    rig.frame(1, 7, 20);
    let event = &rig.out[0];
    assert!(event.head().complete);
    assert_eq!(event.head().arrival, Tsc(10), "that of the first fragment");
    assert_eq!(
        event.hits(),
        [hit(7), hit(107), hit(207)],
        "in the order of the sources"
    );
    assert_eq!(event.head().hits, 3);
    assert_eq!(rig.take(), [(7, 0b111)]);
    assert_eq!(l0(&rig.env).stats.events.complete.get(), 1);
    rig.check();
}

#[test]
fn an_event_closes_at_its_deadline() {
    let mut rig = Rig::new(2, &options());
    rig.frame(1, 7, 10);
    rig.tick(309);
    assert_eq!(rig.take(), []);
    rig.tick(310);
    assert_eq!(rig.take(), [(7, 0b10)]);
    let stats = &l0(&rig.env).stats;
    assert_eq!(
        (stats.events.complete.get(), stats.events.incomplete.get()),
        (0, 1)
    );
    assert_eq!(
        (stats.sources[0].absent.get(), stats.sources[1].absent.get()),
        (1, 0)
    );
    rig.check();
}

#[test]
fn the_time_of_a_fragment_closes_what_is_due_without_a_tick() {
    let mut rig = Rig::new(2, &options());
    rig.frame(0, 7, 0);
    rig.frame(1, 7, 300);
    assert_eq!(rig.take(), [(7, 0b01)]);
    assert_eq!(rig.dropped(Cause::Late), 1);
    rig.check();
}

/// Where events are rare, every event follows a pause; a late fragment is late all the same.
#[test]
fn late_fragments_of_rare_events_open_no_event_again() {
    let mut rig = Rig::new(3, &options());
    for t in 0..100 {
        rig.frame(0, 400 * t, 10_000 * t);
        rig.frame(2, 400 * t, 10_000 * t);
        rig.frame(1, 400 * t, 10_000 * t + 400);
        assert_eq!(rig.take(), [(400 * t, 0b101)]);
    }
    assert_eq!(rig.dropped(Cause::Late), 100);
    assert_eq!(l0(&rig.env).stats.faults(1), ["late", "absent"]);
    assert_eq!(l0(&rig.env).stats.events.resyncs.get(), 0);
    rig.check();
}

/// With two sources neither is right: both are kept.
#[test]
fn the_events_of_two_sources_that_disagree_are_kept_and_say_so() {
    for apart in [40_000, 8_000_000] {
        let mut rig = Rig::new(2, &options());
        for t in 0..400 {
            rig.frame(0, 10_000_000 + 400 * t, 10 * t);
            rig.frame(1, 10_000_000 - apart + 400 * t, 10 * t);
        }
        let disputed = rig.out.iter().filter(|event| event.head().disputed).count();
        let out = rig.take();
        for sources in [0b01, 0b10] {
            let of = out.iter().filter(|event| event.1 == sources).count();
            assert!(of > 250, "{apart}: {of}");
        }
        assert!(disputed > 500, "{apart}: {disputed}");
        assert_eq!(rig.dropped(Cause::ClockSkew), 0);
        assert!(rig.dropped(Cause::Late) < 50);
        rig.finish();
        rig.check();
    }
}

#[test]
fn a_complete_event_waits_for_the_older_ones_and_no_longer_than_its_own_deadline() {
    let mut rig = Rig::new(2, &options());
    rig.frame(0, 7, 0);
    rig.frame(0, 8, 10);
    rig.frame(1, 8, 10);
    rig.frame(0, 9, 20);
    rig.frame(1, 9, 20);
    assert_eq!(rig.take(), []);
    rig.tick(300);
    assert_eq!(rig.take(), [(7, 0b01), (8, 0b11), (9, 0b11)]);
    rig.check();
}

/// Otherwise each older event would hold up all the younger ones once more.
#[test]
fn older_events_that_turn_up_late_do_not_prolong_the_wait() {
    let mut rig = Rig::new(4, &options());
    for source in [0, 2, 3] {
        rig.frame(source, 100, 0);
    }
    for n in 1..=20 {
        rig.frame(1, 100 - n, 14 * n);
    }
    rig.tick(299);
    assert_eq!(rig.take(), []);
    rig.tick(300);
    let expected: Vec<_> = (80..100)
        .map(|t| (t, 0b10))
        .chain([(100, 0b1101)])
        .collect();
    assert_eq!(rig.take(), expected);
    rig.check();
}

#[test]
fn late_duplicate_and_missing_are_told_apart_for_each_source() {
    let mut rig = Rig::new(4, &options());
    for source in 0..3 {
        rig.frame(source, 50, 0);
    }
    rig.frame(1, 50, 1); // twice
    rig.tick(300); // without source 3
    rig.frame(0, 51, 300);
    rig.frame(3, 50, 301); // late
    rig.frame(3, 49, 302); // late again
    rig.frame(3, 52, 303);
    rig.finish();
    assert_eq!(rig.take(), [(50, 0b0111), (51, 0b0001), (52, 0b1000)]);
    let of = |source: usize| {
        let counts = &l0(&rig.env).stats.sources[source];
        [
            counts.late.get(),
            counts.late_fragments.get(),
            counts.duplicate_fragments.get(),
            counts.absent.get(),
        ]
    };
    assert_eq!(of(0), [0, 0, 0, 1]);
    assert_eq!(of(1), [0, 0, 1, 2]);
    assert_eq!(of(2), [0, 0, 0, 2]);
    assert_eq!(of(3), [2, 2, 0, 2]);
    assert_eq!(
        (rig.dropped(Cause::Late), rig.dropped(Cause::Duplicate)),
        (2, 1)
    );
    rig.check();
}

#[test]
fn a_source_that_never_starts_costs_no_frame_of_the_others() {
    let mut rig = Rig::new(2, &options());
    for t in 0..1000 {
        rig.frame(0, t, 10 * t);
    }
    rig.finish();
    assert_eq!(rig.take(), (0..1000).map(|t| (t, 0b01)).collect::<Vec<_>>());
    assert_eq!(l0(&rig.env).stats.sources[1].absent.get(), 1000);
    assert_eq!(rig.env.ledger.balance().delivered, 1000);
}

#[test]
fn a_frame_is_delivered_if_one_of_its_events_was_of_use() {
    let part = |timestamp, ends_frame| {
        let mut fragment = fragment(0, timestamp, 301);
        fragment.ends_frame = ends_frame;
        fragment
    };
    let started = || {
        let mut rig = Rig::new(2, &options());
        rig.frame(0, 10, 0);
        rig.frame(1, 10, 0); // 10 is closed
        rig.frame(1, 11, 1); // and 11, at its deadline
        rig.frame(1, 13, 200);
        rig
    };
    // late, accepted
    let mut rig = started();
    rig.put(part(11, false));
    rig.put(part(13, true));
    assert_eq!(rig.env.ledger.balance().delivered, 5);
    rig.check();
    // duplicate, before the frame's beginning: the outcome of the first counts
    rig.frame(0, 14, 301);
    rig.put(part(14, false));
    rig.put(part(13, true));
    assert_eq!(
        (rig.dropped(Cause::Duplicate), rig.dropped(Cause::Late)),
        (1, 0)
    );
    rig.check();
    // late, and far ahead of the frame's beginning; the next frame is unaffected
    let mut rig = started();
    rig.put(part(11, false));
    rig.put(part(1 << 40, true));
    rig.frame(0, 13, 301);
    assert_eq!(
        (rig.dropped(Cause::Late), rig.dropped(Cause::OutOfWindow)),
        (1, 0)
    );
    assert_eq!(l0(&rig.env).stats.sources[0].late.get(), 1);
    rig.check();
}

#[test]
fn windows_gather_time_stamps() {
    let mut rig = Rig::new(
        2,
        &BuildOptions {
            window_slots: 4,
            ..options()
        },
    );
    rig.frame(0, 103, 0);
    rig.frame(1, 100, 0);
    rig.frame(0, 104, 0);
    rig.frame(1, 107, 0);
    // In the order of the sources, whatever the order of arrival; times count from the window's
    // beginning.
    let later = |pm, slots: u16| Hit {
        fine: hit(pm).fine + 256 * slots,
        ..hit(pm)
    };
    assert_eq!(rig.out[0].hits(), [later(3, 3), later(100, 0)]);
    assert_eq!(rig.out[1].hits(), [later(4, 0), later(107, 3)]);
    assert_eq!(rig.take(), [(100, 0b11), (104, 0b11)]);
    rig.frame(0, 108, 1);
    rig.frame(0, 111, 1); // the same window again
    assert_eq!(rig.dropped(Cause::Duplicate), 1);
    rig.check();
}

#[test]
fn when_too_many_are_open_the_oldest_is_closed() {
    let mut rig = Rig::new(
        2,
        &BuildOptions {
            max_open: 4,
            ..options()
        },
    );
    for t in [10, 20, 30, 40] {
        rig.frame(0, t, 0);
    }
    rig.frame(0, 5, 0); // itself the oldest
    assert_eq!(rig.take(), []);
    assert_eq!(rig.dropped(Cause::Late), 1);
    rig.frame(0, 25, 0);
    assert_eq!(rig.take(), [(10, 0b01)]);
    rig.frame(0, 50, 0);
    assert_eq!(rig.take(), [(20, 0b01)]);
    rig.frame(1, 20, 0);
    assert_eq!(rig.dropped(Cause::Late), 2);
    rig.frame(1, 25, 0);
    assert_eq!(rig.take(), [(25, 0b11)]);
    assert_eq!(l0(&rig.env).stats.events.forced.get(), 2);
    rig.finish();
    assert_eq!(rig.take(), [(30, 0b01), (40, 0b01), (50, 0b01)]);
    rig.check();
}

/// A frame is delivered with one fragment of use, and says nothing of its others.
#[test]
fn each_fragment_is_part_of_an_event_or_refused_for_a_cause() {
    let options = BuildOptions {
        max_open: 8,
        ..options()
    };
    let mut rig = Rig::new(3, &options);
    let frame = |source, from: u64, events: u64, at_us| {
        let part = |t: u64| {
            let mut part = fragment(source, from + 10 * t, at_us);
            part.ends_frame = t + 1 == events;
            part
        };
        (0..events).map(part).collect::<Vec<_>>()
    };
    for n in 0..20 {
        for source in 0..3 {
            rig.put_all(&frame(source, 1000 + 200 * n, 20, 50 * n));
        }
    }
    rig.finish();
    rig.check();
    let refused = |source: usize, cause| {
        let counts = l0(&rig.env).stats.sources[source].refused_fragments();
        counts.iter().find(|(of, _)| *of == cause).unwrap().1
    };
    let of_all: u64 = (0..3).map(|source| refused(source, Cause::NoRoom)).sum();
    assert!(
        of_all > 20 * rig.dropped(Cause::NoRoom),
        "of delivered frames"
    );
    let (used, lost) = rig.accounted();
    assert!(used > 0 && lost > 20, "{used} {lost}");
}

#[test]
fn hits_beyond_the_room_of_an_event_are_counted() {
    let mut rig = Rig::new(3, &options());
    for source in 0..3 {
        let mut fragment = fragment(source, 1, 0);
        fragment.hits = (0..255).map(|pm| hit(pm + 300 * source)).collect();
        rig.put(fragment);
    }
    let event = &rig.out[0];
    let head = event.head();
    // All sources have contributed, but some of their hits are missing.
    assert_eq!((head.sources, head.complete), (0b111, false));
    assert!(head.truncated);
    assert_eq!((event.hits().len(), event.head().hits), (510, 510));
    assert_eq!((event.hits()[0], event.hits()[509]), (hit(0), hit(554)));
    // All hits are of sources with more hits than rings explain.
    assert_eq!((head.masked, event.view().unmasked_hits().len()), (510, 0));
    let counts = &l0(&rig.env).stats.events;
    assert_eq!((counts.overfull.get(), counts.truncated.get()), (1, 1));
    assert_eq!((counts.complete.get(), counts.hits.get()), (0, 510));
    rig.check();
}

#[test]
fn events_that_are_not_returned_cost_fragments_that_are_counted() {
    let mut rig = Rig::new(1, &options());
    let pool = l0(&rig.env).events.clone().unwrap();
    let most = pool.buffers() as u64;
    for t in 0..most + 10 {
        rig.frame(0, t, t);
    }
    assert_eq!(rig.out.len() as u64, most);
    assert_eq!(
        (
            rig.dropped(Cause::NoMbuf),
            l0(&rig.env).stats.events.no_buffer.get()
        ),
        (10, 10)
    );
    rig.out.clear();
    rig.frame(0, most + 10, most + 10);
    assert_eq!(rig.take(), [(most + 10, 1)]);
    rig.check();
    drop(rig);
    assert_eq!(pool.available() as u64, most);
}

#[test]
fn options_out_of_range_are_refused_by_name() {
    let refused = |sources: usize, options: &BuildOptions| {
        Build::new(options, &mut env(sources)).err().unwrap()
    };
    for (options, word) in [
        (
            BuildOptions {
                window_slots: 0,
                ..options()
            },
            "window_slots = 0",
        ),
        (
            BuildOptions {
                window_slots: 129,
                ..options()
            },
            "window_slots = ",
        ),
        (
            BuildOptions {
                deadline_us: 0,
                ..options()
            },
            "deadline_us = 0",
        ),
        (
            BuildOptions {
                deadline_us: u64::MAX,
                ..options()
            },
            "deadline_us = ",
        ),
        (
            BuildOptions {
                max_open: 1,
                ..options()
            },
            "max_open = 1",
        ),
        (
            BuildOptions {
                max_open: usize::MAX,
                ..options()
            },
            "max_open = ",
        ),
        (
            BuildOptions {
                horizon_us: 300,
                ..options()
            },
            "horizon_us = 300: it must be above deadline_us = 300",
        ),
        (
            BuildOptions {
                horizon_us: 2,
                deadline_us: 1,
                window_slots: 81,
                ..options()
            },
            "horizon_us = 2",
        ),
    ] {
        let message = refused(2, &options);
        assert!(message.starts_with(word), "{message}");
    }
    assert_eq!(refused(0, &options()), "0 sources: there must be 1 to 16");
    assert!(
        Build::new(
            &BuildOptions {
                horizon_us: u64::MAX,
                ..options()
            },
            &mut env(16)
        )
        .is_ok()
    );
}
