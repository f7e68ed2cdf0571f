//! The carrier of Ethernet frames: what it sends it reads, and what is no message it counts.

#![allow(clippy::expect_used)]

use pollux_farm::carrier::{Carrier, Ethernet, EthernetConfig, Routes, mac_of};
use pollux_farm::fragments::{Fragments, Outgoing};
use pollux_farm::message::{Ack, Alive, Flow, Member, Message};
use pollux_farm::role::{Address, Outbox};
use pollux_farm::topology::{Descriptor, Feeders, Topology};
use pollux_farm::wire;
use pollux_pmd::mempool::{Burst, Mempool, PoolConfig};
use pollux_pmd::{Ledger, PortConfig, Registry, StartedPort, Tally};
use proptest::prelude::*;

/// A carrier whose frames return to it, and a queue to send others.
struct Rig {
    carrier: Ethernet,
    raw: pollux_pmd::TxQueue,
    pool: Mempool,
    ledger: Ledger,
}

fn topology() -> Topology {
    Topology::regular(3, 2, 4, 2).expect("a farm")
}

fn rig(owners: Vec<Address>) -> Rig {
    rig_with(owners, Routes::new(&topology()), 1024)
}

fn rig_with(owners: Vec<Address>, routes: Routes, ring: usize) -> Rig {
    let config = PoolConfig {
        buffers: 512,
        ..PoolConfig::default()
    };
    let pool = Mempool::new(config).expect("a pool");
    let port = Registry::builtin().open("loopback").expect("a port");
    let config = PortConfig::new(pool.clone())
        .rx_queues(3)
        .tx_queues(3)
        .ring(ring);
    let port = port.configure(config).expect("a configuration");
    let StartedPort { rx, mut tx, .. } = port.start().expect("a start");
    let (mut ledger, tally) = (Ledger::new(), Tally::new());
    for queue in &rx {
        ledger.add("queue", queue.tally());
    }
    ledger.add("carrier", tally.view());
    let raw = tx.pop().expect("a queue");
    let config = EthernetConfig {
        routes,
        owners,
        within: None,
        max_frame: 1024,
        crc: true,
        damage: None,
        tally,
    };
    let cache = pool.cache(64).expect("a cache");
    let carrier = Ethernet::new(config, rx, tx, cache).expect("a carrier");
    Rig {
        carrier,
        raw,
        pool,
        ledger,
    }
}

impl Rig {
    fn send(&mut self, bytes: &[u8]) {
        let mut cache = self.pool.cache(2).expect("a cache");
        let mut frame = cache.alloc().expect("a buffer");
        frame
            .append(bytes.len())
            .expect("room")
            .copy_from_slice(bytes);
        let mut burst = Burst::<1>::new();
        burst.push(frame).expect("room");
        assert_eq!(self.raw.tx(&mut cache, &mut burst), 1);
    }

    /// Reads all that is there.
    fn read(&mut self) -> Vec<(Address, Message)> {
        let mut read = Vec::new();
        while let Some(arrival) = self.carrier.next() {
            read.push((arrival.to, arrival.message));
        }
        read
    }
}

/// A frame with messages.
fn frame(to: Address, messages: &[Message]) -> Vec<u8> {
    let mut bytes = [mac_of(to).0, mac_of(Address::Results).0].concat();
    bytes.extend([0x88, 0xB5]);
    for message in messages {
        bytes.extend(wire::encode(message));
    }
    bytes
}

fn ack(mep: u64) -> Message {
    Message::Ack(Ack { run: 1, mep })
}

#[test]
fn messages_to_one_member_share_frames() {
    let mut rig = rig(Vec::new());
    for mep in 0..100 {
        rig.carrier.send(Address::Node((mep % 4) as u16), &ack(mep));
    }
    rig.carrier.flush();
    let read = rig.read();
    for node in 0..4 {
        let of_node = read.iter().filter(|(to, _)| *to == Address::Node(node));
        let expected = (0..100).filter(|mep| mep % 4 == u64::from(node));
        assert!(of_node.map(|(_, message)| *message).eq(expected.map(ack)));
    }
    // A frame of 1024 bytes holds 15 messages.
    let balance = rig.ledger.check().expect("a balance");
    assert_eq!((balance.from_wire, balance.delivered), (8, 8));
    assert!(rig.carrier.is_empty());
}

/// Bytes of an event's data.
const DATA: usize = 96;

/// Data that tell the event.
struct Store;

impl Fragments for Store {
    fn length(&self, _: u64, _: u8) -> Option<u32> {
        Some(DATA as u32)
    }

    fn write(&self, event: u64, _: u8, into: &mut [u8]) {
        into.fill(event as u8);
    }

    fn release(&mut self, _: u64) {}
}

/// What a feeder is asked for.
fn flow(event: u64) -> Flow {
    Flow {
        run: 1,
        mep: event,
        event,
        count: 1,
        descriptor: Descriptor(0),
        generation: 1,
        attempt: 1,
        part: 0,
        loops: 0,
        hold: false,
        members: Feeders::first(3),
        pending: Feeders::first(3),
        decided: 0,
    }
}

/// What a feeder has of an event.
fn outgoing(feeder: u8, flow: &Flow) -> Outgoing<'_, Store> {
    Outgoing::new(feeder, flow, &Store, 1024)
}

#[test]
fn fragments_share_frames_and_keep_them() {
    let mut rig = rig(Vec::new());
    let free = rig.pool.available();
    for event in 0..8 {
        for feeder in 0..3 {
            rig.carrier.transfer(1, &outgoing(feeder, &flow(event)));
        }
        rig.carrier.send(Address::Node(1), &ack(event));
    }
    rig.carrier.flush();
    let mut kept = Vec::new();
    let mut acks = 0..;
    while let Some(arrival) = rig.carrier.next() {
        assert_eq!(arrival.to, Address::Node(1));
        match (arrival.message, arrival.payload) {
            (Message::Fragment(fragment), Some(payload)) => kept.push((fragment, payload)),
            (message, None) => assert_eq!(Some(message), acks.next().map(ack)),
            other => panic!("{other:?}"),
        }
    }
    // A frame of 1024 bytes holds five fragments of 168 bytes, and messages.
    let balance = rig.ledger.check().expect("a balance");
    assert_eq!((balance.from_wire, balance.delivered), (5, 5));
    assert!(rig.carrier.is_empty());
    let sent = (0..8).flat_map(|event| (0..3).map(move |feeder| (feeder, event)));
    assert!(kept.iter().map(|(f, _)| (f.feeder, f.event)).eq(sent));
    // In another order than they came, and while others send.
    while !kept.is_empty() {
        let (fragment, payload) = kept.swap_remove(kept.len() / 2);
        let data = payload.get(8..).expect("data");
        assert_eq!(data, [fragment.event as u8; DATA]);
        drop(payload);
        rig.carrier.transfer(2, &outgoing(0, &flow(fragment.event)));
        rig.carrier.flush();
        while rig.carrier.next().is_some() {}
    }
    drop(rig.carrier);
    assert_eq!(rig.pool.available(), free);
}

#[test]
fn over_a_switch_each_sender_is_learned_and_what_is_flooded_is_not_taken() {
    let (here, there) = (Address::Node(1), Address::Node(2));
    let mut routes = Routes::over_switch(&topology(), 1);
    routes.set(here, 1).expect("a member");
    let mut rig = rig_with(Vec::new(), routes, 64);
    for (from, mep) in [(0, 1), (0, 2), (1, 3)] {
        rig.carrier.set_sender(Address::Feeder(from));
        rig.carrier.send(here, &ack(mep));
        rig.carrier.send(there, &ack(mep));
    }
    rig.carrier.flush();
    assert_eq!(rig.read(), [1, 2, 3].map(|mep| (here, ack(mep))));
    // Over the switch a frame from each sender; back to the loop one of both.
    let balance = rig.ledger.check().expect("a balance");
    assert_eq!((balance.delivered, balance.dropped_total()), (1, 2));
    // The switch knows both now, until the next sign of life.
    let alive = Message::Alive(Alive {
        run: 1,
        from: Member::Feeder(0),
    });
    for (first, frames) in [(ack(4), 1), (alive, 2)] {
        let before = rig.ledger.check().expect("a balance").dropped_total();
        for (from, message) in [(0, first), (1, ack(5)), (0, ack(6)), (1, ack(7))] {
            rig.carrier.set_sender(Address::Feeder(from));
            rig.carrier.send(there, &message);
        }
        rig.carrier.flush();
        assert_eq!(rig.read(), []);
        let balance = rig.ledger.check().expect("a balance");
        assert_eq!(balance.dropped_total() - before, frames);
    }
}

#[test]
fn members_of_a_loop_are_announced_to_the_switch() {
    let mut routes = Routes::over_switch(&topology(), 1);
    for member in [Address::Scheduler, Address::Feeder(2), Address::Node(3)] {
        routes.set(member, 1).expect("a member");
    }
    let mut rig = rig_with(Vec::new(), routes, 64);
    rig.carrier.announce();
    rig.carrier.flush();
    // They come back here, where they say nothing, and are not dropped.
    assert_eq!(rig.read(), []);
    let balance = rig.ledger.check().expect("a balance");
    assert_eq!((balance.delivered, balance.dropped_total()), (3, 0));
    assert_eq!(balance.bytes, 3 * 60);
    // Others are: of another protocol, and to another group.
    let mut other = frame(Address::Node(1), &[]);
    other[..6].fill(0xFF);
    rig.send(&other);
    other[13] ^= 1;
    rig.send(&other);
    other[13] ^= 1;
    other[5] = 1;
    rig.send(&other);
    assert_eq!(rig.read(), []);
    let balance = rig.ledger.check().expect("a balance");
    assert_eq!((balance.delivered, balance.dropped_total()), (4, 2));
    // Without a switch there is nothing to learn.
    let mut rig = self::rig(Vec::new());
    rig.carrier.announce();
    rig.carrier.flush();
    assert_eq!(rig.ledger.check().expect("a balance").from_wire, 0);
}

#[test]
fn frames_wait_for_a_full_queue_in_their_order() {
    for backlog in [0, 300] {
        let routes = Routes::new(&topology());
        let mut rig = rig_with(Vec::new(), routes, 64);
        rig.carrier = rig.carrier.with_backlog(backlog);
        for mep in 0..400 {
            rig.carrier.send(Address::Node(0), &ack(mep));
            rig.carrier.flush();
        }
        let mut read = Vec::new();
        while !rig.carrier.is_empty() || read.is_empty() {
            read.extend(rig.read());
            rig.carrier.flush();
        }
        read.extend(rig.read());
        let lost = rig.carrier.unsent().queue_full;
        assert_eq!(read.len() as u64 + lost, 400);
        // In the ring, in the burst, and behind it.
        assert_eq!(read.len().min(400), (64 + 64 + backlog).min(400));
        assert!(read.is_sorted_by_key(|(_, message)| match message {
            Message::Ack(ack) => ack.mep,
            _ => u64::MAX,
        }));
    }
}

#[test]
fn frames_of_other_members_are_not_taken() {
    let node = Address::Node(1);
    let mut rig = rig(vec![node; 3]);
    rig.send(&frame(Address::Node(2), &[ack(1)]));
    rig.send(&frame(node, &[ack(2), ack(3)]));
    assert_eq!(rig.read(), [(node, ack(2)), (node, ack(3))]);
    let balance = rig.ledger.check().expect("a balance");
    assert_eq!((balance.delivered, balance.dropped_total()), (1, 1));
}

#[test]
fn members_that_are_not_there_get_nothing() {
    let mut rig = rig(Vec::new());
    rig.carrier.send(Address::Node(4), &ack(1));
    rig.carrier.send(Address::Feeder(3), &ack(1));
    rig.carrier.flush();
    assert_eq!(rig.read(), []);
    assert_eq!(rig.carrier.unsent().no_member, 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_frame_is_read_or_counted(
        frames in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..200), 0..4_u8, 0..1500_usize, any::<u8>()),
            1..20,
        )
    ) {
        let mut rig = rig(Vec::new());
        for (bytes, kind, place, value) in &frames {
            let mut sent = frame(Address::Node(0), &[ack(7)]);
            let flow = flow(9);
            let outgoing = outgoing(1, &flow);
            let mut fragment = vec![0; outgoing.frame_len()];
            outgoing.write(true, &mut fragment).expect("room");
            sent.extend(fragment);
            sent.extend(wire::encode(&ack(8)));
            match kind {
                0 => sent.clone_from(bytes),
                1 => sent.truncate(*place),
                2 => sent.extend(bytes),
                _ => {
                    let place = place % sent.len();
                    sent[place] = *value;
                }
            }
            rig.send(&sent);
        }
        while let Some(arrival) = rig.carrier.next() {
            // A changed destination may name another member; a changed message is refused.
            match (arrival.message, arrival.payload) {
                (Message::Fragment(fragment), Some(payload)) => {
                    prop_assert_eq!((fragment.feeder, fragment.event), (1, 9));
                    prop_assert_eq!(payload.get(8..), Some(&[9; DATA][..]));
                }
                (message, None) => prop_assert!(message == ack(7) || message == ack(8)),
                other => prop_assert!(false, "{:?}", other),
            }
        }
        let balance = rig.ledger.check();
        prop_assert!(balance.is_ok_and(|b| b.from_wire == frames.len() as u64));
        prop_assert!(rig.carrier.is_empty());
    }
}
