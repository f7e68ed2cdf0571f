//! Sending rate: its command-line form, and the schedule of a loop.

use std::fmt;

use pollux_pmd::mempool::time::{Ns, Tsc};
use pollux_pmd::{Clock, TscClock};

use pollux_app::Rates;

/// Longest delay that a schedule makes up for. A longer delay shifts the schedule: a burst of all
/// missed frames would exceed the requested rate.
const MAX_BEHIND: Ns = Ns(10_000_000);

/// A requested rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rate {
    /// As fast as the port accepts frames.
    Max,
    /// Frames a second.
    Frames(f64),
    /// Bits a second, of frames without preamble, check sequence and gap.
    Bits(f64),
}

impl Rate {
    /// Parses `max`, `250k`, `1.5Mpps` or `10Gbit`, for clap's `value_parser`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let rates = Rates {
            units: &["pps", "bps", "bit", "bit/s"],
            // From one frame in some minutes to beyond any wire.
            range: 0.001..=1e15,
            max: true,
        };
        Ok(match rates.read(text)? {
            None => Self::Max,
            Some((number, "" | "pps")) => Self::Frames(number),
            Some((number, _)) => Self::Bits(number),
        })
    }

    /// The share of one of `n` loops.
    pub(crate) fn share(self, n: usize) -> Self {
        match self {
            Self::Max => Self::Max,
            Self::Frames(rate) => Self::Frames(rate / n as f64),
            Self::Bits(rate) => Self::Bits(rate / n as f64),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Max => f.write_str("max"),
            Self::Frames(rate) => write!(f, "{rate}pps"),
            Self::Bits(rate) => write!(f, "{rate}bps"),
        }
    }
}

/// Open-loop schedule: the due time of a frame depends on the frames before it alone.
pub(super) struct Pace {
    /// In units of 2^-32 of a cycle.
    per_frame: u128,
    per_byte: u128,
    due: u128,
    start: Tsc,
    max_behind: u128,
    given_up: u128,
}

impl Pace {
    /// A schedule that starts now. Loop `i` of `n` loops with the same rate is offset so that
    /// together they send evenly.
    pub(super) fn new(rate: Rate, clock: TscClock, (i, n): (usize, usize)) -> Self {
        let second = clock.hz() as f64 * 2_f64.powi(32);
        let (per_frame, per_byte) = match rate {
            Rate::Max => (0, 0),
            Rate::Frames(rate) => ((second / rate) as u128, 0),
            Rate::Bits(rate) => (0, (second * 8.0 / rate) as u128),
        };
        let start = clock.now();
        Self {
            per_frame,
            per_byte,
            due: (u128::from(start.0) << 32) + per_frame * i as u128 / n as u128,
            start,
            max_behind: u128::from(clock.to_cycles(MAX_BEHIND)) << 32,
            given_up: 0,
        }
    }

    /// Whether another frame is due.
    #[inline]
    pub(super) fn is_due(&self, now: Tsc) -> bool {
        u128::from(now.0) << 32 >= self.due
    }

    /// Adds a frame to the schedule.
    #[inline]
    pub(super) fn spend(&mut self, bytes: usize) {
        self.due += self.per_frame + self.per_byte * bytes as u128;
    }

    /// Shifts the schedule if it is too far behind.
    #[inline]
    pub(super) fn catch_up(&mut self, now: Tsc) {
        let oldest = (u128::from(now.0) << 32).saturating_sub(self.max_behind);
        if self.due < oldest {
            self.given_up += oldest - self.due;
            self.due = oldest;
        }
    }

    /// Cycles from the start to the end of the last frame's slot or, if later, to the time when the
    /// frame was made.
    pub(super) fn span(&self, made: Tsc) -> u64 {
        Tsc((self.due >> 32) as u64).max(made).since(self.start)
    }

    /// Cycles by which the schedule was shifted.
    pub(super) fn given_up(&self) -> u64 {
        if self.per_frame + self.per_byte == 0 {
            return 0; // no schedule
        }
        (self.given_up >> 32) as u64
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rates_are_read() {
        for (text, rate) in [
            ("max", Rate::Max),
            ("1000", Rate::Frames(1e3)),
            ("0.5pps", Rate::Frames(0.5)),
            ("250k", Rate::Frames(250e3)),
            ("1.5Mpps", Rate::Frames(1.5e6)),
            ("10Gbps", Rate::Bits(1e10)),
            ("800Mbit", Rate::Bits(8e8)),
            ("9600bit/s", Rate::Bits(9600.0)),
        ] {
            assert_eq!(Rate::parse(text), Ok(rate), "{text}");
        }
        for text in [
            "", "fast", "-1", "1e6", "0", "1mpps", "5Gpkts", "k", "1..2", "inf",
        ] {
            assert!(Rate::parse(text).is_err(), "{text}");
        }
    }

    /// Number of frames due at each of some times, in cycles after the start.
    fn due(pace: &mut Pace, bytes: usize, at: &[u64]) -> Vec<u64> {
        let start = pace.start;
        let until = |now: u64, pace: &mut Pace| {
            let mut n = 0;
            while pace.is_due(Tsc(start.0 + now)) {
                pace.spend(bytes);
                n += 1;
            }
            n
        };
        at.iter().map(|&now| until(now, pace)).collect()
    }

    #[test]
    fn frames_are_due_as_asked() {
        let clock = TscClock::get();
        // Sampled in the middle of slots, since the ends of slots are rounded.
        let second = clock.hz();
        let half = second / 2_000_000;
        let mut pace = Pace::new(Rate::Frames(1e6), clock, (0, 1));
        assert_eq!(
            due(&mut pace, 64, &[half, second / 10 + half, second + half]),
            [1, 100_000, 900_000]
        );
        let mut pace = Pace::new(Rate::Bits(8e6), clock, (0, 1));
        assert_eq!(due(&mut pace, 1000, &[half, second + half]), [1, 1000]);
        assert!(pace.span(pace.start).abs_diff(second + second / 1000) < 10);
        // Three frames a second, by two loops in turn.
        let rate = Rate::Frames(3.0).share(2);
        let mut second_loop = Pace::new(rate, clock, (1, 2));
        assert_eq!(due(&mut second_loop, 64, &[second / 4, second / 2]), [0, 1]);
    }

    #[test]
    fn a_loop_that_was_held_up_gives_up_what_is_too_far_behind() {
        let clock = TscClock::get();
        let mut pace = Pace::new(Rate::Frames(1e6), clock, (0, 1));
        let now = Tsc(pace.start.0 + clock.hz());
        pace.catch_up(now);
        assert_eq!(due(&mut pace, 64, &[clock.hz() + 10]), [10_001]);
        let given_up = clock.to_ns(pace.given_up()).0;
        assert!(given_up.abs_diff(990_000_000) < 1000, "{given_up}");
    }
}
