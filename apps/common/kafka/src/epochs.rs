//! Times of events, from time stamps that begin again with each burst.

use std::sync::Arc;

use pollux_na62::l0::{EventHead, L0Record};
use pollux_pmd::mempool::time::Tsc;

/// Length of a slot in ns.
const SLOT_NS: i128 = 25;

/// Bursts of a recording begin at full seconds.
const SECOND: i64 = 1_000_000_000;

/// The time of day of a moment of the run's clock, in ns since the Unix epoch.
pub(crate) type WallClock = Arc<dyn Fn(Tsc) -> i64 + Send + Sync>;

/// A burst, and the time of its slot 0 in ns since the Unix epoch.
#[derive(Clone, Copy)]
struct Burst {
    number: u16,
    epoch_ns: i128,
}

/// Slot 0 of each burst in time, so that times grow over the run. In a live run it is known from the
/// arrival of the first event of the burst; in a recording, whose arrivals say nothing, a burst begins
/// at the first full second after all earlier events.
pub(crate) struct Epochs {
    /// Absent for recordings.
    clock: Option<WallClock>,
    /// The time at which the first burst begins, if that is given.
    first: Option<i64>,
    /// What is added to the time of day.
    shift: i128,
    present: Option<Burst>,
    /// The burst before: where boards disagree, some of its events come later.
    before: Option<Burst>,
    /// The latest time so far.
    last: i64,
}

impl Epochs {
    /// Of a live run; the first burst begins at `first` if that is given.
    pub(crate) fn live(clock: WallClock, first: Option<i64>) -> Self {
        Self::new(Some(clock), first)
    }

    /// Of recordings, whose first burst begins at `first`.
    pub(crate) fn recorded(first: i64) -> Self {
        Self::new(None, Some(first))
    }

    fn new(clock: Option<WallClock>, first: Option<i64>) -> Self {
        Self {
            clock,
            first,
            shift: 0,
            present: None,
            before: None,
            last: i64::MIN,
        }
    }

    /// The time of an event in ns since the Unix epoch; one that the type cannot express is its maximum.
    pub(crate) fn time(&mut self, head: &EventHead) -> i64 {
        let burst = match (self.present, self.before) {
            (Some(present), _) if present.number == head.burst => present,
            (Some(present), before) if !L0Record::is_later_burst(head.burst, present.number) => {
                before.unwrap_or(present)
            }
            _ => self.begin(head),
        };
        let time = burst.epoch_ns + since_start(head);
        let Ok(time) = i64::try_from(time) else {
            return i64::MAX;
        };
        self.last = self.last.max(time);
        time
    }

    /// Begins a burst with its first event.
    fn begin(&mut self, head: &EventHead) -> Burst {
        let is_first = self.present.is_none();
        let epoch_ns = match &self.clock {
            Some(clock) => {
                let start = i128::from(clock(head.arrival)) - since_start(head);
                if let Some(first) = self.first.filter(|_| is_first) {
                    self.shift = i128::from(first) - start;
                }
                let start = start + self.shift;
                if is_first {
                    start
                } else {
                    // A clock that was set back, or a burst that was held up less than the one before.
                    start.max(i128::from(self.last) + SLOT_NS - since_start(head))
                }
            }
            None if is_first => i128::from(self.first.unwrap_or(0)),
            None => i128::from(self.last.div_euclid(SECOND) + 1) * i128::from(SECOND),
        };
        let burst = Burst {
            number: head.burst,
            epoch_ns,
        };
        self.before = self.present.replace(burst);
        burst
    }
}

/// Time since the start of the burst, in ns.
fn since_start(head: &EventHead) -> i128 {
    i128::from(head.timestamp) * SLOT_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(burst: u16, timestamp: u64, arrival: u64) -> EventHead {
        EventHead {
            burst,
            timestamp,
            arrival: Tsc(arrival),
            ..EventHead::default()
        }
    }

    /// A clock of nanoseconds whose zero is at 1000 s.
    fn wall() -> WallClock {
        Arc::new(|at| 1_000_000_000_000 + at.0 as i64)
    }

    /// Each burst is where it arrived, whatever its time stamps begin with, and latencies within a burst
    /// do not matter.
    #[test]
    fn a_burst_is_at_the_time_of_its_arrival() {
        let mut epochs = Epochs::live(wall(), None);
        let mut time = |burst, timestamp, arrival| epochs.time(&head(burst, timestamp, arrival));
        assert_eq!(time(1, 40, 6_000), 1_000_000_006_000);
        assert_eq!(time(1, 80, 99_999), 1_000_000_007_000);
        // Eight seconds later.
        assert_eq!(time(2, 4, 8_000_000_100), 1_008_000_000_100);
        // An event of the burst before, and one of a burst that is long over.
        assert_eq!(time(1, 120, 8_000_000_200), 1_000_000_008_000);
        assert_eq!(time(2, 8, 8_000_000_300), 1_008_000_000_200);
        assert_eq!(time(2, u64::MAX, 0), i64::MAX);
        assert_eq!(time(3, 0, 9_000_000_000), 1_009_000_000_000);
    }

    /// With an epoch the first burst begins there; the others keep their distance.
    #[test]
    fn an_epoch_is_the_start_of_the_first_burst() {
        let mut epochs = Epochs::live(wall(), Some(500));
        assert_eq!(epochs.time(&head(7, 40, 6_000)), 1_500);
        assert_eq!(epochs.time(&head(8, 40, 1_006_000)), 1_001_500);
    }

    #[test]
    fn times_grow_although_the_clock_goes_back() {
        let mut epochs = Epochs::live(wall(), None);
        assert_eq!(epochs.time(&head(1, 0, 1_000)), 1_000_000_001_000);
        assert_eq!(epochs.time(&head(1, 1_000, 1_000)), 1_000_000_026_000);
        assert_eq!(epochs.time(&head(2, 2, 5_000)), 1_000_000_026_025);
        assert_eq!(epochs.time(&head(2, 3, 5_000)), 1_000_000_026_050);
        // Numbers begin again.
        let mut epochs = Epochs::recorded(0);
        assert_eq!(epochs.time(&head(L0Record::LAST_BURST, 1, 0)), 25);
        assert_eq!(epochs.time(&head(1, 1, 0)), 1_000_000_025);
    }

    /// Arrivals of a recording have no part in its times.
    #[test]
    fn a_recording_has_the_same_times_each_time() {
        let mut epochs = Epochs::recorded(0);
        let mut time = |burst, timestamp, arrival| epochs.time(&head(burst, timestamp, arrival));
        assert_eq!(time(1, 40, 77), 1_000);
        assert_eq!(time(1, 40_000_000, 78), 1_000_000_000);
        assert_eq!(time(2, 40, 79), 2_000_001_000);
        assert_eq!(time(4, 0, 80), 3_000_000_000);
        assert_eq!(Epochs::recorded(-5).time(&head(1, 1, 0)), 20);
    }
}
