//! Sequence tracking of a stream: lost, duplicate, reordered and late frames, and restarts.

/// Distance in frames up to which reordered frames are distinguished from duplicates.
pub const WINDOW: u32 = 1024;

/// A number that is at least this many frames ahead is not a gap but belongs to a restart: an
/// outage of a second at a million frames a second still counts as a gap, and a restart from 0 does
/// not count as four thousand million missing frames.
pub const MAX_GAP: u32 = 1 << 20;

/// Length of a run of consecutive numbers outside the window, with no other between them, that
/// proves a restart. RFC 3550 appendix A.1 takes two, but two consecutive late frames do occur, and
/// would then make the live stream look restarted.
const RESTART_RUN: u32 = 4;

/// Length of a run of consecutive duplicates, with no other frame between them, that proves a
/// restart within the window. No path repeats so many in a row without a new frame.
const ECHO_RUN: u32 = 32;

/// Classification of a frame by its sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The next number, or the first of the stream.
    InOrder,
    /// The given number of frames before it have not arrived so far.
    Gap(u32),
    /// Older than the newest, and not a duplicate: it fills a hole.
    Reordered,
    /// The number has arrived before.
    Duplicate,
    /// Older than the window.
    Late,
    /// The last frame of a run that proves a restart of the sender; the other frames of the run
    /// were [`Late`](Self::Late).
    Resync,
}

/// Position of a number relative to the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// The next number, or the first of the stream.
    Next,
    /// In the window, and it has arrived.
    Seen,
    /// Ahead by less than [`MAX_GAP`].
    Ahead,
    /// In the window, and it has not arrived.
    Hole,
    /// Behind the window, or too far ahead.
    Outside,
}

/// Counters of one stream.
///
/// `unique + missing` is the number of frames that the sender numbered, from the lowest number
/// seen to the highest, summed over its restarts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SequenceCounts {
    /// Frames that arrived, without copies.
    pub unique: u64,
    /// Frames that never arrived.
    pub missing: u64,
    /// Jumps ahead.
    pub gaps: u64,
    /// Frames that arrived after a later one, within the window.
    pub reordered: u64,
    /// Copies of frames within the window.
    pub duplicates: u64,
    /// Frames older than the window. A late frame counts as unique and no longer as missing if
    /// there is a hole behind the window that it can fill; it may as well be a copy, which cannot
    /// be known. Without such a hole, it changes neither count.
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
    /// Bit n % 1024: number n has arrived. Covers the last [`WINDOW`] numbers before `next`.
    seen: [u64; WINDOW as usize / 64],
    /// The number after the newest.
    next: u32,
    /// How many numbers of the window belong to this stream since it started: fewer than [`WINDOW`]
    /// at first; zero before the first frame.
    span: u32,
    /// The current run of numbers outside the window: its length, and the number that would
    /// continue it. It is not counted until it ends or proves a restart.
    run: u32,
    run_next: u32,
    /// The run consists of duplicates, which are counted immediately, instead of numbers outside.
    echoing: bool,
    counts: SequenceCounts,
}

impl Default for SequenceTracker {
    fn default() -> Self {
        Self::new()
    }
}

impl SequenceTracker {
    /// A stream without frames; it may start at any number.
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

    /// Classifies and counts the next frame by its number.
    #[inline]
    pub fn observe(&mut self, sequence: u32) -> Verdict {
        let ahead = sequence.wrapping_sub(self.next);
        if ahead == 0 && self.run == 0 {
            self.advance();
            return Verdict::InOrder;
        }
        self.out_of_order(sequence, ahead)
    }

    /// The counters so far.
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

    /// Position of a number.
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

    /// Whether a number is older than the first frame since the stream started.
    pub(super) fn is_before_all(&self, sequence: u32) -> bool {
        self.next.wrapping_sub(sequence) > self.span
    }

    /// Counts frames that other evidence identifies as copies, whatever their numbers.
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

    /// Records that `next` has arrived.
    #[inline]
    fn advance(&mut self) {
        self.set(self.next);
        self.next = self.next.wrapping_add(1);
        self.span = (self.span + 1).min(WINDOW);
        self.counts.unique += 1;
    }

    /// Records that `n` numbers from `next` on have not arrived.
    fn skip(&mut self, n: u32) {
        // numbers that leave the window without arrival stay missing
        for i in 0..n.min(WINDOW) {
            let (word, bit) = place(self.next.wrapping_add(i));
            self.seen[word] &= !bit;
        }
        self.next = self.next.wrapping_add(n);
        self.span = (self.span + n).min(WINDOW);
        self.counts.missing += u64::from(n);
        self.counts.gaps += 1;
    }

    /// A number within the window that has arrived before.
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

    /// A number within the window, `behind` before `next`, that has not arrived before.
    fn inside(&mut self, sequence: u32, behind: u32) -> Verdict {
        if behind > self.span {
            // older than the first frame: the stream began earlier, and the numbers between were
            // sent
            self.counts.missing += u64::from(behind - self.span);
            self.span = behind;
        }
        self.set(sequence);
        self.counts.missing -= 1;
        self.counts.unique += 1;
        self.counts.reordered += 1;
        Verdict::Reordered
    }

    /// A number far behind, or too far ahead for a gap.
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

    /// Restarts on other evidence: the sender has restarted, and `n` of its frames from number
    /// `first` on have arrived.
    pub(super) fn begin_anew(&mut self, first: u32, n: u32) -> Verdict {
        self.end_run();
        self.restart(first, n)
    }

    /// The sender has restarted, and `n` of its frames from number `first` on have arrived.
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

    /// Ends a run that was no restart: numbers outside the window were late; duplicates are already
    /// counted.
    fn end_run(&mut self) {
        self.counts = self.counts();
        self.run = 0;
        self.echoing = false;
    }

    /// Whether a number of the window has arrived.
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
mod tests;
