//! Sequence numbers of frames that also bear time stamps: a restart is told from copies at once.

use super::sequence::{Sight, WINDOW};
use super::{SequenceCounts, SequenceTracker, Verdict};

/// Fewest frames of a spill: a number 0 that comes again before so many have come is a copy.
const SHORTEST: u32 = 64;

/// What a frame is by its sequence number and its time stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// As for the numbers alone, but for restarts.
    pub verdict: Verdict,
    /// It is a copy of a frame that has come: same number, same time stamp. A frame with number 0
    /// and a time stamp that has come before is not told so: it may begin a new spill, in which
    /// numbers and time stamps begin anew, and whoever knows the time of the other streams can say.
    pub is_copy: bool,
}

/// Follows the sequence numbers of one stream as [`SequenceTracker`] does, with the help of a time
/// stamp in each frame.
///
/// - A number that has come before, with another time stamp, is no copy: the sender has restarted.
/// - A number behind, or far away, with a time stamp newer than all before, is a restart, and not a
///   frame that comes late. So
///   a sender whose numbers jump in every frame is seen to do so.
/// - Numbers from 0 on that have come before, time stamps and all, and not just before, are a restart
///   from the second one on.
#[derive(Debug, Clone)]
pub struct StampedTracker {
    tracker: SequenceTracker,
    /// Time stamp of number n, at n % [`WINDOW`].
    stamps: Box<[u64; WINDOW as usize]>,
    newest: u64,
    /// Number 0 has come again, and nothing since.
    from_zero: bool,
}

impl Default for StampedTracker {
    fn default() -> Self {
        Self::new()
    }
}

impl StampedTracker {
    /// A stream of which nothing has come; it may start at any number.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tracker: SequenceTracker::new(),
            stamps: Box::new([0; WINDOW as usize]),
            newest: 0,
            from_zero: false,
        }
    }

    /// Takes number and time stamp of the next frame.
    #[inline]
    pub fn observe(&mut self, sequence: u32, stamp: u64) -> Observation {
        let place = (sequence % WINDOW) as usize;
        let mut is_copy = false;
        let verdict = match self.tracker.sight(sequence) {
            Sight::Seen if self.stamps[place] == stamp => {
                let verdict = self.again(sequence);
                is_copy = verdict == Verdict::Duplicate && !self.from_zero;
                verdict
            }
            Sight::Seen => self.restart(sequence, 1),
            Sight::Hole | Sight::Outside if stamp > self.newest => self.restart(sequence, 1),
            Sight::Next | Sight::Ahead | Sight::Hole | Sight::Outside => {
                self.from_zero = false;
                self.tracker.observe(sequence)
            }
        };
        if !is_copy {
            self.stamps[place] = stamp;
            self.newest = if verdict == Verdict::Resync {
                stamp
            } else {
                self.newest.max(stamp)
            };
        }
        Observation { verdict, is_copy }
    }

    /// The counts up to now.
    #[must_use]
    pub fn counts(&self) -> SequenceCounts {
        self.tracker.counts()
    }

    /// A number that has come before, with its time stamp.
    #[cold]
    fn again(&mut self, sequence: u32) -> Verdict {
        if self.from_zero && sequence == 1 {
            self.tracker.take_back_duplicate();
            return self.restart(0, 2);
        }
        self.from_zero = sequence == 0 && self.tracker.next_number() >= SHORTEST;
        self.tracker.observe(sequence)
    }

    #[cold]
    fn restart(&mut self, first: u32, frames: u32) -> Verdict {
        self.from_zero = false;
        self.tracker.begin_anew(first, frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of a sender from number `first` and time stamp `start` on.
    fn frames(first: u32, start: u64) -> impl Iterator<Item = (u32, u64)> {
        (0..100).map(move |n| (first + n, start + 10 * u64::from(n)))
    }

    fn observe(frames: impl IntoIterator<Item = (u32, u64)>) -> (StampedTracker, Vec<Observation>) {
        let mut tracker = StampedTracker::new();
        let seen = frames
            .into_iter()
            .map(|(n, stamp)| tracker.observe(n, stamp));
        let seen = seen.collect();
        (tracker, seen)
    }

    #[test]
    fn a_restart_with_new_time_stamps_costs_no_frame() {
        // Within the window, behind it, and far ahead.
        for (first, second) in [(0, 0), (50, 3), (90_000, 0), (0, 3 << 20)] {
            for start in [1000, 5_000_000] {
                let (tracker, seen) = observe(frames(first, 0).chain(frames(second, start)));
                assert!(seen.iter().all(|seen| !seen.is_copy));
                assert_eq!(seen[100].verdict, Verdict::Resync, "{first} {second}");
                let counts = tracker.counts();
                assert_eq!((counts.resyncs, counts.unique), (1, 200));
                assert_eq!((counts.missing, counts.duplicates), (0, 0));
            }
        }
    }

    /// Each spill is as the one before, to the last bit.
    #[test]
    fn spills_that_are_all_alike_cost_no_frame() {
        let (tracker, seen) = observe(frames(0, 700).chain(frames(0, 700)).chain(frames(0, 700)));
        assert!(seen.iter().all(|seen| !seen.is_copy));
        let counts = tracker.counts();
        assert_eq!((counts.resyncs, counts.duplicates), (2, 0));
    }

    #[test]
    fn copies_are_copies() {
        let twice = frames(0, 0).flat_map(|frame| [frame, frame]).skip(2);
        let (tracker, seen) = observe(twice);
        assert_eq!(seen.iter().filter(|seen| seen.is_copy).count(), 99);
        let counts = tracker.counts();
        assert_eq!((counts.duplicates, counts.resyncs), (99, 0));
        // Later, and in any order.
        let again = frames(0, 0).chain([(40, 400), (7, 70), (99, 990), (8, 80)]);
        let (tracker, seen) = observe(again);
        assert!(seen[100..].iter().all(|seen| seen.is_copy));
        assert_eq!(tracker.counts().resyncs, 0);
    }

    #[test]
    fn jumps_in_every_frame_are_counted() {
        let jumps = (0..100u64).map(|n| ((n as u32).wrapping_mul(3 << 20), 10 * n));
        let (tracker, seen) = observe(jumps);
        assert!(seen.iter().all(|seen| !seen.is_copy));
        assert_eq!(tracker.counts().resyncs, 99);
        // A number that stands still.
        let (tracker, seen) = observe((0..100).map(|n| (5, 10 * n)));
        assert!(seen.iter().all(|seen| !seen.is_copy));
        assert_eq!(tracker.counts().resyncs, 99);
    }

    #[test]
    fn a_late_frame_is_late() {
        let old = frames(0, 0).take(10);
        let long = (10..5000).map(|n| (n, 10 * u64::from(n)));
        let (_, seen) = observe(old.chain(long).chain([(3, 30), (5000, 50_000)]));
        assert_eq!(seen[5000].verdict, Verdict::Late);
        assert_eq!(seen[5001].verdict, Verdict::InOrder);
        let swapped = [(0, 0), (1, 10), (3, 30), (2, 20), (4, 40)];
        let (tracker, seen) = observe(swapped);
        assert_eq!(seen[3].verdict, Verdict::Reordered);
        assert_eq!(tracker.counts().missing, 0);
    }
}
