//! A node does with fragments that come together what it does with one after the other.

#![allow(clippy::expect_used)]

use pollux_farm::fragments::{Fragments, Outgoing};
use pollux_farm::message::{Fragment, Message};
use pollux_farm::node::{Built, Config, Node, Step};
use pollux_farm::role::{Address, Builder, Outbox, Role, Transfer};
use pollux_farm::time::Time;
use pollux_farm::topology::{Descriptor, Feeders, Topology};
use proptest::prelude::*;

const RUN: u32 = 1;
const NOW: Time = Time::from_ns(1);

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

/// Fragments that come together: what they have in common, and their feeders.
type Together = (Fragment, Feeders);

fn together() -> impl Strategy<Value = Together> {
    let place = (0..20_u32, 0..3_u64, 0..4_u16, 0..3_u32);
    let part = (0..2_u16, 0..2_u8, 1..3_u16, 0..2_u16, 0..8_u32);
    let feeders = (1..16_u64, 1..16_u64);
    (place, part, feeders).prop_map(|(place, part, (feeders, members))| {
        let (run, mep, descriptor, generation) = place;
        let (attempt, part, count, absent, bytes) = part;
        let fragment = Fragment {
            // Few are of another run, or larger than a slot.
            run: if run == 0 { 0 } else { RUN },
            feeder: feeders.trailing_zeros() as u8,
            mep,
            event: mep,
            count,
            descriptor: Descriptor(descriptor),
            generation,
            attempt,
            part,
            // Most of all feeders.
            members: Feeders(if members < 8 { 7 } else { members }),
            absent,
            bytes: if bytes == 0 { 200 } else { 100 },
            payload_crc: None,
        };
        (fragment, Feeders(feeders))
    })
}

type Log = Vec<(u64, Feeders, u16, Vec<Option<u8>>)>;

/// What a node sends, has in its events, and counts.
fn outcome(all: &[Together], credits: bool, at_once: bool) -> String {
    let topology = Topology::regular(3, 1, 1, 3).expect("a farm");
    let config = Config {
        run: RUN,
        id: 0,
        slot: 100,
        workers: 1,
        beat: Time::from_ns(1000),
    };
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
    let mut node = Node::new(config, &topology, work, NOW).expect("a node");
    if credits {
        node = node.with_credits(4).expect("credits");
    }
    let mut sent = Sent::default();
    for (fragment, feeders) in all {
        if at_once {
            node.receive_all(NOW, fragment, *feeders, feeders.iter(), &mut sent);
            continue;
        }
        for feeder in feeders.iter() {
            let message = Message::Fragment(Fragment {
                feeder,
                ..*fragment
            });
            node.receive(NOW, &message, feeder, &mut sent);
        }
    }
    let counters = *node.counters();
    let missing = node.missing().to_vec();
    drop(node);
    format!("{:?} {counters:?} {missing:?} {log:?}", sent.0)
}

proptest! {
    #[test]
    fn together_is_as_one_after_the_other(
        all in prop::collection::vec(together(), 1..40),
        credits in any::<bool>(),
    ) {
        let [one, other] = [false, true].map(|at_once| outcome(&all, credits, at_once));
        prop_assert_eq!(one, other);
    }
}
