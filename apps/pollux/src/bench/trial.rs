//! What became of a trial, and of all trials at one rate.

use pollux_pmd::{Balance, Cause};

/// Share of its rate that a sender must have reached.
const REACHED: f64 = 0.99;

/// Seconds by which a sender may end late besides, where its port always had room: a CPU that is
/// not its own is taken away for a time slice, about 3 ms (`base_slice_ns` of the kernel's fair
/// scheduler), up to the next tick (4 ms at HZ=250). The sender makes up for it, unless the trial
/// ends before. A port without room has held up its sender itself, and is judged by its rate alone.
const HELD_UP_S: f64 = 0.004;

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
    /// The port took every frame when it was due.
    pub(super) had_room: bool,
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
}

impl Trial {
    /// Judges the trial: frames may be lost up to this share.
    pub(super) fn outcome(&self, tolerated: f64) -> Outcome {
        let slack_s = if self.had_room { HELD_UP_S } else { 0.0 };
        let reached = self.frames as f64 >= REACHED * self.rate * (self.span_s - slack_s);
        if self.sent < self.frames || !reached {
            Outcome::NotReached
        } else if self.lost() as f64 <= tolerated * self.sent as f64 {
            Outcome::LossFree
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
        }
        self.sent += trial.sent;
        self.received += trial.received;
        self.lost += trial.lost();
        self.corrupt += trial.corrupt;
        self.dropped.add(&trial.dropped);
    }

    pub(super) fn trials(&self) -> u32 {
        self.loss_free + self.lossy + self.not_reached
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
            had_room: true,
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
    fn a_sender_that_was_held_up_for_a_time_slice_has_reached_its_rate() {
        // 10 ms, of which another program took 3.
        let short = |span_s, had_room| Trial {
            rate: 100_000.0,
            had_room,
            ..trial(1000, 1000, span_s)
        };
        assert_eq!(short(0.013, true).outcome(0.0), Outcome::LossFree);
        assert_eq!(short(0.013, false).outcome(0.0), Outcome::NotReached);
        assert_eq!(short(0.015, true).outcome(0.0), Outcome::NotReached);
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
