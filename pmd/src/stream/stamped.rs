//! Sequence numbers of frames that also bear time stamps: a restart is told from copies at once.

use super::sequence::{Sight, WINDOW};
use super::{SequenceCounts, SequenceTracker, Verdict};

/// Numbers below this are near zero, where a spill begins of which frames have been lost; so many
/// frames may be lost on end while it is not yet believed.
const NEAR: u32 = 8;

/// What comes again is no copy of a frame that is fewer than so many frames ago, but maybe the
/// beginning of a spill. Few, as the last frames of a short spill may have been lost.
const LEAST: u32 = 4;

/// The same for a sender without others that could confirm it; and after so many frames it is asked
/// once more whether what comes again is a new spill, if it was not.
const LEAST_ALONE: u32 = 64;

/// Frames that have come before, from near zero on and with nothing new between, that prove a restart
/// without others. No path repeats so many and sends nothing new.
const PROOF: u32 = 32;

/// How many frames of before a sender may still send when others have begun anew.
const OVERHANG: u32 = 256;

/// What a frame is by its sequence number and its time stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// As for the numbers alone, but for restarts.
    pub verdict: Verdict,
    /// It is a copy of a frame that has come: same number, same time stamp. A frame that may begin a
    /// new spill, in which numbers and time stamps begin anew, is no copy: the event builder judges it
    /// by the time of the other streams.
    pub is_copy: bool,
}

impl Observation {
    /// By the numbers it is a copy, and by its place it may be of a new spill.
    const UNDECIDED: Self = Self {
        verdict: Verdict::Duplicate,
        is_copy: false,
    };

    /// Whether it says that its sender has begun anew, or may have.
    #[inline]
    pub(super) fn may_begin(self) -> bool {
        self.verdict == Verdict::Resync || self == Self::UNDECIDED
    }
}

/// Follows the sequence numbers of one stream as [`SequenceTracker`] does, with the help of a time
/// stamp in each frame.
///
/// - A number that has come before, with another time stamp, is no copy: the sender has restarted.
/// - A number behind, or far away, with a time stamp newer than all before, is a restart, and not a
///   frame that comes late. So a sender whose numbers jump in every frame is seen to do so.
/// - Numbers from near zero on that have come before, time stamps and all, with nothing new between,
///   are undecided: copies, or a new spill that is as the one before. They are no copies, and a
///   restart once [`SpillTracker`](super::SpillTracker) believes it, or when there are many.
#[derive(Debug, Clone)]
pub(super) struct StampedTracker {
    tracker: SequenceTracker,
    /// Time stamp of number n, at n % [`WINDOW`].
    stamps: Box<[u64; WINDOW as usize]>,
    newest: u64,
    /// How old a frame is at least that comes again in a new spill, in frames.
    least: u32,
    /// How many frames of a new spill may be lost on end while it is not yet believed, and one more.
    near: u32,
    undecided: Undecided,
    /// The number that was next when frames were last undecided.
    tried: Option<u32>,
    /// It has begun anew of its own accord: the number from which on.
    begun: Option<u32>,
    /// Others have begun anew, and it has not: the number that was next.
    expected: Option<u32>,
    spills: u64,
}

/// Frames from near zero on that have come before, and nothing since.
#[derive(Debug, Clone, Copy, Default)]
struct Undecided {
    frames: u32,
    /// The number that was next in the stream.
    instead: u32,
    /// The first of those without a gap up to the last one.
    first: u32,
    next: u32,
    /// Bit n: number n is among them, and had not come before.
    new: u32,
}

impl Undecided {
    /// The stream has gone on: they were copies, or the first frames of the stream, which came late.
    fn were_of_before(self, tracker: &mut SequenceTracker) {
        tracker.count_duplicates(self.frames - self.new.count_ones());
        for number in (0..u32::BITS).filter(|n| self.new >> n & 1 == 1) {
            tracker.observe(number);
        }
    }
}

impl StampedTracker {
    /// A stream of which nothing has come; it may start at any number. `alone`: it has no others
    /// that begin anew with it.
    pub(super) fn new(alone: bool) -> Self {
        Self {
            tracker: SequenceTracker::new(),
            stamps: Box::new([0; WINDOW as usize]),
            newest: 0,
            least: if alone { LEAST_ALONE } else { LEAST },
            near: if alone { 1 } else { NEAR },
            undecided: Undecided::default(),
            tried: None,
            begun: None,
            expected: None,
            spills: 0,
        }
    }

    /// Takes number and time stamp of the next frame.
    #[inline]
    pub(super) fn observe(&mut self, sequence: u32, stamp: u64) -> Observation {
        let sight = self.tracker.sight(sequence);
        if !matches!(sight, Sight::Next | Sight::Ahead) {
            return self.behind(sequence, stamp, sight);
        }
        let verdict = self.tracker.observe(sequence);
        self.note(sequence, stamp);
        Observation {
            verdict,
            is_copy: false,
        }
    }

    /// The counts up to now. What came behind frames that were undecided tells what they were.
    pub(super) fn counts(&self) -> SequenceCounts {
        let mut tracker = self.tracker.clone();
        if !self.is_waiting() {
            self.undecided.were_of_before(&mut tracker);
        }
        tracker.counts()
    }

    /// Restarts that most others have made as well.
    pub(super) fn spills(&self) -> u64 {
        self.spills
    }

    /// Whether it says that a new spill has begun: one frame is not enough, as a copy of a late one
    /// looks so.
    pub(super) fn claims(&self) -> bool {
        self.undecided.frames > 1 && self.is_waiting() || self.has_begun()
    }

    /// Whether frames are undecided: the stream has not gone on since.
    fn is_waiting(&self) -> bool {
        self.undecided.frames > 0 && self.undecided.instead == self.tracker.next_number()
    }

    /// Whether it has begun anew of late, of its own accord.
    fn has_begun(&self) -> bool {
        let since = |at| self.tracker.next_number().wrapping_sub(at);
        self.begun.is_some_and(|at| since(at) <= WINDOW)
    }

    /// Most streams say that a new spill has begun.
    pub(super) fn begin_with_others(&mut self) {
        if self.is_waiting() {
            self.confirm();
        }
        if self.has_begun() {
            self.spills += 1;
        } else {
            self.expected = Some(self.tracker.next_number());
        }
        self.begun = None;
    }

    #[inline]
    fn note(&mut self, sequence: u32, stamp: u64) {
        self.stamps[place(sequence)] = stamp;
        self.newest = self.newest.max(stamp);
    }

    /// A number that is not ahead.
    #[cold]
    #[inline(never)]
    fn behind(&mut self, sequence: u32, stamp: u64, sight: Sight) -> Observation {
        let is_same = sight == Sight::Seen && self.stamps[place(sequence)] == stamp;
        let is_new =
            sight == Sight::Seen && !is_same || sight != Sight::Seen && stamp > self.newest;
        let was_expected = self.is_expected();
        // A frame of before may still fill a hole near the end.
        if is_new || was_expected && (is_same || self.is_in_first_half(sequence)) {
            return self.restart(sequence, stamp, was_expected);
        }
        let may_begin = is_same || sight == Sight::Hole && self.tracker.is_before_all(sequence);
        if may_begin && self.is_undecided(sequence) {
            return self.wait(sequence, stamp, is_same);
        }
        let verdict = self.tracker.observe(sequence);
        let is_copy = verdict == Verdict::Duplicate;
        if verdict == Verdict::Resync {
            self.begun_anew(sequence, stamp, was_expected);
        } else if !is_copy {
            self.note(sequence, stamp);
        }
        Observation { verdict, is_copy }
    }

    /// Whether others have begun anew just now.
    fn is_expected(&self) -> bool {
        let since = |at| self.tracker.next_number().wrapping_sub(at);
        self.expected.is_some_and(|at| since(at) <= OVERHANG)
    }

    fn is_in_first_half(&self, sequence: u32) -> bool {
        sequence < self.tracker.next_number() / 2
    }

    /// Whether a number that has come before may be of a new spill.
    fn is_undecided(&self, sequence: u32) -> bool {
        if self.is_waiting() {
            return sequence.wrapping_sub(self.undecided.next) < self.near;
        }
        let since = |at| self.tracker.next_number().wrapping_sub(at);
        let again = |at| since(at) >= LEAST_ALONE;
        sequence < self.near && since(sequence) >= self.least && self.tried.is_none_or(again)
    }

    /// A frame that may be of a new spill.
    fn wait(&mut self, sequence: u32, stamp: u64, has_come: bool) -> Observation {
        if !self.is_waiting() {
            self.end_waiting();
            self.undecided.instead = self.tracker.next_number();
            self.tried = Some(self.undecided.instead);
        }
        let undecided = &mut self.undecided;
        if undecided.frames == 0 || sequence != undecided.next {
            undecided.first = sequence;
        }
        undecided.next = sequence.wrapping_add(1);
        undecided.frames += 1;
        if !has_come && sequence < u32::BITS {
            undecided.new |= 1 << sequence;
        }
        self.stamps[place(sequence)] = stamp;
        if undecided.frames < PROOF {
            return Observation::UNDECIDED;
        }
        self.confirm();
        RESTARTED
    }

    /// If the stream has gone on behind frames that were undecided, they were of before.
    fn end_waiting(&mut self) {
        if !self.is_waiting() {
            self.undecided.were_of_before(&mut self.tracker);
        }
        (self.undecided.frames, self.undecided.new) = (0, 0);
    }

    /// The frames that were undecided are of a new spill.
    fn confirm(&mut self) {
        let Undecided { first, next, .. } = self.undecided;
        (self.undecided.frames, self.undecided.new) = (0, 0);
        let last = next.wrapping_sub(1);
        self.tracker.begin_anew(first, next.wrapping_sub(first));
        self.begun_anew(last, self.stamps[place(last)], false);
        self.begun = Some(last);
    }

    fn restart(&mut self, sequence: u32, stamp: u64, was_expected: bool) -> Observation {
        let is_first = self.is_in_first_half(sequence);
        self.end_waiting();
        self.tracker.begin_anew(sequence, 1);
        self.begun_anew(sequence, stamp, was_expected);
        if was_expected && !is_first {
            // A copy from near the end looks so too: then the beginning is still to come.
            self.expected = Some(self.tracker.next_number());
        }
        RESTARTED
    }

    /// The numbers have begun anew, and `sequence` is the last that has come.
    fn begun_anew(&mut self, sequence: u32, stamp: u64, was_expected: bool) {
        let says_so = sequence < NEAR || stamp < self.newest;
        self.begun = (says_so && !was_expected).then_some(sequence);
        self.spills += u64::from(was_expected);
        (self.undecided.frames, self.undecided.new) = (0, 0);
        (self.tried, self.expected) = (None, None);
        self.stamps[place(sequence)] = stamp;
        self.newest = stamp;
    }
}

const RESTARTED: Observation = Observation {
    verdict: Verdict::Resync,
    is_copy: false,
};

/// Where the time stamp of a number is.
#[inline]
const fn place(sequence: u32) -> usize {
    (sequence % WINDOW) as usize
}
