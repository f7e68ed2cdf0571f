//! Arbitrary messages to the roles of a farm: what a role sends can be read, and is bounded.
//!
//! An input is the policy, and a list of records: a role, a time step, and the header of a message,
//! whose version and CRC are set.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_farm::feeder::store::Store;
use pollux_farm::feeder::{self, Feeder};
use pollux_farm::fragments::{Fragments, Outgoing};
use pollux_farm::message::Message;
use pollux_farm::node::{self, Built, Node, Step};
use pollux_farm::results::{self, Results};
use pollux_farm::role::{Address, Outbox, Role, Transfer};
use pollux_farm::scheduler::{Config, Policy, Scheduler, Source};
use pollux_farm::time::Time;
use pollux_farm::topology::Topology;
use pollux_farm::wire;

const RUN: u32 = 0;
const IN_FLIGHT: usize = 16;
const BEAT: Time = Time::from_ns(1000);

/// Messages of one call.
#[derive(Default)]
struct Sent(Vec<(Address, Message)>);

impl Outbox for Sent {
    fn send(&mut self, to: Address, message: &Message) {
        let read = wire::decode(&wire::encode(message)).expect("what a role sends");
        assert_eq!(read, *message);
        self.0.push((to, *message));
    }

    fn transfer(&mut self, node: u16, outgoing: &Outgoing<'_, impl Fragments>) -> Transfer {
        let mut frame = vec![0; outgoing.frame_len()];
        outgoing.write(true, &mut frame).expect("room");
        self.0
            .push((Address::Node(node), Message::Fragment(outgoing.fragment())));
        if outgoing.fragment().mep % 3 == 0 {
            Transfer::Running
        } else {
            Transfer::Done
        }
    }
}

fn work(now: Time, built: &Built<'_, ()>) -> Step {
    match built.mep % 4 {
        0 if built.calls == 0 => Step::Wait(now + BEAT),
        1 => Step::More,
        _ => Step::Decide(built.mep),
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&policy, data)) = data.split_first() else {
        return;
    };
    let policy = match policy % 5 {
        0 => Policy::Ring,
        1 => Policy::Credits,
        2 => Policy::Slots { barrier: true },
        3 => Policy::Slots { barrier: false },
        _ => Policy::None,
    };
    let mut now = Time::ZERO;
    let topology = Topology::regular(3, 2, 4, 2).expect("a farm");
    let config = Config {
        policy,
        in_flight: IN_FLIGHT,
        pending: 4,
        loops: 2,
        pack: 2,
        ring_timeout: BEAT,
        event_timeout: BEAT,
        silence: Time::from_ns(4000),
        ..Config::new(RUN, topology.clone())
    };
    let mut scheduler = Scheduler::new(config, now).expect("a scheduler");
    let config = feeder::Config {
        run: RUN,
        id: 1,
        slot: 256,
        in_flight: IN_FLIGHT,
        bypass_above: 64,
        beat: BEAT,
    };
    let mut store = Store::new(64, 64);
    for event in 0..32 {
        let _ = store.push(event, 0, &[event as u8; 48]);
    }
    let mut feeder = Feeder::new(config, &topology, store, now).expect("a feeder");
    let config = node::Config {
        run: RUN,
        id: 1,
        slot: 256,
        workers: 1,
        beat: BEAT,
    };
    let mut node = Node::new(config, &topology, work, now).expect("a node");
    let config = results::Config {
        run: RUN,
        in_flight: IN_FLIGHT,
        beat: BEAT,
    };
    let mut results = Results::new(config, &topology, now).expect("a result node");

    let (records, _) = data.as_chunks::<{ wire::HEADER + 2 }>();
    for record in records {
        let &[role, step, ref header @ ..] = record;
        let mut header = *header;
        header[0] = wire::VERSION;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&header[..4]);
        crc.update(&header[8..]);
        header[4..8].copy_from_slice(&crc.finalize().to_le_bytes());
        let mut out = Sent::default();
        if role & 0x80 != 0 {
            scheduler.trigger(Source::Internal, u16::from(role & 7), now, &mut out);
        }
        if role & 0x40 != 0 {
            feeder.transferred(&mut out);
        }
        if let Ok(message) = wire::decode(&header) {
            match role % 4 {
                0 => scheduler.receive(now, &message, (), &mut out),
                1 => feeder.receive(now, &message, (), &mut out),
                2 => node.receive(now, &message, (), &mut out),
                _ => results.receive(now, &message, (), &mut out),
            }
        }
        // What the roles send reaches those that are here.
        if role & 0x20 != 0 {
            for (to, message) in std::mem::take(&mut out.0) {
                match to {
                    Address::Scheduler => scheduler.receive(now, &message, (), &mut out),
                    Address::Feeder(_) => feeder.receive(now, &message, (), &mut out),
                    Address::Node(_) => node.receive(now, &message, (), &mut out),
                    Address::Results => results.receive(now, &message, (), &mut out),
                }
            }
        }
        assert!(out.0.len() < 4096, "{} messages", out.0.len());
        now = now + Time::from_ns(u64::from(step) * 10);
        scheduler.poll(now, &mut out);
        feeder.poll(now, &mut out);
        node.poll(now, &mut out);
        results.poll(now, &mut out);
        let deadlines = [
            scheduler.next_deadline(),
            feeder.next_deadline(),
            node.next_deadline(),
            results.next_deadline(),
        ];
        assert!(deadlines.iter().all(|&deadline| deadline > now));
        while results.fetch().is_some() {}
        assert!(scheduler.in_flight() <= IN_FLIGHT && scheduler.copies() <= IN_FLIGHT);
        assert!(feeder.queued() <= IN_FLIGHT + 1 && node.in_use() <= 2 + 8);
        assert!(node.requested() <= node::CREDITS);
    }
});
