//! Messages between members of one loop: handed over, they are those that frames carry, and an event
//! is finished before the next one begins.

#![allow(clippy::expect_used)]

use std::cell::RefCell;
use std::rc::Rc;

use pollux_farm::carrier::{Carrier, Ethernet, EthernetConfig, Payload, Routes};
use pollux_farm::feeder::mockup::Mockup;
use pollux_farm::fragments::Outgoing;
use pollux_farm::members::{Members, Numbers};
use pollux_farm::message::{Ack, Flow, Message, Request};
use pollux_farm::role::{Address, Builder, Hop, Outbox, Role};
use pollux_farm::time::Time;
use pollux_farm::topology::{Descriptor, Feeders, Topology};
use pollux_pmd::mempool::{Mempool, PoolConfig};
use pollux_pmd::{Ledger, PortConfig, Registry, StartedPort, Tally};
use proptest::prelude::*;

/// A carrier whose first queue returns to it, and the frames that were received.
fn rig(within: Option<u16>) -> (Ethernet, Ledger) {
    let topology = Topology::regular(3, 2, 4, 2).expect("a farm");
    let config = PoolConfig {
        buffers: 2048,
        ..PoolConfig::default()
    };
    let pool = Mempool::new(config).expect("a pool");
    let port = Registry::builtin().open("loopback").expect("a port");
    let config = PortConfig::new(pool.clone()).ring(1024);
    let port = port.configure(config).expect("a configuration");
    let StartedPort { rx, tx, .. } = port.start().expect("a start");
    let mut ledger = Ledger::new();
    ledger.add("queue", rx[0].tally());
    let config = EthernetConfig {
        routes: Routes::new(&topology),
        owners: Vec::new(),
        within,
        max_frame: 1024,
        crc: false,
        damage: None,
        tally: Tally::new(),
    };
    let cache = pool.cache(64).expect("a cache");
    let carrier = Ethernet::new(config, rx, tx, cache).expect("a carrier");
    (carrier, ledger)
}

fn flow(mep: u64) -> Flow {
    Flow {
        run: 1,
        mep,
        event: 3 * mep,
        count: 3,
        descriptor: Descriptor(2),
        generation: 1,
        attempt: 0,
        part: 0,
        loops: 0,
        hold: false,
        members: Feeders::first(3),
        pending: Feeders::first(3),
        decided: 0,
    }
}

fn request(mep: u64) -> Message {
    Message::Request(Request {
        run: 1,
        feeder: 1,
        mep,
        event: 0,
        count: 1,
        descriptor: Descriptor(2),
        generation: 1,
        attempt: 0,
        part: 0,
        hold: false,
        members: Feeders::first(3),
    })
}

fn ack(mep: u64) -> Message {
    Message::Ack(Ack { run: 1, mep })
}

/// What a feeder sends.
#[derive(Clone, Copy, Debug)]
enum Sent {
    Ack(u64),
    Flow(u64),
    Request(u64),
    Fragment(u64, u32),
}

fn send(out: &mut impl Outbox, feeder: u8, sent: Sent) {
    match sent {
        Sent::Ack(mep) => out.send(Address::Node((mep % 4) as u16), &ack(mep)),
        Sent::Flow(mep) => out.send(Address::Feeder(1), &Message::Flow(flow(mep))),
        Sent::Request(mep) => out.send(Address::Feeder(1), &request(mep)),
        Sent::Fragment(mep, bytes) => {
            let (store, flow) = (Mockup::new(bytes, 0), flow(mep));
            let outgoing = Outgoing::new(feeder, &flow, &store, 800);
            out.transfer(2, &outgoing);
        }
    }
}

type Read = (Address, Message, Option<Vec<u8>>);
type Log = Rc<RefCell<Vec<Read>>>;

/// A member that notes what it receives.
struct Noting {
    address: Address,
    log: Log,
    /// What it sends when a message arrives, beside what it passes on.
    sends: Vec<Sent>,
}

impl Noting {
    fn note(&mut self, message: &Message, payload: Option<Vec<u8>>, out: &mut impl Outbox) {
        self.log
            .borrow_mut()
            .push((self.address, *message, payload));
        let feeder = self.feeder();
        for sent in self.sends.drain(..) {
            send(out, feeder, sent);
        }
    }

    /// The number of a feeder.
    fn feeder(&self) -> u8 {
        match self.address {
            Address::Feeder(feeder) => feeder,
            _ => 0,
        }
    }
}

/// A member without payloads, and one with them.
struct Plain(Noting);
struct Taking(Noting);

impl Role for Plain {
    type Payload = ();

    fn receive(&mut self, _: Time, message: &Message, (): (), out: &mut impl Outbox) {
        self.0.note(message, None, out);
    }

    fn poll(&mut self, _: Time, _: &mut impl Outbox) {}

    fn next_deadline(&self) -> Time {
        Time::MAX
    }
}

/// A feeder transfers, and passes the message on.
impl Hop for Plain {
    fn pass(&mut self, flow: &mut Flow, out: &mut impl Outbox) -> Option<Address> {
        self.0.note(&Message::Flow(*flow), None, out);
        send(out, self.0.feeder(), Sent::Fragment(flow.mep, 8));
        match self.0.address {
            Address::Feeder(feeder) if feeder < 2 => Some(Address::Feeder(feeder + 1)),
            _ => None,
        }
    }
}

impl Role for Taking {
    type Payload = Option<Payload>;

    fn receive(
        &mut self,
        _: Time,
        message: &Message,
        payload: Option<Payload>,
        out: &mut impl Outbox,
    ) {
        let payload = payload.map(|payload| payload.to_vec());
        self.0.note(message, payload, out);
    }

    fn poll(&mut self, _: Time, _: &mut impl Outbox) {}

    fn next_deadline(&self) -> Time {
        Time::MAX
    }
}

impl Builder for Taking {}

/// All members of the farm in a loop, and what they receive.
fn members() -> (Members<Plain, Plain, Plain, Taking>, Log) {
    let log = Log::default();
    let noting = |address| Noting {
        address,
        log: Rc::clone(&log),
        sends: Vec::new(),
    };
    let members = Members {
        scheduler: Some(Plain(noting(Address::Scheduler))),
        results: Some(Plain(noting(Address::Results))),
        first_feeder: 0,
        feeders: (0..3).map(|n| Plain(noting(Address::Feeder(n)))).collect(),
        node_numbers: Numbers::from(0..4),
        nodes: (0..4).map(|n| Taking(noting(Address::Node(n)))).collect(),
        due: Time::MAX,
    };
    (members, log)
}

/// Delivers until nothing is under way.
fn deliver(members: &mut Members<Plain, Plain, Plain, Taking>, carrier: &mut Ethernet) {
    while !carrier.is_empty() {
        carrier.flush();
        while let Some(arrival) = carrier.next() {
            assert!(members.deliver(Time::ZERO, arrival, carrier));
        }
    }
}

fn sent() -> impl Strategy<Value = Sent> {
    (0..4_u8, 0..1000_u64, 0..300_u32).prop_map(|(kind, mep, bytes)| match kind {
        0 => Sent::Ack(mep),
        1 => Sent::Flow(mep),
        2 => Sent::Request(mep),
        _ => Sent::Fragment(mep, bytes),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn what_is_handed_over_is_what_frames_carry(
        from in 0..3_u8,
        all in prop::collection::vec(sent(), 1..200),
    ) {
        let [over, framed] = [Some(0), None].map(|within| {
            let (mut carrier, ledger) = rig(within);
            let (mut members, log) = members();
            members.feeders[usize::from(from)].0.sends.clone_from(&all);
            carrier.set_sender(Address::Scheduler);
            carrier.send(Address::Feeder(from), &ack(0));
            deliver(&mut members, &mut carrier);
            let mut read = log.take();
            let handed = within.map_or(0, |_| read.len() as u64);
            assert_eq!(carrier.handed_over(), handed);
            assert_eq!(ledger.balance().from_wire == 0, within.is_some());
            // The order is another one.
            read.sort_by_key(|read| format!("{read:?}"));
            read
        });
        prop_assert!(over.len() > all.len());
        prop_assert_eq!(over, framed);
    }
}

#[test]
fn an_event_is_finished_before_the_next_one_begins() {
    let (mut carrier, _ledger) = rig(Some(0));
    let (mut members, log) = members();
    carrier.set_sender(Address::Scheduler);
    for mep in 1..3 {
        carrier.send(Address::Feeder(0), &Message::Flow(flow(mep)));
    }
    deliver(&mut members, &mut carrier);
    let order = log.take().into_iter().map(|read| match read {
        (Address::Feeder(feeder), Message::Flow(flow), _) => (flow.mep, Some(feeder)),
        (Address::Node(2), Message::Fragment(fragment), Some(_)) => (fragment.mep, None),
        other => panic!("{other:?}"),
    });
    // All of its fragments at a time, behind the feeders of the loop.
    let event = |mep| {
        let feeders = (0..3).map(move |feeder| (mep, Some(feeder)));
        feeders.chain(std::iter::repeat_n((mep, None), 3))
    };
    assert!(order.eq(event(1).chain(event(2))));
}

/// All that a carrier has.
fn read(carrier: &mut Ethernet) -> Vec<Message> {
    std::iter::from_fn(|| carrier.next())
        .map(|arrival| arrival.message)
        .collect()
}

#[test]
fn what_has_no_room_goes_by_frames() {
    let (mut carrier, ledger) = rig(Some(0));
    for mep in 0..5000 {
        send(&mut carrier, 0, Sent::Ack(mep));
    }
    carrier.flush();
    let (all, handed) = (read(&mut carrier), carrier.handed_over());
    assert_eq!(all.len(), 5000);
    assert!(handed < 5000 && ledger.balance().from_wire > 0, "{handed}");
    assert!(carrier.is_empty());
}
