//! Arbitrary messages to the roles of a farm: what a role sends can be read, and is bounded. A node that
//! takes fragments together does what another one does that takes each for itself.
//!
//! An input is the policy, and a list of records: a role, a time step, and the header of a message,
//! whose version and CRC are set.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_farm::feeder::store::Store;
use pollux_farm::feeder::{self, Feeder};
use pollux_farm::fragments::{Fragments, Outgoing};
use pollux_farm::message::{Fragment, Message};
use pollux_farm::node::{self, Built, Node, Step, Work};
use pollux_farm::results::{self, Results};
use pollux_farm::role::{Address, Builder, Outbox, Role, Transfer};
use pollux_farm::scheduler::{Config, Policy, Scheduler, Source};
use pollux_farm::time::Time;
use pollux_farm::topology::{Feeders, Topology};
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

/// What a node has seen of a MEP: its fragments by feeder, and what it said of them.
#[derive(Debug, PartialEq)]
struct Seen {
    mep: u64,
    missing: Feeders,
    absent: u16,
    fragments: Vec<Option<u8>>,
}

/// The work of a node, whose payloads are the numbers of the feeders.
#[derive(Default)]
struct Checking(Vec<Seen>);

impl Work<u8> for Checking {
    fn work(&mut self, now: Time, built: &Built<'_, u8>) -> Step {
        for (feeder, fragment) in (0..).zip(built.fragments) {
            assert!(fragment.is_none_or(|from| from == feeder));
            // What counts as here is here.
            let is_left_out = built.missing.has(feeder) || built.absent > 0;
            assert!(fragment.is_some() || is_left_out, "{feeder} of {built:?}");
        }
        self.0.push(Seen {
            mep: built.mep,
            missing: built.missing,
            absent: built.absent,
            fragments: [built.fragments, built.second].concat(),
        });
        match built.mep % 4 {
            0 if built.calls == 0 => Step::Wait(now + BEAT),
            1 => Step::More,
            _ => Step::Decide(built.mep),
        }
    }
}

/// A node, and another one that takes each fragment for itself.
struct Nodes {
    node: Node<u8, Checking>,
    twin: Node<u8, Checking>,
    /// Fragments that had no payload.
    without_payload: u64,
}

impl Nodes {
    /// Both do the same.
    fn both(&mut self, out: &mut Sent, what: impl Fn(&mut Node<u8, Checking>, &mut Sent)) {
        self.each(out, &what, &what);
    }

    /// Each does something, which comes to the same.
    fn each(
        &mut self,
        out: &mut Sent,
        of_node: impl Fn(&mut Node<u8, Checking>, &mut Sent),
        of_twin: impl Fn(&mut Node<u8, Checking>, &mut Sent),
    ) {
        let (before, mut sent) = (out.0.len(), Sent::default());
        of_node(&mut self.node, out);
        of_twin(&mut self.twin, &mut sent);
        assert_eq!(out.0[before..], sent.0);
        let (node, twin) = (&self.node, &self.twin);
        let expected = node::Counters {
            without_payload: self.without_payload,
            ..*twin.counters()
        };
        assert_eq!(*node.counters(), expected);
        assert_eq!(node.missing(), twin.missing());
        assert_eq!(node.in_use(), twin.in_use());
        assert_eq!(node.requested(), twin.requested());
        assert_eq!(node.next_deadline(), twin.next_deadline());
        assert_eq!(node.work().0, twin.work().0);
        self.node.work_mut().0.clear();
        self.twin.work_mut().0.clear();
    }

    fn receive(&mut self, now: Time, message: &Message, out: &mut Sent) {
        let payload = match message {
            Message::Fragment(fragment) => fragment.feeder,
            _ => 0,
        };
        self.both(out, |node, out| node.receive(now, message, payload, out));
    }

    /// Takes the fragment, and those of later feeders that take part, of which so many have a payload.
    fn receive_all(&mut self, now: Time, fragment: &Fragment, payloads: usize, out: &mut Sent) {
        let earlier = Feeders::first(fragment.feeder.into());
        let feeders = fragment.members.without(earlier);
        self.without_payload += feeders.len().saturating_sub(payloads) as u64;
        self.each(
            out,
            |node, out| {
                node.receive_all(now, fragment, feeders, feeders.iter().take(payloads), out)
            },
            |twin, out| {
                for feeder in feeders.iter().take(payloads) {
                    let fragment = Fragment {
                        feeder,
                        ..*fragment
                    };
                    twin.receive(now, &Message::Fragment(fragment), feeder, out);
                }
            },
        );
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
    let node = || Node::new(config, &topology, Checking::default(), now).expect("a node");
    let mut nodes = Nodes {
        node: node(),
        twin: node(),
        without_payload: 0,
    };
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
                2 if role & 0x10 != 0
                    && let Message::Fragment(fragment) = &message =>
                {
                    // All of them as a rule.
                    let payloads = if role & 8 == 0 {
                        usize::MAX
                    } else {
                        step.into()
                    };
                    nodes.receive_all(now, fragment, payloads, &mut out);
                }
                0 => scheduler.receive(now, &message, (), &mut out),
                1 => feeder.receive(now, &message, (), &mut out),
                2 => nodes.receive(now, &message, &mut out),
                _ => results.receive(now, &message, (), &mut out),
            }
        }
        // What the roles send reaches those that are here.
        if role & 0x20 != 0 {
            for (to, message) in std::mem::take(&mut out.0) {
                match to {
                    Address::Scheduler => scheduler.receive(now, &message, (), &mut out),
                    Address::Feeder(_) => feeder.receive(now, &message, (), &mut out),
                    Address::Node(_) => nodes.receive(now, &message, &mut out),
                    Address::Results => results.receive(now, &message, (), &mut out),
                }
            }
        }
        assert!(out.0.len() < 4096, "{} messages", out.0.len());
        now = now + Time::from_ns(u64::from(step) * 10);
        scheduler.poll(now, &mut out);
        feeder.poll(now, &mut out);
        nodes.both(&mut out, |node, out| node.poll(now, out));
        results.poll(now, &mut out);
        let deadlines = [
            scheduler.next_deadline(),
            feeder.next_deadline(),
            nodes.node.next_deadline(),
            results.next_deadline(),
        ];
        assert!(deadlines.iter().all(|&deadline| deadline > now));
        while results.fetch().is_some() {}
        assert!(scheduler.in_flight() <= IN_FLIGHT && scheduler.copies() <= IN_FLIGHT);
        assert!(feeder.queued() <= IN_FLIGHT + 1 && nodes.node.in_use() <= 2 + 8);
        assert!(nodes.node.requested() <= node::CREDITS);
    }
});
