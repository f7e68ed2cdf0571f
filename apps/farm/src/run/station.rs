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

/// Times after which members are announced again: the first one, from which it doubles to the last one. A
/// switch forgets an address after 300 s (IEEE 802.1D-2004, table 7-5).
const FIRST_AGAIN: Time = Time::from_ns(1_000_000_000);
const LAST_AGAIN: Time = Time::from_ns(64_000_000_000);

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
    /// When members are announced next, and how long after that again.
    announced: (Time, Time),
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
            announced: (Time::ZERO, FIRST_AGAIN),
            misrouted: 0,
        }
    }

    /// Polls the members until the run stops.
    pub fn run(&mut self) {
        // Before anything else: what is sent to an unknown address goes to all.
        self.announce(self.clock.now());
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
            if now >= self.announced.0 && !self.control.done.is_set() {
                self.announce(now);
            }
        }
        delivered > 0
    }

    /// Announces the members to switches, which may start later and forget them.
    #[cold]
    fn announce(&mut self, now: Time) {
        let (_, again) = self.announced;
        self.announced = (now + again, (again + again).min(LAST_AGAIN));
        self.carrier.announce();
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
