//! Outcomes of the frames that a transmit queue has taken, and of the events that they carry.

use std::collections::VecDeque;

use super::link::Outcomes;

/// Frames of an event, or of none, that the queue took one after the other.
struct Group {
    frames: u64,
    is_event: bool,
}

/// Events on their way through a transmit queue. The queue counts the outcome of each frame in the
/// order in which it took them, but not of which frame: of frames whose outcomes come together, each
/// that failed is one of another event, so that no lost event counts as sent.
#[derive(Default)]
pub(super) struct Flight {
    /// The queue's counters at the last call of [`settle`](Self::settle).
    packets: u64,
    errors: u64,
    /// Groups without an outcome.
    groups: VecDeque<Group>,
    /// Frames of the event that is being sent.
    open: u64,
    /// Frames of the groups that have an outcome, and those of them that failed and are no event's yet.
    settled: u64,
    failed: u64,
}

impl Flight {
    /// The queue took a frame of the event that is being sent.
    pub(super) fn took(&mut self) {
        self.open += 1;
    }

    /// The queue took a frame of no event. Between those of an event it counts as one of them.
    pub(super) fn took_other(&mut self) {
        self.open += 1;
        if self.open == 1 {
            self.end(false);
        }
    }

    /// The event is complete; or what was sent of it is no event (any more).
    pub(super) fn end(&mut self, is_event: bool) {
        let frames = std::mem::take(&mut self.open);
        if frames > 0 {
            self.groups.push_back(Group { frames, is_event });
        }
    }

    /// Whether the outcome of a frame is unknown.
    pub(super) fn is_waiting(&self) -> bool {
        self.open > 0 || !self.groups.is_empty()
    }

    /// The events whose outcome is known with these values of the queue's counters.
    pub(super) fn settle(&mut self, packets: u64, errors: u64) -> Outcomes {
        let failed = errors.wrapping_sub(self.errors);
        self.settled += packets.wrapping_sub(self.packets) + failed;
        self.failed += failed;
        (self.packets, self.errors) = (packets, errors);
        let mut outcomes = Outcomes::default();
        while let Some(group) = self.groups.front().filter(|g| g.frames <= self.settled) {
            let Group { frames, is_event } = *group;
            self.settled -= frames;
            self.groups.pop_front();
            match is_event {
                true if self.failed > 0 => {
                    self.failed -= 1;
                    outcomes.failed += 1;
                }
                true => outcomes.sent += 1,
                false => {}
            }
        }
        // All others were of groups that have their outcome now.
        self.failed = self.failed.min(self.settled);
        outcomes
    }

    /// As [`settle`](Self::settle), at the end: a frame without an outcome has failed.
    pub(super) fn finish(mut self, packets: u64, errors: u64) -> Outcomes {
        let mut outcomes = self.settle(packets, errors);
        let left = self.groups.iter().filter(|group| group.is_event);
        outcomes.failed += left.count() as u64;
        outcomes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Frames of events, each with its own outcome, which the queue counts in batches.
    fn events() -> impl Strategy<Value = Vec<Vec<bool>>> {
        proptest::collection::vec(proptest::collection::vec(any::<bool>(), 1..4), 0..30)
    }

    proptest! {
        /// Each event has one outcome, no lost event counts as sent in total, and with one frame to an
        /// event the numbers are exact; frames of no event change nothing but make more fail.
        #[test]
        fn no_lost_event_counts_as_sent(events in events(), batch in 1_usize..9, others in 0_usize..3) {
            let mut flight = Flight::default();
            for event in &events {
                for _ in event {
                    flight.took();
                }
                flight.end(true);
                for _ in 0..others {
                    flight.took_other();
                }
            }
            let with_others = |event: &Vec<bool>| event.iter().copied().chain((0..others).map(|_| true)).collect::<Vec<_>>();
            let frames: Vec<_> = events.iter().flat_map(with_others).collect();
            let (mut packets, mut errors, mut sum) = (0, 0, Outcomes::default());
            for batch in frames.chunks(batch) {
                let sent = batch.iter().filter(|sent| **sent).count();
                packets += sent as u64;
                errors += (batch.len() - sent) as u64;
                let now = flight.settle(packets, errors);
                sum.sent += now.sent;
                sum.failed += now.failed;
                let lost = |event: &&Vec<bool>| event.contains(&false);
                let done = (sum.sent + sum.failed) as usize;
                let lost = events[..done].iter().filter(lost).count() as u64;
                prop_assert!(sum.failed >= lost, "{} {lost}", sum.failed);
            }
            prop_assert!(!flight.is_waiting());
            prop_assert_eq!(sum.sent + sum.failed, events.len() as u64);
            if events.iter().all(|event| event.len() == 1) {
                prop_assert_eq!(sum.failed, errors);
            }
            prop_assert_eq!(flight.finish(packets, errors), Outcomes::default());
        }
    }

    #[test]
    fn frames_without_an_outcome_at_the_end_have_failed() {
        let mut flight = Flight::default();
        for _ in 0..3 {
            flight.took();
            flight.took();
            flight.end(true);
        }
        // Given up after its first frame: its outcome was counted then.
        flight.took();
        flight.end(false);
        let outcomes = |sent, failed| Outcomes { sent, failed };
        assert_eq!(flight.settle(3, 0), outcomes(1, 0));
        assert_eq!(flight.finish(3, 0), outcomes(0, 2));
    }
}
