#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;
use std::f32::consts::TAU;

use pollux_mempool::time::Ns;
use proptest::prelude::*;

use super::*;
use crate::rich::find::{FinderConfig, RingFinder};
use crate::rich::geometry::pm_at;

/// Where windows begin, and their hits with absolute times.
type Windows = Vec<(u64, Vec<(u64, u16)>)>;

fn collect(windows: &mut Windows) -> impl FnMut(Window) {
    |window| {
        let absolute = |hit: &Hit| {
            let time = window.start + u64::from(hit.fine) - u64::from(window.span.guard);
            (time, hit.pm)
        };
        windows.push((window.start, window.hits.iter().map(absolute).collect()));
    }
}

fn options(sources: usize) -> MergeOptions {
    MergeOptions {
        sources,
        ..MergeOptions::default()
    }
}

/// When hits come.
fn at(moment: Moment) -> HitArrival {
    HitArrival {
        at: moment,
        arrival: Tsc(moment.0),
    }
}

fn stamped(time: u64, pm: u16) -> StampedHit {
    StampedHit { time, pm }
}

/// What the windows of these hits must be.
fn model(options: &MergeOptions, sources: &[Vec<StampedHit>]) -> Windows {
    let (width, guard) = (u64::from(options.width), u64::from(options.guard));
    let mut windows = BTreeMap::new();
    for hit in sources.iter().flatten() {
        windows
            .entry(hit.time / width * width)
            .or_insert_with(Vec::new);
    }
    for (&start, hits) in &mut windows {
        for source in sources {
            let mut own: Vec<_> = source
                .iter()
                .filter(|hit| hit.time + guard >= start && hit.time < start + width + guard)
                .map(|hit| (hit.time, hit.pm))
                .collect();
            // Hits of one time stay in the order in which they came.
            own.sort_by_key(|&(time, _)| time);
            hits.extend(own);
        }
    }
    windows.into_iter().collect()
}

proptest! {
    /// However the hits are cut into pieces, and as far out of order as is allowed.
    #[test]
    fn windows_hold_the_hits_of_their_time(
        gaps in prop::collection::vec(prop::collection::vec((0u64..400, 0u64..1024, any::<u16>()), 0..80), 1..5),
        piece in 1usize..40,
        width in prop::sample::select(vec![64u16, 256, 1000]),
    ) {
        let options = MergeOptions { width, guard: 20, ..options(gaps.len()) };
        let mut sources: Vec<Vec<StampedHit>> = gaps
            .iter()
            .map(|hits| {
                let mut at = 5000;
                hits.iter().map(|&(gap, back, pm)| {
                    at += gap;
                    // Less than the bound in all: `at` only grows.
                    stamped(at - back, pm)
                }).collect()
            })
            .collect();
        let mut windows = Windows::new();
        let now = Moment(1);
        // A source that has not spoken yet is not waited for, so all of them say that they are there.
        let mut merge = Merge::new(options).unwrap();
        for (source, hits) in sources.iter_mut().enumerate() {
            hits.insert(0, stamped(0, 0));
            let _ = merge.push(source, &hits[..1], at(now), &mut collect(&mut windows));
        }
        let most = sources.iter().map(Vec::len).max().unwrap_or(0);
        // Nor is one that has nothing more to say heard of.
        for hits in &mut sources {
            let last = hits.iter().map(|hit| hit.time).max().unwrap_or(0);
            let missing = most - hits.len();
            hits.extend(std::iter::repeat_n(stamped(last, 1), missing));
        }
        for round in 0..most.div_ceil(piece) {
            for (source, hits) in sources.iter().enumerate() {
                let from = (round * piece).max(1).min(hits.len());
                let to = ((round + 1) * piece).max(1).min(hits.len());
                merge.push(source, &hits[from..to], at(now), &mut collect(&mut windows)).unwrap();
            }
        }
        merge.finish(&mut collect(&mut windows));
        prop_assert_eq!(&windows, &model(&options, &sources));
        let counts = merge.counts();
        prop_assert_eq!(counts.taken, sources.iter().map(Vec::len).sum::<usize>() as u64);
        prop_assert_eq!(counts.windows, windows.len() as u64);
    }

    #[test]
    fn any_times_are_survived(
        hits in prop::collection::vec((0usize..6, any::<u64>(), 0u32..64), 0..300)
    ) {
        let mut merge = Merge::new(MergeOptions { capacity: 64, ..options(4) }).unwrap();
        let mut pushed = 0;
        for (i, (source, time, shift)) in hits.into_iter().enumerate() {
            let mut last = None;
            let mut ascending = |window: Window| last = last.max(Some(window.start));
            let _ = merge.push(source, &[stamped(time >> shift, 0)], at(Moment(i as u64 * 10_000)), &mut ascending);
            pushed += 1;
        }
        merge.finish(&mut |_| ());
        let MergeCounts { taken, late, ahead, skewed, full, unknown, .. } = merge.counts();
        prop_assert_eq!(taken + late + ahead + skewed + full + unknown, pushed);
        let sources = || merge.lines.iter().flat_map(|line| &line.sources);
        prop_assert!(sources().all(|source| source.head == source.tail));
    }
}

#[test]
fn windows_close_in_order_as_soon_as_all_sources_are_past_them() {
    let mut merge = Merge::new(options(2)).unwrap();
    let mut windows = Windows::new();
    let hits: Vec<_> = (0..40).map(|i| stamped(i * 256 + 100, i as u16)).collect();
    merge
        .push(0, &hits, at(Moment(1)), &mut collect(&mut windows))
        .unwrap();
    assert!(windows.is_empty());
    merge
        .push(1, &hits[..20], at(Moment(2)), &mut collect(&mut windows))
        .unwrap();
    // Source 1 is at 19 * 256 + 100, and may go back by four slots.
    let starts: Vec<u64> = windows.iter().map(|(start, _)| *start / 256).collect();
    assert_eq!(starts, (0..15).collect::<Vec<_>>());
    assert!(windows.iter().all(|(_, hits)| hits.len() == 2));
}

#[test]
fn a_silent_source_is_waited_for_until_its_deadline() {
    let options = options(2);
    let mut merge = Merge::new(options).unwrap();
    let mut windows = Windows::new();
    let hits: Vec<_> = (0..40).map(|i| stamped(i * 256, i as u16)).collect();
    merge
        .push(1, &hits[..1], at(Moment(1)), &mut |_| ())
        .unwrap();
    merge
        .push(0, &hits, at(Moment(1000)), &mut collect(&mut windows))
        .unwrap();
    // It is noted from time to time how far a majority has come, which one of two is when the other
    // is silent.
    let late = Moment(1000 + options.deadline.0);
    for ns in (1000..late.0).step_by(10_000) {
        merge.tick(Moment(ns), &mut collect(&mut windows));
        assert!(windows.is_empty());
    }
    let late = late.after(options.deadline);
    for ns in (late.0 - options.deadline.0..late.0 + 30_000).step_by(10_000) {
        merge.tick(Moment(ns), &mut collect(&mut windows));
    }
    // All but the last four, and the one whose guard reaches into them.
    assert_eq!(windows.len(), 34);
    // What it says then about closed windows is late; it is heard again afterwards.
    let (taken, now) = (merge.counts().taken, late.after(Ns(30_001)));
    let late = merge.push(1, &[hits[3]], at(now), &mut |_| ());
    assert_eq!(late, Err(Refusal::Late));
    merge
        .push(1, &[hits[4], hits[38]], at(now), &mut |_| ())
        .unwrap();
    let counts = merge.counts();
    assert_eq!((counts.late, counts.taken), (2, taken + 1));
}

/// An event on the edge of two windows.
#[test]
fn an_event_on_an_edge_is_found_once() {
    let options = options(4);
    let cfg = FinderConfig {
        time_window: 0,
        ..FinderConfig::default()
    };
    let mut finder = RingFinder::new(cfg).unwrap();
    for shift in 0..600u64 {
        let mut merge = Merge::new(options).unwrap();
        let mut found = 0;
        let mut torn = false;
        let time = 10_000 + shift;
        let mut sources = vec![Vec::new(); 4];
        for i in 0..16u64 {
            let (sin, cos) = (TAU * i as f32 / 16.0).sin_cos();
            let pm = pm_at(0, 170.0 * cos + 11.0, 170.0 * sin - 7.0).unwrap();
            // Up to 4 units to both sides: more than a nanosecond in all.
            sources[i as usize % 4].push(stamped(time + i * 5 % 9, pm));
        }
        let mut look = |window: Window| {
            torn |= window.hits.len() < 16;
            let rings = finder.find(window.hits).iter();
            found += rings.filter(|ring| window.span.holds(ring.time)).count();
        };
        for (source, hits) in sources.iter().enumerate() {
            merge.push(source, hits, at(Moment(1)), &mut look).unwrap();
        }
        merge.finish(&mut look);
        assert_eq!((found, torn), (1, false), "{shift}");
    }
}

#[test]
fn a_source_that_lies_is_not_heard() {
    let mut merge = Merge::new(options(4)).unwrap();
    let mut windows = Windows::new();
    for slot in 0..2000u64 {
        for source in 0..3 {
            let hit = stamped(slot * 256 + 100, source as u16);
            let now = at(Moment(slot * 1000));
            let _ = merge.push(source, &[hit], now, &mut collect(&mut windows));
        }
        // Hours ahead, and back at the beginning.
        let lie = if slot % 2 == 0 { 1 << 50 } else { 100 };
        let now = at(Moment(slot * 1000));
        let _ = merge.push(3, &[stamped(lie, 9)], now, &mut collect(&mut windows));
    }
    // It held nothing up for longer than its deadline.
    assert!(windows.len() > 1690, "{}", windows.len());
    merge.finish(&mut collect(&mut windows));
    let honest = windows
        .iter()
        .filter(|(_, hits)| hits.iter().filter(|hit| hit.1 < 3).count() == 3);
    assert_eq!(honest.count(), 2000, "{:?}", merge.counts());
    assert_eq!(merge.counts().jumps, 0);
}

/// Once it has said a time that is ahead, and come back, a source is where it says that it is.
#[test]
fn a_source_that_comes_back_from_a_stray_time_is_waited_for() {
    let mut merge = Merge::new(options(3)).unwrap();
    let mut seen = Vec::new();
    let mut look =
        |window: Window| seen.push((window.start / 256, window.hits.len(), window.sources));
    let stray = 30_000;
    for slot in 1000..3000u64 {
        let now = at(Moment(slot * 25));
        for source in [0, 1] {
            merge
                .push(source, &[stamped(slot * 256 + 99, 0)], now, &mut look)
                .unwrap();
        }
        // This one is slow, but its clock is right, apart from once.
        let time = if slot == 1500 { stray } else { slot - 100 };
        let _ = merge.push(2, &[stamped(time * 256 + 99, 0)], now, &mut look);
    }
    merge.finish(&mut look);
    let torn = |&&(slot, hits, sources): &&(u64, usize, u64)| {
        (1000..2900).contains(&slot) && (hits, sources) != (3, 0b111)
    };
    // The stray time has closed the windows of what it would have said next.
    let torn: Vec<u64> = seen.iter().filter(torn).map(|window| window.0).collect();
    assert_eq!((torn.first(), torn.last()), (Some(&1400), Some(&1496)));
    assert_eq!(seen.last(), Some(&(stray, 1, 0)));
    assert_eq!(merge.counts().late, 96);
}

#[test]
fn building_goes_on_after_a_burst_of_nonsense_and_after_a_new_beginning() {
    let mut merge = Merge::new(options(2)).unwrap();
    let mut count = 0;
    let mut whole = |window: Window| count += usize::from(window.hits.len() == 2);
    let mut time = 0;
    let mut run = |merge: &mut Merge, first: u64, slots: u64, whole: &mut dyn FnMut(Window)| {
        for slot in first..first + slots {
            time += 25;
            for source in 0..2 {
                let hit = stamped(slot * 256 + 99, 0);
                let _ = merge.push(source, &[hit], at(Moment(time)), &mut |window| {
                    whole(window);
                });
            }
        }
    };
    run(&mut merge, 1_000_000, 100, &mut whole);
    let nonsense: Vec<_> = (0..5000u64)
        .map(|i| stamped(i.wrapping_mul(0x9E37_79B9_7F4A_7C15), 1))
        .collect();
    for source in [0, 1, 7] {
        let _ = merge.push(source, &nonsense, at(Moment(2501)), &mut |_| ());
    }
    run(&mut merge, 1_000_100, 1000, &mut whole);
    // Back to the beginning of time.
    run(&mut merge, 3, 1000, &mut whole);
    merge.finish(&mut whole);
    assert!(count > 2000, "{count} {:?}", merge.counts());
    assert_eq!(merge.counts().unknown, 5000);
}

#[test]
fn a_full_ring_closes_the_windows_that_a_majority_has_passed() {
    let small = |sources| MergeOptions {
        capacity: 64,
        ..options(sources)
    };
    let mut merge = Merge::new(small(3)).unwrap();
    let mut windows = Windows::new();
    let first = [stamped(0, 0)];
    merge.push(1, &first, at(Moment(1)), &mut |_| ()).unwrap();
    for i in 0..1000 {
        for source in [0, 2] {
            let hits = [stamped(i * 256, 1)];
            merge
                .push(source, &hits, at(Moment(2)), &mut collect(&mut windows))
                .unwrap();
        }
    }
    merge.finish(&mut collect(&mut windows));
    assert_eq!(windows.len(), 1000);
    let counts = merge.counts();
    assert!((900..1000).contains(&counts.forced) && counts.taken == 2001);
    // One that is ahead of all others loses its own hits.
    let mut merge = Merge::new(small(3)).unwrap();
    for source in [0, 1, 2] {
        merge
            .push(source, &first, at(Moment(1)), &mut |_| ())
            .unwrap();
    }
    for i in 1..1000 {
        let hits = [stamped(i * 256, 1)];
        let _ = merge.push(0, &hits, at(Moment(2)), &mut |_| ());
    }
    let counts = merge.counts();
    assert!((930..940).contains(&counts.full) && counts.forced == 0);
    // A window of more hits than it holds.
    let mut merge = Merge::new(options(1)).unwrap();
    let many = vec![stamped(5, 2); MAX_EVENT_HITS + 10];
    merge.push(0, &many, at(Moment(1)), &mut |_| ()).unwrap();
    merge.finish(&mut |window| assert_eq!(window.hits.len(), MAX_EVENT_HITS));
    assert_eq!(merge.counts().overfull, 10);
}

#[test]
fn options_out_of_range_are_refused() {
    let refused = |options| Merge::new(options).err();
    let default = MergeOptions::default();
    assert_eq!(refused(default), None);
    assert_eq!(refused(options(0)), Some(MergeError::Sources));
    assert_eq!(refused(options(65)), Some(MergeError::Sources));
    let guard = MergeOptions {
        guard: 129,
        ..default
    };
    assert_eq!(refused(guard), Some(MergeError::Width));
    let small = MergeOptions {
        capacity: 63,
        ..default
    };
    assert_eq!(refused(small), Some(MergeError::Capacity));
}

#[test]
fn a_source_without_hits_says_how_far_it_is_and_holds_nothing_up() {
    let mut merge = Merge::new(options(2)).unwrap();
    let mut windows = Windows::new();
    let late = 1 << 24;
    merge
        .push(0, &[stamped(late + 700, 1)], at(Moment(1)), &mut |_| ())
        .unwrap();
    merge
        .push(
            0,
            &[stamped(late + 9000, 1)],
            at(Moment(1)),
            &mut collect(&mut windows),
        )
        .unwrap();
    assert!(windows.is_empty());
    merge
        .hear(1, late + 9000, Moment(2), &mut collect(&mut windows))
        .unwrap();
    assert_eq!(windows, [(late + 512, vec![(late + 700, 1)])]);
    // It may begin anew, further back than sources wait for each other.
    assert_eq!(merge.hear(1, 100, Moment(2), &mut |_| ()), Ok(()));
    assert!(merge.is_on_trial(1) && !merge.is_on_trial(0));
    assert_eq!(
        merge.hear(2, late + 9000, Moment(2), &mut |_| ()),
        Err(Refusal::Unknown)
    );
}

#[test]
fn a_window_knows_who_had_come_to_it_and_when_its_first_hit_came() {
    let options = options(3);
    let mut merge = Merge::new(options).unwrap();
    let mut seen = Vec::new();
    let mut look =
        |window: Window| seen.push((window.start / 256, window.sources, window.arrival.0));
    for (source, ns) in [(0, 50), (1, 20)] {
        let hits = [stamped(5 * 256 + 9, 1), stamped(40 * 256, 1)];
        merge
            .push(source, &hits, at(Moment(ns)), &mut look)
            .unwrap();
    }
    merge.tick(Moment(51 + options.deadline.0), &mut look);
    merge.finish(&mut look);
    // Source 2 has said nothing at all. A clock that has run for days counts as another does.
    assert_eq!(seen, [(5, 0b011, 20), (40, 0b011, 20)]);
    let mut merge = Merge::new(MergeOptions {
        sources: 1,
        ..options
    })
    .unwrap();
    let arrival = Tsc((7 << 48) + 3);
    let when = HitArrival {
        at: Moment(0),
        arrival: Tsc((7 << 48) - 10),
    };
    merge
        .push(0, &[stamped(300, 1)], when, &mut |_| ())
        .unwrap();
    merge
        .push(
            0,
            &[stamped(400, 1)],
            HitArrival { arrival, ..when },
            &mut |_| (),
        )
        .unwrap();
    merge.finish(&mut |window| assert_eq!(window.arrival, when.arrival));
}

#[test]
fn a_window_of_which_frames_are_missing_lacks_their_source() {
    let mut merge = Merge::new(options(2)).unwrap();
    let mut seen = Vec::new();
    let mut look = |window: Window| seen.push((window.start / 256, window.sources));
    for slot in 0..60 {
        let hits = [stamped(slot * 256, 1)];
        merge.push(0, &hits, at(Moment(slot)), &mut look).unwrap();
        match slot {
            // One frame is lost, and another comes late.
            20..25 | 40..45 => continue,
            25 | 45 => merge.missed(1, slot * 256, 1),
            _ => {}
        }
        merge.push(1, &hits, at(Moment(slot)), &mut look).unwrap();
        if slot == 45 {
            merge.found(1, 41 * 256);
            for slot in 40..45 {
                let hits = [stamped(slot * 256, 1)];
                merge.push(1, &hits, at(Moment(45)), &mut look).unwrap();
            }
        }
    }
    merge.finish(&mut look);
    let expected = |slot| if (20..25).contains(&slot) { 0b01 } else { 0b11 };
    assert_eq!(
        seen,
        (0..60)
            .map(|slot| (slot, expected(slot)))
            .collect::<Vec<_>>()
    );
}
