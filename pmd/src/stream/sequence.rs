//! What a stream's sequence numbers say: lost, twice, out of order, late, started anew.

/// How far back, in frames, a frame is still told apart as reordered or duplicate.
pub const WINDOW: u32 = 1024;

/// From this many frames ahead a number is not a loss but one from behind: an outage of a second
/// at a million frames a second is still counted, a restart from 0 is not four thousand million
/// missing frames.
pub const MAX_GAP: u32 = 1 << 20;

/// Frames outside the window, numbered one by one and with no other between them, that prove a
/// restart. RFC 3550 appendix A.1 takes two; but two late neighbours do occur, and then it would
/// be the live stream that looks restarted.
const RESTART_RUN: u32 = 4;

/// Frames that have come before, numbered one by one and with no other between them, that prove a
/// restart within the window. No path repeats so many in a row and sends nothing new.
const ECHO_RUN: u32 = 32;

/// What a frame is by its sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The next one, or the very first.
    InOrder,
    /// So many before it have not come, up to now.
    Gap(u32),
    /// Older than the newest, and new: it fills a hole.
    Reordered,
    /// It has come before.
    Duplicate,
    /// Older than the window.
    Late,
    /// The last of a run that proves that the sender started anew; the others of the run were
    /// [`Late`](Self::Late).
    Resync,
}

/// Where a number is, as seen from those that have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// The next one, or the very first.
    Next,
    /// It has come, within the window.
    Seen,
    /// A little ahead.
    Ahead,
    /// Behind the newest, within the window, and it has not come.
    Hole,
    /// Behind the window, or too far ahead.
    Outside,
}

/// The counts of one stream.
///
/// `unique + missing` is the number of frames that the sender numbered, from the lowest number
/// seen to the highest, summed over its restarts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SequenceCounts {
    /// Frames that came, each counted once.
    pub unique: u64,
    /// Frames that never came.
    pub missing: u64,
    /// Times that the stream jumped ahead.
    pub gaps: u64,
    /// Frames that came after a later one, within the window.
    pub reordered: u64,
    /// Second copies, seen within the window.
    pub duplicates: u64,
    /// Frames older than the window. A late frame fills a hole behind the window, so it is no
    /// longer missing, but unique. It may as well be a second copy: nobody remembers. Where
    /// there is no such hole, it changes neither count.
    pub late: u64,
    /// Restarts of the sender.
    pub resyncs: u64,
}

/// Follows the 32-bit sequence numbers of one stream through wraps, losses and restarts.
///
/// A sender that restarts within [`WINDOW`] frames of where it began looks like one that sends
/// duplicates, for the first 31 frames.
#[derive(Debug, Clone)]
pub struct SequenceTracker {
    /// Bit n % 1024: number n has come. Holds for the last [`WINDOW`] numbers before `next`.
    seen: [u64; WINDOW as usize / 64],
    /// The number after the newest.
    next: u32,
    /// How many numbers of the window are of this stream since it started: fewer than
    /// [`WINDOW`] at first; zero before the first frame.
    span: u32,
    /// The last run of numbers outside the window: how many, and what would continue it. It is
    /// not counted until it ends, or proves a restart.
    run: u32,
    run_next: u32,
    /// The run is of duplicates, which are counted as they come, and not of numbers outside.
    echoing: bool,
    counts: SequenceCounts,
}

impl Default for SequenceTracker {
    fn default() -> Self {
        Self::new()
    }
}

impl SequenceTracker {
    /// A stream of which nothing has come; it may start at any number.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            seen: [0; WINDOW as usize / 64],
            next: 0,
            span: 0,
            run: 0,
            run_next: 0,
            echoing: false,
            counts: SequenceCounts {
                unique: 0,
                missing: 0,
                gaps: 0,
                reordered: 0,
                duplicates: 0,
                late: 0,
                resyncs: 0,
            },
        }
    }

    /// Takes the number of the next frame.
    #[inline]
    pub fn observe(&mut self, sequence: u32) -> Verdict {
        let ahead = sequence.wrapping_sub(self.next);
        if ahead == 0 && self.run == 0 {
            self.advance();
            return Verdict::InOrder;
        }
        self.out_of_order(sequence, ahead)
    }

    /// The counts up to now.
    #[must_use]
    pub fn counts(&self) -> SequenceCounts {
        let mut counts = self.counts;
        if self.run != 0 && !self.echoing {
            let holes = self.span - self.seen.iter().map(|word| word.count_ones()).sum::<u32>();
            let behind_window = counts.missing - u64::from(holes);
            let filled = behind_window.min(u64::from(self.run));
            counts.missing -= filled;
            counts.unique += filled;
            counts.late += u64::from(self.run);
        }
        counts
    }

    /// Where a number is.
    #[inline]
    pub(super) fn sight(&self, sequence: u32) -> Sight {
        let ahead = sequence.wrapping_sub(self.next);
        if ahead == 0 || self.span == 0 {
            Sight::Next
        } else if ahead < MAX_GAP {
            Sight::Ahead
        } else if ahead.wrapping_neg() > WINDOW {
            Sight::Outside
        } else if self.has(sequence) {
            Sight::Seen
        } else {
            Sight::Hole
        }
    }

    /// The number after the newest.
    pub(super) fn next_number(&self) -> u32 {
        self.next
    }

    /// Whether a number is older than the first that came, since the stream started.
    pub(super) fn is_before_all(&self, sequence: u32) -> bool {
        self.next.wrapping_sub(sequence) > self.span
    }

    /// Adds frames that have been found to be copies, whatever their numbers.
    pub(super) fn count_duplicates(&mut self, frames: u32) {
        self.counts.duplicates += u64::from(frames);
    }

    #[inline(never)]
    fn out_of_order(&mut self, sequence: u32, ahead: u32) -> Verdict {
        if self.span == 0 {
            self.next = sequence;
            self.advance();
            return Verdict::InOrder;
        }
        let behind = ahead.wrapping_neg();
        if ahead >= MAX_GAP && behind > WINDOW {
            return self.outside(sequence);
        }
        if ahead >= MAX_GAP && self.has(sequence) {
            return self.echo(sequence);
        }
        self.end_run();
        if ahead == 0 {
            self.advance();
            Verdict::InOrder
        } else if ahead < MAX_GAP {
            self.skip(ahead);
            self.advance();
            Verdict::Gap(ahead)
        } else {
            self.inside(sequence, behind)
        }
    }

    /// `next` has come.
    #[inline]
    fn advance(&mut self) {
        self.set(self.next);
        self.next = self.next.wrapping_add(1);
        self.span = (self.span + 1).min(WINDOW);
        self.counts.unique += 1;
    }

    /// `n` numbers from `next` on have not come.
    fn skip(&mut self, n: u32) {
        // what leaves the window unseen stays missing
        for i in 0..n.min(WINDOW) {
            let (word, bit) = place(self.next.wrapping_add(i));
            self.seen[word] &= !bit;
        }
        self.next = self.next.wrapping_add(n);
        self.span = (self.span + n).min(WINDOW);
        self.counts.missing += u64::from(n);
        self.counts.gaps += 1;
    }

    /// A number within the window that has come before.
    fn echo(&mut self, sequence: u32) -> Verdict {
        if !self.echoing || sequence != self.run_next {
            self.end_run();
        }
        self.echoing = true;
        self.run += 1;
        self.run_next = sequence.wrapping_add(1);
        if self.run < ECHO_RUN {
            self.counts.duplicates += 1;
            return Verdict::Duplicate;
        }
        self.restart(sequence, 1)
    }

    /// A number within the window, `behind` before `next`, that has not come before.
    fn inside(&mut self, sequence: u32, behind: u32) -> Verdict {
        if behind > self.span {
            // older than the first that came: the stream began earlier, and what lies between
            // was sent
            self.counts.missing += u64::from(behind - self.span);
            self.span = behind;
        }
        self.set(sequence);
        self.counts.missing -= 1;
        self.counts.unique += 1;
        self.counts.reordered += 1;
        Verdict::Reordered
    }

    /// A number that is far behind, or too far ahead to be anything else.
    fn outside(&mut self, sequence: u32) -> Verdict {
        if self.echoing || sequence != self.run_next {
            self.end_run();
        }
        self.run += 1;
        self.run_next = sequence.wrapping_add(1);
        if self.run < RESTART_RUN {
            return Verdict::Late;
        }
        self.restart(self.run_next.wrapping_sub(self.run), self.run)
    }

    /// As other facts prove, the sender began anew, and `n` of its frames from number `first` on have
    /// come.
    pub(super) fn begin_anew(&mut self, first: u32, n: u32) -> Verdict {
        self.end_run();
        self.restart(first, n)
    }

    /// The sender began anew, and `n` of its frames from number `first` on have come.
    fn restart(&mut self, first: u32, n: u32) -> Verdict {
        self.seen = [0; WINDOW as usize / 64];
        self.span = 0;
        self.next = first;
        for _ in 0..n {
            self.advance();
        }
        self.run = 0;
        self.echoing = false;
        self.counts.resyncs += 1;
        Verdict::Resync
    }

    /// The run was no restart: numbers outside the window were late, duplicates are counted.
    fn end_run(&mut self) {
        self.counts = self.counts();
        self.run = 0;
        self.echoing = false;
    }

    /// Whether a number of the window has come.
    fn has(&self, sequence: u32) -> bool {
        let (word, bit) = place(sequence);
        self.seen[word] & bit != 0
    }

    #[inline]
    fn set(&mut self, sequence: u32) {
        let (word, bit) = place(sequence);
        self.seen[word] |= bit;
    }
}

/// Word and bit of a number in the window.
#[inline]
const fn place(sequence: u32) -> (usize, u64) {
    ((sequence % WINDOW / 64) as usize, 1 << (sequence % 64))
}

#[cfg(test)]
mod tests {
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
        // Something new between the duplicates, and it is no restart.
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

    /// What became of a frame on its way.
    #[derive(Debug, Clone)]
    enum Fate {
        Sent,
        Lost,
        Delayed(u32),
        Twice(u32),
        Outage(u32),
    }

    fn fate() -> impl Strategy<Value = Fate> {
        prop_oneof![
            12 => Just(Fate::Sent),
            2 => Just(Fate::Lost),
            2 => (1u32..40).prop_map(Fate::Delayed),
            1 => (1000u32..1500).prop_map(Fate::Delayed),
            1 => (0u32..40).prop_map(Fate::Twice),
            1 => (900u32..1100).prop_map(Fate::Outage),
        ]
    }

    /// The tracker with 64-bit numbers and a set that forgets nothing.
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
            fates in proptest::collection::vec(fate(), 1..3000),
        ) {
            let first = if near_wrap { u32::MAX - first % 2000 } else { first };
            // (time of arrival, number): a delay of n frames arrives behind the n-th next
            let mut arrivals = Vec::new();
            let mut n = 1u64 << 32 | u64::from(first);
            // the first frame comes first: one that is late from before it is nobody's hole
            for fate in std::iter::once(Fate::Sent).chain(fates) {
                match fate {
                    Fate::Sent => arrivals.push((n, n)),
                    Fate::Lost => (),
                    Fate::Delayed(delay) => {
                        // never two neighbours far behind: a run of them may be a restart
                        let delay = if delay < 100 { delay } else { delay * (1 - n as u32 % 2) };
                        arrivals.push((n + u64::from(delay), n));
                    }
                    Fate::Twice(delay) => arrivals.extend([(n, n), (n + u64::from(delay), n)]),
                    Fate::Outage(len) => n += u64::from(len),
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
                // each frame is counted once, as new or as a copy; a late one that fills no
                // hole is neither
                let copies = counts.duplicates + counts.late;
                prop_assert!(counts.unique <= i as u64 + 1);
                prop_assert!(counts.unique + copies > i as u64);
            }
        }
    }
}
