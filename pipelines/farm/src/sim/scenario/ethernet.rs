//! `ethernet`: policies on a switch that drops what its outputs have no room for.

use crate::sim::builder::{Builder, Parts, Triggers};
use crate::sim::network::{Ethernet, Link};
use crate::sim::policy::{Plan, PolicyName, Traffic};
use crate::sim::settings::{Key, Kind, Settings};
use crate::sim::sizes::{Shape, Sizes};
use crate::sim::statistics::{Progress, Results};
use crate::time::Time;

pub(super) const KEYS: &[Key] = &[
    Key {
        name: "ports",
        kind: Kind::Whole(1, 4096),
        default: "24",
        text: "sources, and as many nodes",
    },
    Key {
        name: "load",
        kind: Kind::RealOrMax(0.001, 1.0),
        default: "0.8",
        text: "mean load of the links; max: there is always another event",
    },
    Key {
        name: "triggers",
        kind: Kind::Word(&["regular", "poisson"]),
        default: "regular",
        text: "intervals between events",
    },
    Key {
        name: "bytes",
        kind: Kind::Whole(64, 9216),
        default: "1024",
        text: "mean size of a fragment in bytes, with all headers: one frame",
    },
    Shape::key("fixed"),
    Key {
        name: "buffer",
        kind: Kind::Whole(64, 1_000_000_000),
        default: "65536",
        text: "room of an output's queue in bytes",
    },
    Key {
        name: "gbps",
        kind: Kind::Whole(1, 1600),
        default: "10",
        text: "rate of each link in Gb/s",
    },
    Key {
        name: "hop_ns",
        kind: Kind::Whole(0, 1_000_000),
        default: "500",
        text: "latency of the switch, of a message from source to source, and of a request, in ns",
    },
    Key {
        name: "messages",
        kind: Kind::Whole(1, 65535),
        default: "240",
        text: "ring: messages on the ring at most",
    },
    Key {
        name: "outstanding",
        kind: Kind::Whole(1, 65535),
        default: "16",
        text: "credits: fragments that a node has asked for",
    },
    Key {
        name: "barrier",
        kind: Kind::Switch,
        default: "on",
        text: "slots: a slot begins when all fragments of the one before have arrived",
    },
    Key {
        name: "room",
        kind: Kind::Whole(1, 1_000_000_000),
        default: "100000",
        text: "events that the sources have room for",
    },
    Key {
        name: "events",
        kind: Kind::Whole(1, 1_000_000_000),
        default: "20000",
        text: "events",
    },
];

pub(super) fn run(
    settings: &Settings,
    policy: PolicyName,
    seed: u64,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Results {
    let ports = settings.whole("ports") as u16;
    let hop = Time::from_ns(settings.whole("hop_ns"));
    let link = Link::new(settings.whole("gbps") as u32);
    let bytes = settings.whole("bytes");
    let room = settings.whole("room") as u32;
    let triggers = match settings.real("load") {
        None => Triggers::Saturated,
        Some(load) => {
            let interval = link.interval(bytes, load);
            match settings.word("triggers") {
                "regular" => Triggers::Regular { interval, room },
                _ => Triggers::Poisson { interval, room },
            }
        }
    };
    let parts = Parts {
        network: Ethernet::new(ports, link, hop, settings.whole("buffer")),
        policy: policy.build(&Plan {
            traffic: Traffic::Building,
            sources: ports,
            nodes: ports,
            hop,
            messages: settings.whole("messages") as u32,
            outstanding: settings.whole("outstanding") as u32,
            barrier: settings.is_on("barrier").then_some(Time::ZERO),
            window: 0,
        }),
        sizes: Sizes::new(Shape::named(settings.word("sizes")), bytes, 1, seed),
        fragments: ports,
        links: ports,
        triggers,
        events: settings.whole("events") as u32,
    };
    Builder::new(parts, seed).run(watch)
}
