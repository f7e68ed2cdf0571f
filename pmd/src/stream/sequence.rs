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
mod tests;
