//! A loop: some members of the farm and the carrier of their messages.

use std::ops::Deref;
use std::sync::Arc;

use pollux_farm::carrier::Carrier;
use pollux_farm::members;
use pollux_farm::time::Time;

use super::counters::Control;
use super::rest::{Rest, Resting};
use super::run_clock::RunClock;
use super::seats::{FeederSeat, NodeSeat, ResultSeat, SchedulerSeat};

/// Messages of a round at most, those of one MEP in a frame as one: then what was gathered is sent. The other
/// loops have work early that way, and frames to them are in a near cache yet.
const ROUND: usize = 32;

/// Rounds at the end of a run in which something may arrive.
const REST: usize = 8192;

/// Time between two shows of the counts.
const SHOW: Time = Time::from_ns(2_000_000);

/// The members of a loop.
pub type Members<P> = members::Members<SchedulerSeat, ResultSeat, FeederSeat, NodeSeat<P>>;

/// A loop.
pub struct Station<C: Carrier> {
    pub members: Members<C::Payload>,
    pub carrier: C,
    control: Arc<Control>,
    clock: RunClock,
    resting: Resting,
    /// When counts were shown.
    shown: Time,
    /// Messages for members that are not in this loop.
    pub misrouted: u64,
}

impl<C: Carrier<Payload: Deref<Target = [u8]>>> Station<C> {
    pub fn new(
        members: Members<C::Payload>,
        carrier: C,
        control: Arc<Control>,
        clock: RunClock,
        rest: Rest,
    ) -> Self {
        Self {
            members,
            carrier,
            control,
            clock,
            resting: Resting::new(rest),
            shown: Time::from_ns(0),
            misrouted: 0,
        }
    }

    /// Polls the members until the run stops.
    pub fn run(&mut self) {
        while !self.control.stop.is_set() {
            let worked = self.round();
            self.resting.after(worked);
        }
        // What has arrived belongs to the run.
        for _ in 0..REST {
            if !self.round() {
                break;
            }
        }
        self.show();
    }

    /// A round; whether the events are all decided and nothing arrives any more.
    #[cfg(test)]
    pub fn round_to_end(&mut self) -> bool {
        !self.round() && self.control.done.is_set()
    }

    /// Delivers what has arrived, and does what is due. Returns whether something arrived.
    fn round(&mut self) -> bool {
        let now = self.clock.now();
        let mut delivered = 0;
        while delivered < ROUND
            && let Some(arrival) = self.carrier.next()
        {
            delivered += 1;
            let is_here = self.members.deliver(now, arrival, &mut self.carrier);
            self.misrouted += u64::from(!is_here);
        }
        // After the end, answers are all that is sent.
        if !self.control.done.is_set() {
            self.members.poll(now, &mut self.carrier);
        }
        self.carrier.flush();
        if now - self.shown >= SHOW {
            self.shown = now;
            self.show();
        }
        delivered > 0
    }

    /// Shows counts to readers.
    fn show(&self) {
        if let Some(seat) = &self.members.scheduler {
            seat.show();
        }
        if let Some(seat) = &self.members.results {
            seat.show();
        }
    }
}
