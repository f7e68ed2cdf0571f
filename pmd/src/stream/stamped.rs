//! Sequence tracking with time stamps: distinguishes restarts from copies at once.

use super::sequence::{Sight, WINDOW};
use super::{SequenceCounts, SequenceTracker, Verdict};

/// Numbers below this are near zero: they may start a spill whose first frames were lost. As many
/// consecutive frames may be lost before the new spill is accepted.
const NEAR: u32 = 8;

/// A repeated frame fewer than this many frames back counts as a copy; from here on it may be the
/// start of a spill. Small, since the last frames of a short spill may have been lost.
const LEAST: u32 = 4;

/// As [`LEAST`], for a single sender, which no other can confirm. After as many frames a repetition
/// that was rejected as a new spill is examined once more.
const LEAST_ALONE: u32 = 64;

/// Length of a run of repeated frames, from near zero on and with nothing new between, that proves
/// a restart of a single sender. No path repeats so many without a new frame.
const PROOF: u32 = 32;

/// How many old frames a sender may still send after the others have restarted.
const OVERHANG: u32 = 256;

/// Classification of a frame by its sequence number and its time stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// As for the numbers alone, but for restarts.
    pub verdict: Verdict,
    /// The frame is a copy of an earlier one: same number, same time stamp. A frame that may start
    /// a new spill, in which numbers and time stamps restart, is not a copy; the event builder
    /// judges it by the time of the other streams.
    pub is_copy: bool,
}

impl Observation {
    /// A copy by its number, but possibly of a new spill by its position.
    const UNDECIDED: Self = Self {
        verdict: Verdict::Duplicate,
        is_copy: false,
    };

    /// Whether the frame proves or suggests a restart of its sender.
    #[inline]
    pub(super) fn may_begin(self) -> bool {
        self.verdict == Verdict::Resync || self == Self::UNDECIDED
    }
}

/// Tracks the sequence numbers of one stream as [`SequenceTracker`] does, with the help of a time
/// stamp in each frame.
///
/// - A repeated number with another time stamp is not a copy: the sender has restarted.
/// - A number behind, or far away, with a time stamp newer than all before, is a restart, and not a
///   late frame. A sender whose numbers jump in every frame is thereby detected.
/// - Repeated numbers with repeated time stamps from near zero on, with nothing new between, are
///   undecided: copies, or a new spill identical to the one before. They do not count as copies,
///   and count as a restart once [`SpillTracker`](super::SpillTracker) confirms it, or when they
///   are many.
#[derive(Debug, Clone)]
pub(super) struct StampedTracker {
    tracker: SequenceTracker,
    /// Time stamp of number n, at n % [`WINDOW`].
    stamps: Box<[u64; WINDOW as usize]>,
    newest: u64,
    /// Minimum age in frames of a repeated frame that may belong to a new spill.
    least: u32,
    /// How many consecutive frames of a new spill may be lost before it is accepted, plus one.
    near: u32,
    undecided: Undecided,
    /// The number that was next when frames were last undecided.
    tried: Option<u32>,
    /// The stream has restarted by itself: its first number.
    begun: Option<u32>,
    /// Other streams have restarted and this one has not: the number that was next.
    expected: Option<u32>,
    spills: u64,
}

/// Repeated frames from near zero on, with no other frame since.
#[derive(Debug, Clone, Copy, Default)]
struct Undecided {
    frames: u32,
    /// The number that was next in the stream.
    instead: u32,
    /// The first of the consecutive numbers up to the last one.
    first: u32,
    next: u32,
    /// Bit n: number n is among them, and had not arrived before.
    new: u32,
}

impl Undecided {
    /// The stream continues: the frames were copies, or late frames from its start.
    fn were_of_before(self, tracker: &mut SequenceTracker) {
        tracker.count_duplicates(self.frames - self.new.count_ones());
        for number in (0..u32::BITS).filter(|n| self.new >> n & 1 == 1) {
            tracker.observe(number);
        }
    }
}

impl StampedTracker {
    /// A stream without frames; it may start at any number. `alone`: no other stream restarts with
    /// it.
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

    /// Classifies the next frame by its number and time stamp.
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

    /// The counters so far. Undecided frames are resolved by the frames after them.
    pub(super) fn counts(&self) -> SequenceCounts {
        let mut tracker = self.tracker.clone();
        if !self.is_waiting() {
            self.undecided.were_of_before(&mut tracker);
        }
        tracker.counts()
    }

    /// Restarts that most other streams made as well.
    pub(super) fn spills(&self) -> u64 {
        self.spills
    }

    /// Whether the stream claims a new spill. One frame is not enough, since a copy of a late frame
    /// looks the same.
    pub(super) fn claims(&self) -> bool {
        self.undecided.frames > 1 && self.is_waiting() || self.has_begun()
    }

    /// Whether frames are undecided: the stream has not continued since.
    fn is_waiting(&self) -> bool {
        self.undecided.frames > 0 && self.undecided.instead == self.tracker.next_number()
    }

    /// Whether the stream has recently restarted by itself.
    fn has_begun(&self) -> bool {
        let since = |at| self.tracker.next_number().wrapping_sub(at);
        self.begun.is_some_and(|at| since(at) <= WINDOW)
    }

    /// Call it when most streams claim a new spill.
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
        // An old frame may still fill a hole near the end.
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

    /// Whether other streams have just restarted.
    fn is_expected(&self) -> bool {
        let since = |at| self.tracker.next_number().wrapping_sub(at);
        self.expected.is_some_and(|at| since(at) <= OVERHANG)
    }

    fn is_in_first_half(&self, sequence: u32) -> bool {
        sequence < self.tracker.next_number() / 2
    }

    /// Whether a repeated number may belong to a new spill.
    fn is_undecided(&self, sequence: u32) -> bool {
        if self.is_waiting() {
            return sequence.wrapping_sub(self.undecided.next) < self.near;
        }
        let since = |at| self.tracker.next_number().wrapping_sub(at);
        let again = |at| since(at) >= LEAST_ALONE;
        sequence < self.near && since(sequence) >= self.least && self.tried.is_none_or(again)
    }

    /// A frame that may belong to a new spill.
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

    /// If the stream has continued after undecided frames, these were old.
    fn end_waiting(&mut self) {
        if !self.is_waiting() {
            self.undecided.were_of_before(&mut self.tracker);
        }
        (self.undecided.frames, self.undecided.new) = (0, 0);
    }

    /// The undecided frames belong to a new spill.
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
            // A copy from near the end looks the same: then the start is still to arrive.
            self.expected = Some(self.tracker.next_number());
        }
        RESTARTED
    }

    /// The numbers have restarted, and `sequence` is the last that has arrived.
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

/// Location of the time stamp of a number.
#[inline]
const fn place(sequence: u32) -> usize {
    (sequence % WINDOW) as usize
}
