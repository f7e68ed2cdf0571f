//! Tests of the scheduler's seat.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use pollux_farm::fragments::{Fragments, Outgoing};
use pollux_farm::message::{Alive, Decided, Feedback, Member, NO_MEP};
use pollux_farm::role::Transfer;
use pollux_farm::scheduler::Config;
use pollux_farm::topology::Descriptor;

use super::*;

/// The flow control message that was sent.
#[derive(Default)]
struct Sent(Option<Flow>);

impl Outbox for Sent {
    fn send(&mut self, _: Address, message: &Message) {
        if let Message::Flow(flow) = message {
            self.0 = Some(*flow);
        }
    }

    fn transfer(&mut self, _: u16, _: &Outgoing<'_, impl Fragments>) -> Transfer {
        Transfer::Done
    }
}

/// Longer than a test waits between two reads of the clock that belong together, as a rule.
const LATE: Duration = Duration::from_millis(30);

/// The scheduler of a farm of a feeder and a node with a buffer, which has heard all members.
fn seat(events: u64) -> SchedulerSeat {
    let topology = Topology::regular(1, 1, 1, 1).unwrap();
    let scheduler = Scheduler::new(Config::new(1, topology), Time::ZERO).unwrap();
    let order = Order {
        triggers: Triggers::AsManyAsPossible,
        control: Arc::default(),
        counts: Arc::new(Counts::new(1)),
        clock: RunClock::start(),
        start: Time::ZERO,
        events,
        pack: 1,
        in_flight: 8,
        window: 8,
        latency: LatencyHistogram::new(),
    };
    let mut seat = SchedulerSeat::new(scheduler, order);
    for from in [Member::Feeder(0), Member::Node(0), Member::Results] {
        let alive = Message::Alive(Alive { run: 1, from });
        seat.receive(Time::ZERO, &alive, (), &mut Sent::default());
    }
    let feedback = Message::Feedback(Feedback {
        run: 1,
        column: 0,
        descriptor: Descriptor(0),
        generation: 0,
        mep: NO_MEP,
    });
    seat.receive(Time::ZERO, &feedback, (), &mut Sent::default());
    seat
}

/// The time of a round is behind by all that has happened in it: a trigger is due when it is made, and an
/// event decided when the scheduler hears of it.
#[test]
fn latency_is_that_of_messages_and_not_of_rounds() {
    let mut seat = seat(1);
    let (clock, latency) = (seat.clock, seat.latency.view());
    let round = clock.now();
    std::thread::sleep(LATE);
    let before = clock.now();
    let mut sent = Sent::default();
    seat.poll(round, &mut sent);
    let triggered = clock.now();
    let mut flow = sent.0.unwrap();
    let round = clock.now();
    std::thread::sleep(LATE);
    flow.pending = Feeders::NONE;
    let decided = Message::Decided(Decided {
        run: 1,
        mep: 0,
        bits: 1,
        before: 1,
    });
    let heard = clock.now();
    for message in [Message::Flow(flow), decided] {
        seat.receive(round, &message, (), &mut sent);
    }
    let times = latency.percentiles();
    assert_eq!(times.count, 1);
    assert!(times.max >= (heard - triggered).ps() / 1000, "{times:?}");
    assert!(times.max <= (clock.now() - before).ps() / 1000, "{times:?}");
    assert!(seat.ended >= heard);
}
