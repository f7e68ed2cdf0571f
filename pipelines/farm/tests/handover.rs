//! Messages between members of one loop: handed over, they are those that frames carry, and an event
//! is finished before the next one begins.

#![allow(clippy::expect_used)]

use pollux_farm::carrier::{Carrier, Ethernet, EthernetConfig, Routes};
use pollux_farm::feeder::mockup::Mockup;
use pollux_farm::fragments::Outgoing;
use pollux_farm::message::{Ack, Flow, Message, Request};
use pollux_farm::role::{Address, Outbox};
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

/// What one member sends.
#[derive(Clone, Copy, Debug)]
enum Sent {
    Ack(u64),
    Flow(u64),
    Request(u64),
    Fragment(u64, u32),
}

fn send(carrier: &mut Ethernet, sent: Sent) {
    match sent {
        Sent::Ack(mep) => carrier.send(Address::Node((mep % 4) as u16), &ack(mep)),
        Sent::Flow(mep) => carrier.send(Address::Feeder(1), &Message::Flow(flow(mep))),
        Sent::Request(mep) => carrier.send(Address::Feeder(1), &request(mep)),
        Sent::Fragment(mep, bytes) => {
            let store = Mockup::new(bytes, 0);
            let outgoing = Outgoing::new(0, &flow(mep), &store, 800);
            carrier.transfer(2, &outgoing);
        }
    }
}

type Read = (Address, Message, Option<Vec<u8>>);

fn read(carrier: &mut Ethernet) -> Vec<Read> {
    let mut read = Vec::new();
    while let Some(arrival) = carrier.next() {
        let payload = arrival.payload.map(|payload| payload.to_vec());
        read.push((arrival.to, arrival.message, payload));
    }
    read
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
        let [mut over, mut framed] = [Some(0), None].map(|within| {
            let (mut carrier, ledger) = rig(within);
            carrier.set_sender(Address::Feeder(from));
            for &sent in &all {
                send(&mut carrier, sent);
            }
            carrier.flush();
            let read = read(&mut carrier);
            assert!(carrier.is_empty());
            let handed = within.map_or(0, |_| all.len() as u64);
            assert_eq!(carrier.handed_over(), handed);
            assert_eq!(ledger.balance().from_wire == 0, within.is_some());
            read
        });
        // The order is another one.
        over.sort_by_key(|read| format!("{read:?}"));
        framed.sort_by_key(|read| format!("{read:?}"));
        prop_assert_eq!(over, framed);
    }
}

#[test]
fn an_event_is_finished_before_the_next_one_begins() {
    let (mut carrier, _ledger) = rig(Some(0));
    carrier.set_sender(Address::Scheduler);
    send(&mut carrier, Sent::Flow(1));
    send(&mut carrier, Sent::Flow(2));
    let mut order = Vec::new();
    while let Some(arrival) = carrier.next() {
        carrier.set_sender(arrival.to);
        match arrival.message {
            // Each feeder transfers, and passes the message on.
            Message::Flow(flow) => {
                let feeder = match arrival.to {
                    Address::Feeder(feeder) => feeder,
                    to => panic!("{to:?}"),
                };
                order.push((flow.mep, "flow"));
                send(&mut carrier, Sent::Fragment(flow.mep, 8));
                if feeder < 2 {
                    carrier.send(Address::Feeder(feeder + 1), &Message::Flow(flow));
                }
            }
            Message::Fragment(fragment) => order.push((fragment.mep, "fragment")),
            other => panic!("{other:?}"),
        }
    }
    let event = |mep| {
        [
            (mep, "flow"),
            (mep, "flow"),
            (mep, "fragment"),
            (mep, "fragment"),
        ]
    };
    assert_eq!(order, [event(1), event(2)].concat());
}

#[test]
fn what_has_no_room_goes_by_frames() {
    let (mut carrier, ledger) = rig(Some(0));
    for mep in 0..5000 {
        send(&mut carrier, Sent::Ack(mep));
    }
    carrier.flush();
    let (all, handed) = (read(&mut carrier), carrier.handed_over());
    assert_eq!(all.len(), 5000);
    assert!(handed < 5000 && ledger.balance().from_wire > 0, "{handed}");
    assert!(carrier.is_empty());
}
