//! What became of a trial, and of all trials at one rate.

use pollux_pmd::{Balance, Cause};

/// Share of its rate that a sender must have reached.
const REACHED: f64 = 0.99;

/// Causes that lose no frame of a trial: what they drop is somebody else's, or came twice, or late.
const OTHERS: [Cause; 4] = [
    Cause::NotForUs,
    Cause::DemuxMiss,
    Cause::Duplicate,
    Cause::Late,
];

/// Lost frames by `Cause as usize`.
#[derive(Clone, Copy, Default)]
pub(super) struct Losses(Balance);

impl Losses {
    /// What was lost between two moments.
    pub(super) fn between(before: &Balance, after: &Balance) -> Self {
        let mut balance = Balance::default();
        for cause in Cause::ALL.iter().filter(|cause| !OTHERS.contains(cause)) {
            let i = *cause as usize;
            balance.dropped[i] = after.dropped[i] - before.dropped[i];
        }
        Self(balance)
    }

    /// The causes that lost frames.
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

/// What came of one trial.
pub(super) struct Trial {
    /// Frames a second that were asked for.
    pub(super) rate: f64,
    /// Frames that were to be sent, that were, and that came, each counted once.
    pub(super) frames: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Seconds from the first frame to the end of the last one's slot.
    pub(super) span_s: f64,
    /// Seconds that the machine took from the sender (from the one that lost most), and from the
    /// receiver.
    pub(super) sender_taken_s: f64,
    pub(super) receiver_taken_s: f64,
    /// Frames that came with a wrong checksum or wrong content.
    pub(super) corrupt: u64,
    pub(super) dropped: Losses,
}

/// What a trial was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// No more was lost than is tolerated.
    LossFree,
    /// More was.
    Lossy,
    /// The sender did not reach the rate, so whatever came says nothing about it.
    NotReached,
    /// The machine took a loop's CPU away for so long that this may be why the sender did not reach
    /// the rate, or why frames were lost: the trial says nothing.
    Disturbed,
}

impl Trial {
    /// Judges the trial: frames may be lost up to this share.
    pub(super) fn outcome(&self, tolerated: f64) -> Outcome {
        // In so much time the rate would have been so many frames, less what is let pass.
        let wanted = |span_s: f64| REACHED * self.rate * span_s;
        let sent = self.sent as f64;
        let tolerated = tolerated * sent;
        let lost = self.lost() as f64;
        // While a receiver is held up, what comes may find no room; what a sender makes up for
        // comes at once.
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

/// The trials at one rate together.
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

    /// Trials that say something about the rate.
    pub(super) fn judged(&self) -> u32 {
        self.loss_free + self.lossy + self.not_reached
    }

    pub(super) fn trials(&self) -> u32 {
        self.judged() + self.disturbed
    }

    /// Lost frames that nobody here has seen.
    pub(super) fn unseen(&self) -> u64 {
        self.lost.saturating_sub(self.dropped.total())
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
        // 10 ms, of which the machine took so many seconds.
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
        // What is made up for, or lost nothing, does not matter.
        assert_eq!(outcome(short(1000, 0.01, 0.003, 0.003)), Outcome::LossFree);
        // In 2 ms come 200 frames.
        assert_eq!(outcome(short(800, 0.01, 0.0, 0.002)), Outcome::Disturbed);
        assert_eq!(outcome(short(800, 0.01, 0.002, 0.0)), Outcome::Disturbed);
        assert_eq!(outcome(short(799, 0.01, 0.0, 0.002)), Outcome::Lossy);
        assert_eq!(outcome(short(999, 0.01, 0.0, 0.0)), Outcome::Lossy);
    }

    #[test]
    fn losses_are_those_of_the_trial_and_of_its_frames() {
        let mut before = Balance::default();
        before.dropped[Cause::KernelDrop as usize] = 5;
        let mut after = before;
        after.dropped[Cause::KernelDrop as usize] = 7;
        after.dropped[Cause::NotForUs as usize] = 100;
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
