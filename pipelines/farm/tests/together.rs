//! A node does with fragments that come together what it does with one after the other, and does not
//! count on those whose payload is not there.

#![allow(clippy::expect_used)]

use pollux_farm::fragments::{Fragments, Outgoing};
use pollux_farm::message::{Ack, Assign, Fragment, Message, Withdraw};
use pollux_farm::node::{Built, Config, Counters, Node, Step};
use pollux_farm::role::{Address, Builder, Outbox, Role, Transfer};
use pollux_farm::time::Time;
use pollux_farm::topology::{Descriptor, Feeders, Topology};
use proptest::prelude::*;

const RUN: u32 = 1;
const BEAT: Time = Time::from_ns(1000);

/// What a node sends.
#[derive(Default)]
struct Sent(Vec<(Address, Message)>);

impl Outbox for Sent {
    fn send(&mut self, to: Address, message: &Message) {
        self.0.push((to, *message));
    }

    fn transfer(&mut self, _: u16, _: &Outgoing<'_, impl Fragments>) -> Transfer {
        Transfer::Done
    }
}

/// What a node receives.
#[derive(Clone, Copy, Debug)]
enum Received {
    /// Fragments that come together: what they have in common, their feeders, and how many of these have
    /// a payload.
    Together(Fragment, Feeders, usize),
    /// Any other message, and the time after it.
    Message(Message, Time),
}

/// What makes a MEP of a buffer.
type Mep = (u64, Descriptor, u32, u16, u8, u16, Feeders);

/// One of few MEPs, of which each has a buffer, and most messages have the same to say. Some are of another
/// attempt or part, and one thing of few is wrong.
fn mep() -> impl Strategy<Value = Mep> {
    let place = (0..4_u64, 0..4_u16, 0..3_u32, 0..2_u16, 0..2_u8, 1..3_u16);
    (place, 1..16_u64, 0..24_u8).prop_map(|(place, members, odd)| {
        let (mep, descriptor, generation, attempt, part, count) = place;
        let usual = (Descriptor((mep % 2) as u16), 1 + (mep / 2) as u32);
        (
            mep,
            if odd == 0 {
                Descriptor(descriptor)
            } else {
                usual.0
            },
            if odd == 1 { generation } else { usual.1 },
            if odd < 6 { attempt } else { 0 },
            if odd < 10 { part } else { 0 },
            if odd == 2 { count } else { 1 },
            Feeders(if odd == 3 { members } else { 7 }),
        )
    })
}

fn together() -> impl Strategy<Value = Received> {
    let rest = (0..20_u32, 0..2_u16, 0..8_u32, 1..16_u64, 0..12_usize);
    (mep(), rest).prop_map(|(mep, (run, absent, bytes, feeders, payloads))| {
        let (mep, descriptor, generation, attempt, part, count, members) = mep;
        let fragment = Fragment {
            // Few are of another run, or larger than a slot.
            run: if run == 0 { 0 } else { RUN },
            feeder: feeders.trailing_zeros() as u8,
            mep,
            event: mep,
            count,
            descriptor,
            generation,
            attempt,
            part,
            members,
            absent,
            bytes: if bytes == 0 { 200 } else { 100 },
            payload_crc: None,
        };
        // Most have all of their payloads.
        Received::Together(fragment, Feeders(feeders), payloads)
    })
}

fn other() -> impl Strategy<Value = Received> {
    (mep(), 0..8_u8, 0..1200_u64).prop_map(|(mep, kind, time)| {
        let (mep, descriptor, generation, attempt, part, count, members) = mep;
        let message = match kind {
            0 => Message::Ack(Ack { run: RUN, mep }),
            1 => Message::Withdraw(Withdraw {
                run: RUN,
                descriptor,
                generation,
            }),
            _ => Message::Assign(Assign {
                run: RUN,
                mep,
                event: mep,
                count,
                descriptor,
                generation,
                attempt,
                part,
                loops: 1,
                members,
            }),
        };
        Received::Message(message, Time::from_ns(time))
    })
}

fn received() -> impl Strategy<Value = Received> {
    prop_oneof![3 => together(), 1 => other()]
}

type Log = Vec<(u64, Feeders, u16, Vec<Option<u8>>)>;

/// What a node sends, has in its events, and counts.
#[derive(Debug, PartialEq)]
struct Outcome {
    sent: Vec<(Address, Message)>,
    counters: Counters,
    missing: Vec<u64>,
    log: Log,
}

fn config() -> (Config, Topology) {
    let config = Config {
        run: RUN,
        id: 0,
        slot: 100,
        workers: 1,
        beat: BEAT,
    };
    let topology = Topology::regular(3, 1, 1, 3).expect("a farm");
    (config, topology)
}

fn outcome(all: &[Received], credits: Option<usize>, at_once: bool) -> Outcome {
    let (config, topology) = config();
    let mut log = Log::new();
    let work = |_: Time, built: &Built<'_, u8>| {
        let fragments = [built.fragments, built.second].concat();
        log.push((built.mep, built.missing, built.absent, fragments));
        if built.has_second || built.mep == 0 {
            Step::Decide(1)
        } else {
            Step::More
        }
    };
    let mut now = Time::ZERO;
    let mut node = Node::new(config, &topology, work, now).expect("a node");
    if let Some(credits) = credits {
        node = node.with_credits(credits).expect("credits");
    }
    let (mut sent, mut without) = (Sent::default(), 0);
    for received in all {
        match *received {
            Received::Message(message, time) => {
                node.receive(now, &message, 0, &mut sent);
                now = now + time;
                node.poll(now, &mut sent);
            }
            Received::Together(fragment, feeders, payloads) if at_once => {
                let payloads = feeders.iter().take(payloads);
                node.receive_all(now, &fragment, feeders, payloads, &mut sent);
            }
            Received::Together(fragment, feeders, payloads) => {
                without += feeders.len().saturating_sub(payloads) as u64;
                for feeder in feeders.iter().take(payloads) {
                    let message = Message::Fragment(Fragment { feeder, ..fragment });
                    node.receive(now, &message, feeder, &mut sent);
                }
            }
        }
    }
    let mut counters = *node.counters();
    counters.without_payload += without;
    let missing = node.missing().to_vec();
    drop(node);
    let sent = sent.0;
    Outcome {
        sent,
        counters,
        missing,
        log,
    }
}

proptest! {
    #[test]
    fn together_is_as_one_after_the_other(
        all in prop::collection::vec(received(), 1..60),
        credits in prop::option::of(1..5_usize),
    ) {
        let [one, other] = [false, true].map(|at_once| outcome(&all, credits, at_once));
        // What counts as here has its payload.
        for (mep, missing, absent, fragments) in &other.log {
            let (first, _) = fragments.split_at(3);
            for (feeder, payload) in (0..).zip(first) {
                let is_left_out = missing.has(feeder) || *absent > 0;
                prop_assert!(payload.is_some() || is_left_out, "{} {}", mep, feeder);
            }
        }
        prop_assert_eq!(one, other);
    }
}

/// A MEP of three feeders, and what comes of it.
fn first_mep() -> (Fragment, Assign) {
    let members = Feeders::first(3);
    let (run, mep, event, count, generation) = (RUN, 0, 0, 1, 1);
    let fragment = Fragment {
        run,
        feeder: 0,
        mep,
        event,
        count,
        descriptor: Descriptor(0),
        generation,
        attempt: 0,
        part: 0,
        members,
        absent: 0,
        bytes: 16,
        payload_crc: None,
    };
    let assign = Assign {
        run,
        mep,
        event,
        count,
        descriptor: Descriptor(0),
        generation,
        attempt: 0,
        part: 0,
        loops: 1,
        members,
    };
    (fragment, assign)
}

#[test]
fn what_has_no_payload_is_sent_again() {
    // All at a time behind the first one; and where the node asks for them.
    for credits in [None, Some(3)] {
        let (fragment, assign) = first_mep();
        let members = fragment.members;
        let begin = match credits {
            Some(_) => Received::Message(Message::Assign(assign), Time::ZERO),
            None => Received::Together(fragment, Feeders::only(0), 1),
        };
        let rest = match credits {
            Some(_) => members,
            None => members.without(Feeders::only(0)),
        };
        let lost = [begin, Received::Together(fragment, rest, rest.len() - 1)];
        let before = outcome(&lost, credits, true);
        assert_eq!(before.log, []);
        assert_eq!(
            (before.counters.placed, before.counters.without_payload),
            (2, 1)
        );
        // The last one comes again, alone.
        let again = Received::Together(fragment, Feeders::only(2), 1);
        let after = outcome(&[lost[0], lost[1], again], credits, true);
        let fragments = vec![Some(0), Some(1), Some(2), None, None, None];
        assert_eq!(after.log, [(0, Feeders::NONE, 0, fragments)]);
        assert_eq!((after.counters.placed, after.counters.complete), (3, 1));
    }
}

#[test]
fn assigned_fragments_come_together() {
    let (fragment, assign) = first_mep();
    let assigned = Received::Message(Message::Assign(assign), Time::ZERO);
    let together = Received::Together(fragment, fragment.members, 3);
    let outcome = outcome(&[together, assigned, together, together], Some(3), true);
    // What was not assigned begins nothing, and what is built takes no more.
    let counters = outcome.counters;
    assert_eq!((counters.unasked, counters.placed), (3, 3));
    assert_eq!((counters.requested, counters.late), (3, 3));
    assert_eq!(outcome.log.len(), 1);
    let requests = outcome.sent.iter();
    let requests = requests.filter(|(_, message)| matches!(message, Message::Request(_)));
    assert_eq!(requests.count(), 3);
}
