//! Packets in the rings of a torus.

use std::collections::VecDeque;

use super::geometry::{Geometry, Route};
use crate::time::Time;

/// Time of a packet of 128 B with its header of 16 B on a link of 667 MB/s (thesis, III.B.2).
const LINK: Time = Time::from_ns(216);
/// Latency of a link controller that a packet passes (thesis, IV.D).
const BYPASS: Time = Time::from_ns(60);
/// Time of a packet of 128 B on the back-end bus, 450 MB/s (thesis, figure II-13).
const TURN: Time = Time::from_ns(284);
/// Time of a burst of 128 B on the PCI bus of a receiver: 31 clocks of 15 ns, as on that of a sender
/// (thesis, II.F and V.F).
const WRITE: Time = Time::from_ns(465);
/// From the PCI bus of a sender into the queue of its link controller.
const ENTER: Time = Time::from_ns(400);
/// From the PCI bus of a receiver into memory. With the times above, a packet takes 1.40 us from bus
/// to bus (thesis, IV.D).
const MEMORY: Time = Time::from_ns(259);
/// Packets that the receive queue of a link controller takes: eight less the reserved one (thesis,
/// figure II-11).
const RECEIVE: usize = 7;
/// Packets that a link controller keeps until they are acknowledged.
const TRANSMIT: usize = 8;

/// A packet of at most 128 B.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Its way.
    pub route: Route,
    /// Way of the route that it is on.
    pub leg: u8,
    /// The receiver.
    pub node: u16,
    /// What it carries: the handle of the user.
    pub tag: u32,
}

/// A packet that has reached the memory of its node.
#[derive(Clone, Copy, Debug)]
pub struct Delivered(pub Packet);

/// What happens in a torus. Packets are named by their place in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A packet comes into the queue of the link controller that sends it.
    Enter(u32),
    /// Its first byte reaches a link controller.
    Head(u32, u16),
    /// A link controller has sent a packet.
    Free(u16),
    /// A packet has been received as a whole.
    Received(u32),
    /// The echo of a refused packet reaches its sender.
    Refused(u32),
    /// The first packet of a receive queue has left it.
    Served(u16),
    /// A packet is in memory.
    Landed(u32),
}

/// A link controller with its output link.
#[derive(Debug, Default)]
struct Station {
    busy: bool,
    /// Packets that pass, which go first.
    bypass: VecDeque<u32>,
    transmit: VecDeque<u32>,
    /// Packets of `transmit`, on their way to it, or not acknowledged.
    kept: usize,
    /// Received packets, and those that are being received.
    receive: VecDeque<u32>,
    received: usize,
    serving: bool,
    /// Whether the first received packet waits for the bus, or for a place in the next `transmit`.
    stalled: bool,
    /// Link controllers whose first received packet waits for a place in `transmit`.
    waiting: VecDeque<u16>,
}

/// The PCI bus of a node, which the link controllers of all dimensions share.
#[derive(Debug, Default)]
struct Host {
    busy: bool,
    /// Link controllers whose first received packet waits for it.
    waiting: VecDeque<u16>,
}

/// A torus and its packets.
#[derive(Debug)]
pub struct Torus {
    geometry: Geometry,
    stations: Vec<Station>,
    hosts: Vec<Host>,
    packets: Vec<Packet>,
    unused: Vec<u32>,
    retries: u64,
    /// Steps that were scheduled, to be collected by the user.
    scheduled: Vec<(Time, Step)>,
}

impl Torus {
    /// An idle torus.
    #[must_use]
    pub fn new(geometry: Geometry) -> Self {
        Self {
            stations: (0..geometry.stations())
                .map(|_| Station::default())
                .collect(),
            hosts: (0..geometry.nodes).map(|_| Host::default()).collect(),
            geometry,
            packets: Vec::new(),
            unused: Vec::new(),
            retries: 0,
            scheduled: Vec::new(),
        }
    }

    /// Its dimensions.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Packets that found a receive queue full and were sent again.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.retries
    }

    /// Steps to schedule, each after a delay.
    pub fn scheduled(&mut self) -> std::vec::Drain<'_, (Time, Step)> {
        self.scheduled.drain(..)
    }

    /// Reserves a place for a packet in the adapter of a feeder. False: the adapter is full, and
    /// answers its bus with a retry.
    pub fn reserve(&mut self, feeder: u16) -> bool {
        let station = &mut self.stations[usize::from(self.geometry.feeder(feeder))];
        let free = station.kept < TRANSMIT;
        station.kept += usize::from(free);
        free
    }

    /// Sends a packet from a feeder to a node; its place was reserved.
    pub fn send(&mut self, feeder: u16, node: u16, tag: u32) {
        let packet = Packet {
            route: self.geometry.route(feeder, node),
            leg: 0,
            node,
            tag,
        };
        let number = if let Some(number) = self.unused.pop() {
            self.packets[number as usize] = packet;
            number
        } else {
            self.packets.push(packet);
            self.packets.len() as u32 - 1
        };
        self.scheduled.push((ENTER, Step::Enter(number)));
    }

    /// Handles a step that was scheduled.
    pub fn handle(&mut self, step: Step) -> Option<Delivered> {
        match step {
            Step::Enter(number) | Step::Refused(number) => {
                let from = self.leg(number).0;
                self.stations[from].transmit.push_back(number);
                self.transmit(from);
            }
            Step::Head(number, at) => self.head(number, at),
            Step::Free(at) => {
                self.stations[usize::from(at)].busy = false;
                self.transmit(at.into());
            }
            Step::Received(number) => {
                let (from, to) = self.leg(number);
                self.acknowledge(from);
                self.stations[to].receive.push_back(number);
                self.serve(to);
            }
            Step::Served(at) => self.served(at.into()),
            Step::Landed(number) => {
                self.unused.push(number);
                return Some(Delivered(self.packets[number as usize]));
            }
        }
        None
    }

    /// Sender and receiver of the packet in its ring.
    fn leg(&self, number: u32) -> (usize, usize) {
        let packet = &self.packets[number as usize];
        let leg = packet.route.legs()[usize::from(packet.leg)];
        (leg.from.into(), leg.to.into())
    }

    /// An idle link takes a packet, one that passes first.
    fn transmit(&mut self, at: usize) {
        let station = &mut self.stations[at];
        if station.busy {
            return;
        }
        let Some(number) = station
            .bypass
            .pop_front()
            .or_else(|| station.transmit.pop_front())
        else {
            return;
        };
        station.busy = true;
        let next = self.geometry.next(at as u16);
        self.scheduled.push((BYPASS, Step::Head(number, next)));
        self.scheduled.push((LINK, Step::Free(at as u16)));
    }

    fn head(&mut self, number: u32, at: u16) {
        let (_, to) = self.leg(number);
        let station = &mut self.stations[usize::from(at)];
        if usize::from(at) != to {
            station.bypass.push_back(number);
            self.transmit(at.into());
        } else if station.received < RECEIVE {
            station.received += 1;
            self.scheduled.push((LINK, Step::Received(number)));
        } else {
            self.retries += 1;
            self.scheduled.push((LINK + BYPASS, Step::Refused(number)));
        }
    }

    /// A packet has been received: its sender forgets it.
    fn acknowledge(&mut self, from: usize) {
        let station = &mut self.stations[from];
        station.kept -= 1;
        if let Some(other) = station.waiting.pop_front() {
            self.stations[usize::from(other)].stalled = false;
            self.serve(other.into());
        }
    }

    /// The first received packet goes to memory, or to the link controller of the next dimension.
    fn serve(&mut self, at: usize) {
        let station = &self.stations[at];
        let Some(&number) = station
            .receive
            .front()
            .filter(|_| !station.serving && !station.stalled)
        else {
            return;
        };
        let packet = &self.packets[number as usize];
        let next = packet.route.legs().get(usize::from(packet.leg) + 1);
        let time = match next {
            None => {
                let host = &mut self.hosts[usize::from(packet.node)];
                if host.busy {
                    host.waiting.push_back(at as u16);
                    self.stations[at].stalled = true;
                    return;
                }
                host.busy = true;
                WRITE
            }
            Some(leg) => {
                let sender = &mut self.stations[usize::from(leg.from)];
                if sender.kept == TRANSMIT {
                    sender.waiting.push_back(at as u16);
                    self.stations[at].stalled = true;
                    return;
                }
                sender.kept += 1;
                TURN
            }
        };
        self.stations[at].serving = true;
        self.scheduled.push((time, Step::Served(at as u16)));
    }

    fn served(&mut self, at: usize) {
        let station = &mut self.stations[at];
        station.serving = false;
        let Some(number) = station.receive.pop_front() else {
            return;
        };
        station.received -= 1;
        let packet = &mut self.packets[number as usize];
        if usize::from(packet.leg) + 1 == packet.route.legs().len() {
            let host = &mut self.hosts[usize::from(packet.node)];
            host.busy = false;
            let other = host.waiting.pop_front();
            self.scheduled.push((MEMORY, Step::Landed(number)));
            if let Some(other) = other {
                self.stations[usize::from(other)].stalled = false;
                self.serve(other.into());
            }
        } else {
            packet.leg += 1;
            let (from, _) = self.leg(number);
            self.stations[from].transmit.push_back(number);
            self.transmit(from);
        }
        self.serve(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::engine::Engine;

    const PROTOTYPE: Geometry = Geometry {
        columns: 6,
        rows: 2,
        layers: 1,
        feeders_per_row: 1,
        nodes: 12,
    };

    /// Sends packets at once, and returns when each is delivered, and the retries.
    fn times(sends: &[(u16, u16)]) -> (Vec<(u32, u64)>, u64) {
        let mut torus = Torus::new(PROTOTYPE);
        let mut engine = Engine::new(0);
        for (&(feeder, node), tag) in sends.iter().zip(0..) {
            assert!(torus.reserve(feeder));
            torus.send(feeder, node, tag);
        }
        let mut found = Vec::new();
        loop {
            for (delay, step) in torus.scheduled() {
                engine.after(delay, step);
            }
            let Some(step) = engine.next_event() else {
                return (found, torus.retries());
            };
            let delivered = torus.handle(step);
            found.extend(delivered.map(|Delivered(packet)| (packet.tag, engine.now().ps() / 1000)));
        }
    }

    /// 1.40 us from bus to bus, and 60 ns for each node between (thesis, IV.D).
    #[test]
    fn latency_without_a_turn() {
        for between in 0..6u16 {
            let (found, retries) = times(&[(0, between)]);
            assert_eq!(found, [(0, 1400 + 60 * u64::from(between))]);
            assert_eq!(retries, 0);
        }
    }

    #[test]
    fn a_turn_takes_the_back_end_bus_and_a_link() {
        // Node 6 is below node 0.
        assert_eq!(times(&[(0, 6)]).0, [(0, 1400 + 284 + 216 + 60)]);
    }

    /// A receiver takes one packet in 465 ns.
    #[test]
    fn packets_of_one_sender_follow_each_other() {
        let (found, retries) = times(&[(0, 0); 5]);
        assert_eq!(found.len(), 5);
        assert_eq!(retries, 0);
        assert_eq!(found[4].1, 1400 + 4 * 465);
    }

    #[test]
    fn no_reservation_beyond_the_adapter() {
        let mut torus = Torus::new(PROTOTYPE);
        assert!((0..TRANSMIT).all(|_| torus.reserve(0)));
        assert!(!torus.reserve(0));
        assert!(torus.reserve(1));
    }
}
