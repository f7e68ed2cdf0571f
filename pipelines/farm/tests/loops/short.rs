//! A carrier that has fewer payloads than it says: no event counts as complete without its data, and what
//! is not here is sent again.

use std::iter::Take;

use pollux_farm::carrier::{Arrival, Carrier, Ethernet, Payload, Payloads};
use pollux_farm::fragments::{Fragments, Outgoing};
use pollux_farm::message::{Fragment, Message};
use pollux_farm::role::{Address, Outbox, Transfer};
use pollux_farm::scheduler::Policy;
use pollux_farm::topology::Feeders;

use super::rig::{Farm, Way};

/// One payload of so many is not there: of those that come alone, with others of a frame, and of those
/// that are handed over.
const EVERY: u64 = 40;

/// The carrier.
struct Short {
    carrier: Ethernet,
    /// Payloads that were written and not read.
    written: usize,
    calls: [u64; 3],
    /// Payloads that were announced and are not there, by the place that they were to come from.
    lost: [u64; 3],
}

impl Short {
    fn new(carrier: Ethernet) -> Self {
        Self {
            carrier,
            written: 0,
            calls: [0; 3],
            lost: [0; 3],
        }
    }

    /// How many of so many payloads are there.
    fn left(&mut self, place: usize, all: usize) -> usize {
        self.calls[place] += 1;
        if all == 0 || !self.calls[place].is_multiple_of(EVERY) {
            return all;
        }
        // One, some or all of them.
        let lost = 1 + (self.calls[place] / EVERY) as usize % all;
        self.lost[place] += lost as u64;
        all - lost
    }
}

impl Outbox for Short {
    fn send(&mut self, to: Address, message: &Message) {
        self.carrier.send(to, message);
    }

    fn transfer(&mut self, node: u16, outgoing: &Outgoing<'_, impl Fragments>) -> Transfer {
        self.carrier.transfer(node, outgoing)
    }
}

impl Carrier for Short {
    type Payload = Payload;
    type Payloads = Take<Payloads>;

    fn set_sender(&mut self, from: Address) {
        self.carrier.set_sender(from);
    }

    fn next(&mut self) -> Option<Arrival<Payload>> {
        let mut arrival = self.carrier.next()?;
        if arrival.payload.is_some() && self.left(0, 1) == 0 {
            arrival.payload = None;
        }
        Some(arrival)
    }

    fn following(&mut self, fragment: &Fragment) -> Option<(Feeders, Take<Payloads>)> {
        let (feeders, payloads) = self.carrier.following(fragment)?;
        let left = self.left(1, feeders.len());
        Some((feeders, payloads.take(left)))
    }

    fn hands_over(&self) -> bool {
        self.carrier.hands_over()
    }

    fn count_handed_over(&mut self) {
        self.carrier.count_handed_over();
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.carrier.has_room(bytes)
    }

    fn write(&mut self, outgoing: &Outgoing<'_, impl Fragments>) -> bool {
        let is_written = self.carrier.write(outgoing);
        self.written += usize::from(is_written);
        is_written
    }

    fn written(&mut self, bytes: usize) -> Take<Payloads> {
        let all = std::mem::take(&mut self.written);
        let left = self.left(2, all);
        self.carrier.written(bytes).take(left)
    }

    fn flush(&mut self) {
        self.carrier.flush();
    }
}

#[test]
fn what_a_carrier_does_not_deliver_is_sent_again() {
    for (policy, hand_over) in [
        (Policy::Ring, true),
        (Policy::Ring, false),
        (Policy::Credits, true),
        (Policy::Credits, false),
        (Policy::None, true),
    ] {
        let way = Way {
            policy,
            hand_over,
            damage: 0.0,
        };
        let mut farm = Farm::new(way, Short::new);
        farm.run(1500);
        farm.check();
        let lost = |place: usize| {
            farm.loops
                .iter()
                .map(|of| of.carrier.lost[place])
                .sum::<u64>()
        };
        assert!(lost(0) > 0, "{way:?}");
        assert_eq!(lost(2) > 0, hand_over, "{way:?}");
        // One message has the feeders of a loop send fragments that share a frame.
        let shares = hand_over && policy == Policy::Ring;
        assert!(lost(1) > 0 || !shares, "{way:?}");
        let counted = farm.nodes().map(|node| node.counters().without_payload);
        assert_eq!(counted.sum::<u64>(), lost(1) + lost(2), "{way:?}");
        assert_eq!(farm.refused, lost(0), "{way:?}");
    }
}
