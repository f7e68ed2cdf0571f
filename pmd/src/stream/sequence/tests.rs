//! Sequence tracking compared with a model of unbounded memory.

use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

fn observe_all(numbers: impl IntoIterator<Item = u32>) -> (SequenceTracker, Vec<Verdict>) {
    let mut tracker = SequenceTracker::new();
    let verdicts = numbers.into_iter().map(|n| tracker.observe(n)).collect();
    (tracker, verdicts)
}

#[test]
fn a_sender_that_restarts_soon_is_heard_again() {
    let (tracker, verdicts) = observe_all((0..100).chain(0..100));
    let verdict = |v| verdicts[100..].iter().filter(|&&got| got == v).count();
    assert_eq!(verdict(Verdict::Duplicate), 31);
    assert_eq!(
        (verdict(Verdict::Resync), verdict(Verdict::InOrder)),
        (1, 68)
    );
    let counts = tracker.counts();
    assert_eq!((counts.unique, counts.duplicates), (169, 31));
    assert_eq!((counts.resyncs, counts.missing), (1, 0));
    // A new frame between the duplicates: no restart.
    let (tracker, _) = observe_all((0..31).chain(0..31).chain([31]).chain(0..31));
    assert_eq!(
        (tracker.counts().duplicates, tracker.counts().resyncs),
        (62, 0)
    );
}

#[test]
fn each_verdict() {
    let (tracker, verdicts) = observe_all([10, 11, 14, 12, 12, 9, 10, 15]);
    assert_eq!(
        verdicts,
        [
            Verdict::InOrder,
            Verdict::InOrder,
            Verdict::Gap(2),
            Verdict::Reordered,
            Verdict::Duplicate,
            Verdict::Reordered, // before the first: the stream began at 9
            Verdict::Duplicate,
            Verdict::InOrder,
        ]
    );
    let expected = SequenceCounts {
        unique: 6,
        missing: 1,
        gaps: 1,
        reordered: 2,
        duplicates: 2,
        ..SequenceCounts::default()
    };
    assert_eq!(tracker.counts(), expected);
}

#[test]
fn the_first_number_may_be_any() {
    for first in [0, 1, u32::MAX, 1 << 31, MAX_GAP, WINDOW] {
        let (tracker, verdicts) = observe_all([first, first.wrapping_add(1)]);
        assert_eq!(verdicts, [Verdict::InOrder; 2], "{first}");
        assert_eq!(tracker.counts().missing, 0, "{first}");
    }
}

#[test]
fn a_stream_that_begins_before_its_first_frame() {
    let (tracker, verdicts) = observe_all([100, 97]);
    assert_eq!(verdicts[1], Verdict::Reordered);
    assert_eq!((tracker.counts().unique, tracker.counts().missing), (2, 2));
}

#[test]
fn the_edges_of_the_window() {
    let (mut tracker, _) = observe_all((0..=5000).filter(|n| *n != 3977 && *n != 3976));
    assert_eq!(tracker.observe(3977), Verdict::Reordered);
    assert_eq!(tracker.counts().missing, 1);
    assert_eq!(tracker.observe(3976), Verdict::Late);
    assert_eq!(tracker.counts().missing, 0, "it did come");
    assert_eq!(tracker.observe(3976), Verdict::Late);
    let counts = tracker.counts();
    assert_eq!((counts.unique, counts.missing, counts.late), (5001, 0, 2));
}

#[test]
fn a_long_outage_is_counted() {
    let (tracker, verdicts) = observe_all([0, MAX_GAP, MAX_GAP + 1]);
    assert_eq!(verdicts[1], Verdict::Gap(MAX_GAP - 1));
    assert_eq!(tracker.counts().missing, u64::from(MAX_GAP - 1));
    assert_eq!(tracker.counts().unique, 3);
}

#[test]
fn a_restart_is_not_missing_frames() {
    for (old, new) in [
        (5000, 0),
        (0, 3 << 20),
        (u32::MAX - 9, 1 << 30),
        (2_000_000, 7),
    ] {
        let numbers = |from: u32| (0..2000).map(move |n| from.wrapping_add(n));
        let (tracker, verdicts) = observe_all(numbers(old).chain(numbers(new)));
        assert_eq!(
            verdicts[2000..2004],
            [Verdict::Late, Verdict::Late, Verdict::Late, Verdict::Resync]
        );
        assert!(verdicts[2004..].iter().all(|v| *v == Verdict::InOrder));
        let expected = SequenceCounts {
            unique: 4000,
            resyncs: 1,
            ..SequenceCounts::default()
        };
        assert_eq!(tracker.counts(), expected, "{old} to {new}");
    }
}

#[test]
fn holes_of_before_a_restart_stay_missing() {
    let old = (0..3000).filter(|n| n % 100 != 50);
    let (mut tracker, _) = observe_all(old.chain(1_000_000_000..1_000_000_100));
    let counts = tracker.counts();
    assert_eq!(
        (counts.unique, counts.missing, counts.resyncs),
        (2970 + 100, 30, 1)
    );
    assert_eq!(counts.late, 0, "the run was the restart");
    assert_eq!(tracker.observe(999_999_998), Verdict::Reordered);
    assert_eq!(tracker.counts().missing, 31);
}

#[test]
fn one_wild_number_does_not_upset_the_stream() {
    let (tracker, verdicts) = observe_all((0..100).chain([1 << 31]).chain(100..200));
    assert_eq!(verdicts[100], Verdict::Late);
    assert!(verdicts[101..].iter().all(|v| *v == Verdict::InOrder));
    let expected = SequenceCounts {
        unique: 200,
        late: 1,
        ..SequenceCounts::default()
    };
    assert_eq!(tracker.counts(), expected);
}

#[test]
fn late_frames_among_live_ones_are_no_restart() {
    let numbers = (0..100).flat_map(|n| [5000 + n, 100 + n]);
    let (tracker, verdicts) = observe_all((0..5000).chain(numbers));
    assert!(!verdicts.contains(&Verdict::Resync));
    let expected = SequenceCounts {
        unique: 5100,
        late: 100,
        ..SequenceCounts::default()
    };
    assert_eq!(tracker.counts(), expected);
}

/// Outcome of a frame on the path.
#[derive(Debug, Clone)]
enum Outcome {
    Sent,
    Lost,
    Delayed(u32),
    Twice(u32),
    Outage(u32),
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        12 => Just(Outcome::Sent),
        2 => Just(Outcome::Lost),
        2 => (1u32..40).prop_map(Outcome::Delayed),
        1 => (1000u32..1500).prop_map(Outcome::Delayed),
        1 => (0u32..40).prop_map(Outcome::Twice),
        1 => (900u32..1100).prop_map(Outcome::Outage),
    ]
}

/// The tracker with 64-bit numbers and a set of unbounded size.
#[derive(Default)]
struct Model {
    seen: HashSet<u64>,
    range: Option<(u64, u64)>,
}

impl Model {
    fn observe(&mut self, n: u64) -> Verdict {
        let Some((low, high)) = self.range else {
            self.range = Some((n, n));
            self.seen.insert(n);
            return Verdict::InOrder;
        };
        let verdict = if n == high + 1 {
            Verdict::InOrder
        } else if n > high {
            Verdict::Gap((n - high - 1) as u32)
        } else if high + 1 - n > u64::from(WINDOW) {
            Verdict::Late
        } else if self.seen.contains(&n) {
            Verdict::Duplicate
        } else {
            Verdict::Reordered
        };
        self.range = Some((low.min(n), high.max(n)));
        self.seen.insert(n);
        verdict
    }
}

proptest! {
    #[test]
    fn equals_a_model_that_forgets_nothing(
        first: u32,
        near_wrap: bool,
        outcomes in proptest::collection::vec(outcome(), 1..3000),
    ) {
        let first = if near_wrap { u32::MAX - first % 2000 } else { first };
        // (time of arrival, number): a delay of n frames arrives behind the n-th next
        let mut arrivals = Vec::new();
        let mut n = 1u64 << 32 | u64::from(first);
        // the first frame arrives first: a late one from before it would fill no hole
        for outcome in std::iter::once(Outcome::Sent).chain(outcomes) {
            match outcome {
                Outcome::Sent => arrivals.push((n, n)),
                Outcome::Lost => (),
                Outcome::Delayed(delay) => {
                    // never two consecutive frames far behind: a run of them may be a restart
                    let delay = if delay < 100 { delay } else { delay * (1 - n as u32 % 2) };
                    arrivals.push((n + u64::from(delay), n));
                }
                Outcome::Twice(delay) => arrivals.extend([(n, n), (n + u64::from(delay), n)]),
                Outcome::Outage(len) => n += u64::from(len),
            }
            n += 1;
        }
        arrivals.sort_by_key(|&(time, n)| (time, n % 7));

        let mut tracker = SequenceTracker::new();
        let mut model = Model::default();
        let mut expected = SequenceCounts::default();
        for (_, n) in arrivals {
            let verdict = model.observe(n);
            prop_assert_eq!(tracker.observe(n as u32), verdict, "number {}", n);
            match verdict {
                Verdict::InOrder => (),
                Verdict::Gap(_) => expected.gaps += 1,
                Verdict::Reordered => expected.reordered += 1,
                Verdict::Duplicate => expected.duplicates += 1,
                Verdict::Late => expected.late += 1,
                Verdict::Resync => unreachable!(),
            }
            let (low, high) = model.range.unwrap_or_default();
            expected.unique = model.seen.len() as u64;
            expected.missing = high - low + 1 - expected.unique;
            prop_assert_eq!(tracker.counts(), expected);
        }
    }

    #[test]
    fn any_numbers_are_survived(
        numbers in proptest::collection::vec(
            prop_oneof![any::<u32>(), 0u32..3000, (u32::MAX - 3000)..=u32::MAX], 0..500),
    ) {
        let mut tracker = SequenceTracker::new();
        for (i, n) in numbers.into_iter().enumerate() {
            tracker.observe(n);
            let counts = tracker.counts();
            // each frame is counted once, as new or as a copy; a late one that fills no hole is
            // neither
            let copies = counts.duplicates + counts.late;
            prop_assert!(counts.unique <= i as u64 + 1);
            prop_assert!(counts.unique + copies > i as u64);
        }
    }
}
