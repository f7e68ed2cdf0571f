//! Outcome of a trial, and of all trials at one rate.

use pollux_pmd::{Balance, Cause, LatencyHistogram};

/// Share of its rate that a sender must have reached.
const REACHED: f64 = 0.99;

/// Causes that lose no frame of a trial: they count foreign, duplicate or late frames.
const OTHERS: [Cause; 4] = [
    Cause::NotForUs,
    Cause::DemuxMiss,
    Cause::Duplicate,
    Cause::Late,
];

/// Lost frames by [`Cause::index`].
#[derive(Clone, Copy, Default)]
pub(super) struct Losses(Balance);

impl Losses {
    /// The losses between two balances.
    pub(super) fn between(before: &Balance, after: &Balance) -> Self {
        let mut balance = Balance::default();
        for cause in Cause::all().filter(|cause| !OTHERS.contains(cause)) {
            let i = cause.index();
            balance.dropped[i] = after.dropped[i] - before.dropped[i];
        }
        Self(balance)
    }

    /// Causes with losses.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        self.0.drops()
    }

    fn add(&mut self, other: &Self) {
        self.0.add(&other.0);
    }

    fn total(&self) -> u64 {
        self.0.dropped_total()
    }
}

/// Measurements of one trial.
pub(super) struct Trial {
    /// Requested rate, in frames a second.
    pub(super) rate: f64,
    /// Frames to be sent, frames sent, and frames received; duplicates count once.
    pub(super) frames: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Seconds from the first frame to the end of the last frame's slot.
    pub(super) span_s: f64,
    /// Stolen time in seconds: of the sender with the most of it, and of the receiver.
    pub(super) sender_taken_s: f64,
    pub(super) receiver_taken_s: f64,
    /// Frames with a wrong checksum or wrong content.
    pub(super) corrupt: u64,
    pub(super) dropped: Losses,
}

/// Verdict on a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The losses were within the tolerance.
    LossFree,
    /// The losses exceeded it.
    Lossy,
    /// The sender did not reach the rate, so the trial is inconclusive about it.
    NotReached,
    /// The machine took a loop's CPU away for so long that this may explain the missing rate or the
    /// losses: the trial is inconclusive.
    Disturbed,
}

impl Trial {
    /// Judges the trial, with this tolerated share of lost frames.
    pub(super) fn outcome(&self, tolerated: f64) -> Outcome {
        // Frames that this time amounts to at the trial's rate, less the tolerated ones.
        let wanted = |span_s: f64| REACHED * self.rate * span_s;
        let sent = self.sent as f64;
        let tolerated = tolerated * sent;
        let lost = self.lost() as f64;
        // Frames that arrive while a receiver is stalled may be dropped. A sender that makes up for
        // a stall sends its frames at once.
        let explained = self.rate * (self.sender_taken_s + self.receiver_taken_s);
        if self.sent < self.frames || sent < wanted(self.span_s) {
            let taken_s = self.sender_taken_s;
            if taken_s == 0.0 || sent < wanted(self.span_s - taken_s) {
                Outcome::NotReached
            } else {
                Outcome::Disturbed
            }
        } else if lost <= tolerated {
            Outcome::LossFree
        } else if lost - explained <= tolerated {
            Outcome::Disturbed
        } else {
            Outcome::Lossy
        }
    }

    fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }
}

/// Totals of the trials at one rate.
#[derive(Clone, Default)]
pub(super) struct Sum {
    pub(super) loss_free: u32,
    pub(super) lossy: u32,
    pub(super) not_reached: u32,
    pub(super) disturbed: u32,
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) lost: u64,
    pub(super) corrupt: u64,
    pub(super) dropped: Losses,
}

impl Sum {
    /// Adds a trial.
    pub(super) fn add(&mut self, trial: &Trial, tolerated: f64) {
        match trial.outcome(tolerated) {
            Outcome::LossFree => self.loss_free += 1,
            Outcome::Lossy => self.lossy += 1,
            Outcome::NotReached => self.not_reached += 1,
            Outcome::Disturbed => self.disturbed += 1,
        }
        self.sent += trial.sent;
        self.received += trial.received;
        self.lost += trial.lost();
        self.corrupt += trial.corrupt;
        self.dropped.add(&trial.dropped);
    }

    /// Number of conclusive trials.
    pub(super) fn judged(&self) -> u32 {
        self.loss_free + self.lossy + self.not_reached
    }

    pub(super) fn trials(&self) -> u32 {
        self.judged() + self.disturbed
    }

    /// Lost frames that no counter of this program has seen.
    pub(super) fn unseen(&self) -> u64 {
        self.lost.saturating_sub(self.dropped.total())
    }
}

/// One rate, and the outcomes of its trials.
pub(super) struct Tried {
    pub(super) rate: f64,
    pub(super) sum: Sum,
    pub(super) latency: LatencyHistogram,
}

impl Tried {
    pub(super) fn new(rate: f64) -> Self {
        Self {
            rate,
            sum: Sum::default(),
            latency: LatencyHistogram::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(sent: u64, received: u64, span_s: f64) -> Trial {
        Trial {
            rate: 1000.0,
            frames: 1000,
            sent,
            received,
            span_s,
            sender_taken_s: 0.0,
            receiver_taken_s: 0.0,
            corrupt: 0,
            dropped: Losses::default(),
        }
    }

    #[test]
    fn a_trial_below_its_rate_is_never_loss_free() {
        assert_eq!(trial(1000, 1000, 1.0).outcome(0.0), Outcome::LossFree);
        assert_eq!(trial(1000, 1000, 1.02).outcome(0.0), Outcome::NotReached);
        assert_eq!(trial(999, 999, 1.0).outcome(0.5), Outcome::NotReached);
        assert_eq!(trial(1000, 999, 1.0).outcome(0.0), Outcome::Lossy);
        assert_eq!(trial(1000, 999, 1.0).outcome(0.001), Outcome::LossFree);
        assert_eq!(trial(1000, 998, 1.0).outcome(0.001), Outcome::Lossy);
    }

    #[test]
    fn a_trial_that_the_machine_has_disturbed_says_nothing() {
        // 10 ms, of which this many seconds were stolen.
        let short = |received, span_s, sender_taken_s, receiver_taken_s| Trial {
            rate: 100_000.0,
            sender_taken_s,
            receiver_taken_s,
            ..trial(1000, received, span_s)
        };
        let outcome = |trial: Trial| trial.outcome(0.0);
        assert_eq!(outcome(short(1000, 0.013, 0.003, 0.0)), Outcome::Disturbed);
        assert_eq!(outcome(short(1000, 0.013, 0.002, 0.0)), Outcome::NotReached);
        assert_eq!(outcome(short(1000, 0.013, 0.0, 0.003)), Outcome::NotReached);
        // Stolen time that was made up for, or that lost nothing, does not matter.
        assert_eq!(outcome(short(1000, 0.01, 0.003, 0.003)), Outcome::LossFree);
        // 200 frames arrive in 2 ms.
        assert_eq!(outcome(short(800, 0.01, 0.0, 0.002)), Outcome::Disturbed);
        assert_eq!(outcome(short(800, 0.01, 0.002, 0.0)), Outcome::Disturbed);
        assert_eq!(outcome(short(799, 0.01, 0.0, 0.002)), Outcome::Lossy);
        assert_eq!(outcome(short(999, 0.01, 0.0, 0.0)), Outcome::Lossy);
    }

    #[test]
    fn losses_are_those_of_the_trial_and_of_its_frames() {
        let mut before = Balance::default();
        before.dropped[Cause::KernelDrop.index()] = 5;
        let mut after = before;
        after.dropped[Cause::KernelDrop.index()] = 7;
        after.dropped[Cause::NotForUs.index()] = 100;
        let mut lossy = trial(1000, 990, 1.0);
        lossy.dropped = Losses::between(&before, &after);
        let mut sum = Sum::default();
        sum.add(&lossy, 0.0);
        sum.add(&trial(1000, 1000, 1.0), 0.0);
        sum.add(&trial(1000, 1000, 2.0), 0.0);
        assert_eq!((sum.loss_free, sum.lossy, sum.not_reached), (1, 1, 1));
        assert_eq!((sum.lost, sum.unseen()), (10, 8));
        assert!(sum.dropped.iter().eq([(Cause::KernelDrop, 2)]));
    }
}
