//! A network in memory: frames with delays, losses, damage and repetitions. Frames between two
//! members stay in order; those of different senders do not.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use pollux_farm::fragments::{Fragments, Outgoing};
use pollux_farm::message::Message;
use pollux_farm::role::{Address, Outbox, Transfer};
use pollux_farm::time::Time;
use pollux_farm::wire;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Probabilities for each frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) lost: f64,
    pub(crate) damaged: f64,
    pub(crate) repeated: f64,
}

/// A frame that arrives.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrival {
    pub(crate) time: Time,
    number: u64,
    pub(crate) to: Address,
    pub(crate) frame: Vec<u8>,
}

pub(crate) struct Network {
    arrivals: BinaryHeap<Reverse<Arrival>>,
    last: BTreeMap<(Address, Address), Time>,
    pub(crate) faults: Faults,
    pub(crate) random: Xoshiro256PlusPlus,
    number: u64,
    /// Frames that were not delivered whole.
    pub(crate) spoiled: u64,
    /// Feeders whose transfers take time.
    pub(crate) slow: bool,
    /// Ends of transfers.
    pub(crate) transfers: BinaryHeap<Reverse<(Time, u8)>>,
    /// End of the last transfer to each node.
    ends: BTreeMap<u16, Time>,
    /// Transfers to a node that began before another one to it had ended.
    pub(crate) overlaps: u64,
}

impl Network {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        Self {
            arrivals: BinaryHeap::new(),
            last: BTreeMap::new(),
            faults,
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            number: 0,
            spoiled: 0,
            slow: false,
            transfers: BinaryHeap::new(),
            ends: BTreeMap::new(),
            overlaps: 0,
        }
    }

    pub(crate) fn next_time(&self) -> Time {
        let arrival = self.arrivals.peek().map(|arrival| arrival.0.time);
        let transfer = self.transfers.peek().map(|transfer| transfer.0.0);
        let times = [arrival, transfer];
        times.into_iter().flatten().min().unwrap_or(Time::MAX)
    }

    pub(crate) fn arrived(&mut self, now: Time) -> Option<Arrival> {
        let due = self.arrivals.peek()?.0.time <= now;
        due.then(|| self.arrivals.pop()).flatten().map(|a| a.0)
    }

    pub(crate) fn transferred(&mut self, now: Time) -> Option<u8> {
        let due = self.transfers.peek()?.0.0 <= now;
        due.then(|| self.transfers.pop()).flatten().map(|t| t.0.1)
    }

    pub(crate) fn send(&mut self, now: Time, from: Address, to: Address, mut frame: Vec<u8>) {
        if self.random.random_bool(self.faults.lost) {
            self.spoiled += 1;
            return;
        }
        if self.random.random_bool(self.faults.damaged) {
            self.spoiled += 1;
            let bit = self.random.random_range(0..frame.len() * 8);
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        if self.random.random_bool(self.faults.repeated) {
            self.queue(now, from, to, frame.clone());
        }
        self.queue(now, from, to, frame);
    }

    fn queue(&mut self, now: Time, from: Address, to: Address, frame: Vec<u8>) {
        let delay = Time::from_ns(self.random.random_range(300..3000));
        let last = self.last.entry((from, to)).or_default();
        let time = (now + delay).max(*last);
        *last = time;
        self.number += 1;
        let number = self.number;
        self.arrivals.push(Reverse(Arrival {
            time,
            number,
            to,
            frame,
        }));
    }
}

/// The end of a member at the network.
pub(crate) struct Port<'a> {
    pub(crate) network: &'a mut Network,
    pub(crate) now: Time,
    pub(crate) from: Address,
}

impl Outbox for Port<'_> {
    fn send(&mut self, to: Address, message: &Message) {
        let frame = wire::encode(message).to_vec();
        self.network.send(self.now, self.from, to, frame);
    }

    fn transfer(&mut self, node: u16, outgoing: &Outgoing<'_, impl Fragments>) -> Transfer {
        let mut frame = vec![0; outgoing.frame_len()];
        let length = outgoing.write(true, &mut frame).expect("the frame fits");
        assert_eq!(length, frame.len());
        let to = Address::Node(node);
        let bytes = frame.len() as u64;
        self.network.send(self.now, self.from, to, frame);
        if !self.network.slow {
            return Transfer::Done;
        }
        // 275 MB/s, as the thesis measured (IV.E).
        let end = self.now + Time::from_ps(bytes * 3636);
        let feeder = outgoing.fragment().feeder;
        let before = self.network.ends.entry(node).or_default();
        self.network.overlaps += u64::from(self.now < *before);
        *before = end.max(*before);
        self.network.transfers.push(Reverse((end, feeder)));
        Transfer::Running
    }
}
