//! Sequence tracking of senders that start new spills together.

use super::stamped::StampedTracker;
use super::{Observation, SequenceCounts, Verdict};

/// Tracks the sequence numbers and time stamps of streams whose senders restart together at each
/// spill, as the boards of a detector do.
///
/// If a spill repeats the one before, numbers and time stamps included, its frames look like
/// copies. The majority of the senders decides:
///
/// - Repeated numbers from near zero on, with nothing new between, are undecided, and [no
///   copies](Observation::is_copy). Two of them claim a new spill; so does a restart to near zero,
///   or back in time.
/// - As soon as more than half of the streams claim one, those have restarted, and the next frame
///   of each other stream that is behind in number and time stamp belongs to the new spill,
///   whatever its number.
/// - A single stream has restarted when more numbers have repeated than any path would repeat.
///   Repeated numbers that do not start near zero are copies. With only one stream, a repetition
///   counts as a restart if it starts at least 64 frames back.
///
/// Memory is constant, and frames in order cost no more than with one stream alone.
#[derive(Debug, Clone)]
pub struct SpillTracker {
    each: Box<[StampedTracker]>,
}

impl SpillTracker {
    /// A tracker of so many streams without frames; each may start at any number.
    #[must_use]
    pub fn new(streams: usize) -> Self {
        Self {
            each: vec![StampedTracker::new(streams == 1); streams].into(),
        }
    }

    /// Classifies the next frame of a stream by its number and time stamp.
    ///
    /// # Panics
    /// The stream does not exist.
    #[inline]
    pub fn observe(&mut self, stream: usize, sequence: u32, stamp: u64) -> Observation {
        let seen = self.each[stream].observe(sequence, stamp);
        if seen.verdict != Verdict::InOrder && seen.may_begin() {
            return self.vote(stream, seen);
        }
        seen
    }

    /// The counters of a stream so far. Undecided frames are in none until the stream continues.
    ///
    /// # Panics
    /// The stream does not exist.
    #[must_use]
    pub fn counts(&self, stream: usize) -> SequenceCounts {
        self.each[stream].counts()
    }

    /// Restarts of a stream that most streams made with it; zero if it is the only one.
    ///
    /// # Panics
    /// The stream does not exist.
    #[must_use]
    pub fn spills(&self, stream: usize) -> u64 {
        if self.each.len() > 1 {
            self.each[stream].spills()
        } else {
            0
        }
    }

    #[cold]
    fn vote(&mut self, stream: usize, seen: Observation) -> Observation {
        let claims = self.each.iter().filter(|one| one.claims()).count();
        if 2 * claims <= self.each.len() || !self.each[stream].claims() {
            return seen;
        }
        self.each
            .iter_mut()
            .for_each(StampedTracker::begin_with_others);
        Observation {
            verdict: Verdict::Resync,
            ..seen
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOARDS: usize = 4;
    /// As in the tracker.
    const NEAR: u32 = 8;

    type Numbered = (u32, u64);

    /// Frames of a sender from number `first` and time stamp `start` on.
    fn frames(first: u32, start: u64) -> impl Iterator<Item = Numbered> {
        (0..100).map(move |n| (first + n, start + 10 * u64::from(n)))
    }

    /// A single stream.
    fn observe(frames: impl IntoIterator<Item = Numbered>) -> (SequenceCounts, Vec<Observation>) {
        let mut tracker = SpillTracker::new(1);
        let seen = frames
            .into_iter()
            .map(|(n, stamp)| tracker.observe(0, n, stamp));
        let seen = seen.collect();
        (tracker.counts(0), seen)
    }

    #[test]
    fn a_restart_with_new_time_stamps_costs_no_frame() {
        // Within the window, behind it, and far ahead.
        for (first, second) in [(0, 0), (50, 3), (90_000, 0), (0, 3 << 20)] {
            for start in [1000, 5_000_000] {
                let (counts, seen) = observe(frames(first, 0).chain(frames(second, start)));
                assert!(seen.iter().all(|seen| !seen.is_copy));
                assert_eq!(seen[100].verdict, Verdict::Resync, "{first} {second}");
                assert_eq!((counts.resyncs, counts.unique), (1, 200));
                assert_eq!((counts.missing, counts.duplicates), (0, 0));
            }
        }
    }

    /// Each spill is identical to the one before.
    #[test]
    fn spills_that_are_all_alike_cost_no_frame() {
        let (counts, seen) = observe(frames(0, 700).chain(frames(0, 700)).chain(frames(0, 700)));
        assert!(seen.iter().all(|seen| !seen.is_copy));
        assert_eq!((counts.resyncs, counts.duplicates), (2, 0));
        assert_eq!((counts.unique, counts.missing), (300, 0));
    }

    #[test]
    fn copies_are_copies() {
        let twice = frames(0, 0).flat_map(|frame| [frame, frame]).skip(2);
        let (counts, seen) = observe(twice);
        assert_eq!(seen.iter().filter(|seen| seen.is_copy).count(), 99);
        assert_eq!((counts.duplicates, counts.resyncs), (99, 0));
        // Later, and in any order.
        let again = frames(0, 0).chain([(40, 400), (7, 70), (99, 990), (8, 80)]);
        let (counts, seen) = observe(again);
        assert!(seen[100..].iter().all(|seen| seen.is_copy));
        assert_eq!(counts.resyncs, 0);
    }

    #[test]
    fn jumps_in_every_frame_are_counted() {
        let jumps = (0..100u64).map(|n| ((n as u32).wrapping_mul(3 << 20), 10 * n));
        let (counts, seen) = observe(jumps);
        assert!(seen.iter().all(|seen| !seen.is_copy));
        assert_eq!(counts.resyncs, 99);
        // A constant number.
        let (counts, seen) = observe((0..100).map(|n| (5, 10 * n)));
        assert!(seen.iter().all(|seen| !seen.is_copy));
        assert_eq!(counts.resyncs, 99);
    }

    #[test]
    fn a_late_frame_is_late() {
        let old = frames(0, 0).take(10);
        let long = (10..5000).map(|n| (n, 10 * u64::from(n)));
        let (_, seen) = observe(old.chain(long).chain([(3, 30), (5000, 50_000)]));
        assert_eq!(seen[5000].verdict, Verdict::Late);
        assert_eq!(seen[5001].verdict, Verdict::InOrder);
        let swapped = [(0, 0), (1, 10), (3, 30), (2, 20), (4, 40)];
        let (counts, seen) = observe(swapped);
        assert_eq!(seen[3].verdict, Verdict::Reordered);
        assert_eq!(counts.missing, 0);
    }

    /// A frame of a board.
    type Sent = (usize, Numbered);

    /// Identical spills, of so many frames of each board; the boards send by turns in this order.
    fn spills(count: usize, length: u32, order: [usize; BOARDS]) -> Vec<Sent> {
        let turn = move |n| order.map(|board| (board, (n, 700 + 10 * u64::from(n))));
        let spill = (0..length).flat_map(turn);
        (0..count).flat_map(|_| spill.clone()).collect()
    }

    /// Delays frames by up to so many places, in the order of each board.
    fn interleave(sent: &mut Vec<Sent>, places: usize, seed: u64) {
        let mut random = seed;
        let mut lag = move || {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize % (places + 1)
        };
        let mut last = [0; BOARDS];
        let mut coming: Vec<_> = sent
            .iter()
            .enumerate()
            .map(|(place, &(board, frame))| {
                last[board] = usize::max(last[board], place + lag());
                (last[board], (board, frame))
            })
            .collect();
        coming.sort_by_key(|&(at, _)| at);
        *sent = coming.into_iter().map(|(_, sent)| sent).collect();
    }

    fn observe_all(sent: &[Sent]) -> (SpillTracker, Vec<Observation>) {
        let mut tracker = SpillTracker::new(BOARDS);
        let seen = sent
            .iter()
            .map(|&(board, (n, stamp))| tracker.observe(board, n, stamp))
            .collect();
        (tracker, seen)
    }

    fn assert_no_copy(sent: &[Sent], what: &str) -> SpillTracker {
        let (tracker, seen) = observe_all(sent);
        for (place, (sent, seen)) in sent.iter().zip(&seen).enumerate() {
            assert!(!seen.is_copy, "{place}: {sent:?} is a copy: {what}");
        }
        for board in 0..BOARDS {
            assert_eq!(tracker.counts(board).duplicates, 0, "{board}: {what}");
        }
        tracker
    }

    fn order() -> impl Strategy<Value = [usize; BOARDS]> {
        Just([0, 1, 2, 3]).prop_shuffle()
    }

    /// Frames of one board that are lost in each spill: at the start, and at the end.
    fn losses() -> impl Strategy<Value = (u32, u32, u32)> {
        prop_oneof![
            (Just(5), 0..=1u32, Just(0)),
            (Just(5), Just(0), 0..=1u32),
            (Just(40), 0..=8u32, 0..=20u32),
            (Just(100), 0..=8u32, 0..=50u32),
            (Just(1000), 0..=8u32, 0..=300u32),
            (Just(3000), 0..=8u32, 0..=300u32),
        ]
    }

    #[test]
    fn spills_that_are_all_alike_are_seen_together() {
        for length in [5, 6, 40, 63, 64, 65, 100, 1000, 1024, 1025, 3000] {
            let sent = spills(10, length, [2, 0, 3, 1]);
            let tracker = assert_no_copy(&sent, &format!("{length}"));
            for board in 0..BOARDS {
                let counts = tracker.counts(board);
                assert_eq!((counts.resyncs, counts.missing), (9, 0), "{length}");
                assert_eq!(tracker.spills(board), 9, "{length}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        /// Any loss of one board at the edges of spills.
        #[test]
        fn no_frame_of_a_new_spill_is_a_copy(
            order in order(),
            board in 0..BOARDS,
            (length, first, last) in losses(),
            places in 0..6usize,
            seed: u64,
        ) {
            let mut sent = spills(10, length, order);
            sent.retain(|&(who, (n, _))| who != board || (first..length - last).contains(&n));
            interleave(&mut sent, places, seed);
            let what = format!("{order:?} {board} {length} {first} {last} {places} {seed}");
            assert_no_copy(&sent, &what);
        }

        /// In one spill only.
        #[test]
        fn no_frame_of_a_spill_is_a_copy_that_begins_late(
            order in order(),
            board in 0..BOARDS,
            (length, first, last) in losses(),
            spill in 0..10usize,
            places in 0..6usize,
            seed: u64,
        ) {
            let mut sent = spills(10, length, order);
            let of_spill = sent.len() / 10;
            let mut place = 0..;
            sent.retain(|&(who, (n, _))| {
                let here = place.next().is_some_and(|place: usize| place / of_spill == spill);
                !here || who != board || (first..length - last).contains(&n)
            });
            interleave(&mut sent, places, seed);
            let what = format!("{order:?} {board} {length} {first} {last} {spill} {places} {seed}");
            assert_no_copy(&sent, &what);
        }

        /// Each frame arrives twice, the second time after so many other frames of its board.
        #[test]
        fn copies_are_found_on_all_boards(
            order in order(),
            start in prop_oneof![Just(0u32), Just(8), any::<u32>()],
            later in 0..900usize,
        ) {
            let near = start < NEAR && later >= 3;
            let later = later * BOARDS;
            let turn = |n: u32| order.map(|board| (board, (start.wrapping_add(n), 10 * u64::from(n))));
            let all: Vec<Sent> = (0..2000).flat_map(turn).collect();
            let (mut sent, mut is_copy) = (Vec::new(), Vec::new());
            for (place, &frame) in all.iter().enumerate() {
                sent.push(frame);
                is_copy.push(false);
                if let Some(early) = place.checked_sub(later) {
                    sent.push(all[early]);
                    is_copy.push(true);
                }
            }
            let (tracker, seen) = observe_all(&sent);
            let wrong = seen.iter().zip(&is_copy).filter(|&(seen, &is)| seen.is_copy != is);
            // The first frame of each board may belong to a new spill.
            let undecided = if near { BOARDS } else { 0 };
            prop_assert_eq!(wrong.count(), undecided);
            for board in 0..BOARDS {
                prop_assert_eq!(tracker.counts(board).resyncs, 0);
                prop_assert_eq!(tracker.counts(board).missing, 0);
            }
        }
    }

    /// A duplicate within a spill is detected in each spill.
    #[test]
    fn copies_in_spills_that_are_all_alike_are_found() {
        for length in [5, 40, 100, 1000] {
            let sent = spills(10, length, [0, 1, 2, 3]);
            let twice: Vec<_> = sent.iter().flat_map(|&frame| [frame, frame]).collect();
            let (_, seen) = observe_all(&twice);
            for (place, seen) in seen.iter().enumerate() {
                assert_eq!(seen.is_copy, place % 2 == 1, "{length}: {:?}", twice[place]);
            }
        }
    }

    /// One board alone returns to old numbers and old time stamps, by 50 frames at most, after so
    /// many frames, and continues.
    fn one_board_repeats(length: u32) -> (SpillTracker, usize) {
        let mut sent = spills(1, length + 10, [0, 1, 2, 3]);
        let rest = sent.split_off(length as usize * BOARDS);
        let own = sent.iter().filter(|&&(board, _)| board == 1);
        let own: Vec<_> = own.copied().collect();
        let end = sent.len();
        sent.extend(&own[own.len().saturating_sub(50)..]);
        let again = sent.len();
        sent.extend(rest);
        let (tracker, seen) = observe_all(&sent);
        let copies = seen[end..again].iter().filter(|seen| seen.is_copy).count();
        for board in 0..BOARDS {
            let counts = tracker.counts(board);
            assert_eq!((tracker.spills(board), counts.missing), (0, 0), "{length}");
            assert!(board == 1 || (counts.duplicates, counts.resyncs) == (0, 0));
        }
        (tracker, copies)
    }

    #[test]
    fn one_board_alone_that_repeats_itself_sends_copies() {
        // More than any path repeats.
        let (tracker, copies) = one_board_repeats(200);
        let counts = tracker.counts(1);
        assert_eq!((copies, counts.duplicates, counts.resyncs), (31, 31, 1));
        // From zero on it might be the first in a new spill, until the stream continues.
        let (tracker, copies) = one_board_repeats(30);
        let counts = tracker.counts(1);
        assert_eq!((copies, counts.duplicates, counts.resyncs), (0, 30, 0));
        assert_eq!(counts.unique, 40);
        let (tracker, copies) = one_board_repeats(50);
        let counts = tracker.counts(1);
        assert_eq!((copies, counts.duplicates, counts.resyncs), (0, 0, 1));
    }

    /// A board whose numbers jump all the time does not make a majority out of half of the boards.
    #[test]
    fn restarts_of_one_board_are_no_spills() {
        let mut sent = spills(1, 500, [0, 1, 2, 3]);
        for (place, (board, (n, stamp))) in sent.iter_mut().enumerate() {
            if *board == 2 {
                (*n, *stamp) = ((place as u32 / 8) % 3, place as u64 % 7);
            }
        }
        let (tracker, _) = observe_all(&sent);
        for board in [0, 1, 3] {
            let counts = tracker.counts(board);
            assert_eq!(
                (counts.unique, counts.resyncs, counts.duplicates),
                (500, 0, 0)
            );
            assert_eq!(tracker.spills(board), 0);
        }
        assert!(tracker.counts(2).resyncs > 100);
    }

    /// Half of the boards are no majority; repeated numbers of one board are then copies.
    #[test]
    fn half_of_the_boards_are_no_majority() {
        let mut sent = spills(1, 100, [0, 1, 2, 3]);
        let again = sent.clone().into_iter().filter(|&(board, _)| board < 2);
        sent.extend(again.take(60));
        // A frame that is not a copy if a new spill has started.
        sent.push((2, (50, 1200)));
        let (tracker, seen) = observe_all(&sent);
        assert!(seen.last().is_some_and(|seen| seen.is_copy));
        assert_eq!(tracker.counts(2).resyncs, 0);
        // With a third board there is a majority.
        sent.pop();
        sent.extend([(3, (0, 700)), (3, (1, 710)), (2, (50, 1200))]);
        let (tracker, seen) = observe_all(&sent);
        assert!(!seen.iter().any(|seen| seen.is_copy));
        for board in 0..BOARDS {
            assert_eq!(
                (tracker.counts(board).resyncs, tracker.spills(board)),
                (1, 1)
            );
        }
    }
}
