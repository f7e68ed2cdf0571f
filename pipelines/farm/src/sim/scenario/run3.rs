//! `run3`: the event builder of LHCb Run 3, servers on a fat tree without loss.

use super::error::SimError;
use crate::sim::builder::{Builder, Parts, Triggers};
use crate::sim::network::{FatTree, FatTreeShape, Link};
use crate::sim::policy::{Plan, PolicyName, Traffic};
use crate::sim::settings::{Key, Kind, Settings, SettingsError};
use crate::sim::sizes::{Shape, Sizes};
use crate::sim::statistics::{Progress, Results};
use crate::time::Time;

pub(super) const KEYS: &[Key] = &[
    Key {
        name: "ports",
        kind: Kind::Whole(1, 4096),
        default: "500",
        text: "servers, each a source and a node; a multiple of `leaf`",
    },
    Key {
        name: "leaf",
        kind: Kind::Whole(1, 256),
        default: "20",
        text: "servers of a leaf switch, and spine switches",
    },
    Key {
        name: "load",
        kind: Kind::RealOrMax(0.001, 1.0),
        default: "max",
        text: "offered share of the links; 0.64 is 32 Tb/s; max: there is always another event",
    },
    Key {
        name: "pack",
        kind: Kind::Whole(1, 100_000),
        default: "5000",
        text: "events that are sent as one",
    },
    Key {
        name: "bytes",
        kind: Kind::Whole(1, 10_000),
        default: "267",
        text: "mean size of a fragment in bytes: 32 Tb/s from 500 servers at 30 MHz",
    },
    Shape::key("lognormal"),
    Key {
        name: "gbps",
        kind: Kind::Whole(1, 1600),
        default: "100",
        text: "rate of each link in Gb/s",
    },
    Key {
        name: "hop_ns",
        kind: Kind::Whole(0, 1_000_000),
        default: "300",
        text: "latency of a link with its switch, and of a message or request, in ns",
    },
    Key {
        name: "segment",
        kind: Kind::Whole(64, 1_000_000),
        default: "65536",
        text: "unit in which links are shared, in bytes",
    },
    Key {
        name: "buffer",
        kind: Kind::Whole(64, 100_000_000),
        default: "524288",
        text: "room of a switch's input buffer in bytes, a segment at least",
    },
    Key {
        name: "barrier",
        kind: Kind::Switch,
        default: "on",
        text: "slots: a slot begins when all fragments of the one before have arrived",
    },
    Key {
        name: "sync_ns",
        kind: Kind::Whole(0, 1_000_000_000),
        default: "2000",
        text: "slots: time of the barrier in ns",
    },
    Key {
        name: "messages",
        kind: Kind::Whole(1, 65535),
        default: "1000",
        text: "ring: messages on the ring at most",
    },
    Key {
        name: "outstanding",
        kind: Kind::Whole(1, 65535),
        default: "2",
        text: "credits: fragments that a node has asked for",
    },
    Key {
        name: "room",
        kind: Kind::Whole(1, 1_000_000_000),
        default: "4000",
        text: "packs of events that the sources have room for",
    },
    Key {
        name: "events",
        kind: Kind::Whole(1, 1_000_000_000),
        default: "1500",
        text: "packs of events",
    },
];

pub(super) fn run(
    settings: &Settings,
    policy: PolicyName,
    seed: u64,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Results, SimError> {
    let conflict = |text: String| Err(SettingsError::Conflict(text).into());
    let [ports, leaf] = ["ports", "leaf"].map(|key| settings.whole(key) as u16);
    if !ports.is_multiple_of(leaf) {
        return conflict(format!("ports={ports}: give a multiple of leaf={leaf}"));
    }
    let [segment, buffer] = ["segment", "buffer"].map(|key| settings.whole(key) as u32);
    if buffer < segment {
        return conflict(format!(
            "buffer={buffer}: give a segment at least, {segment}"
        ));
    }
    let link = Link::new(settings.whole("gbps") as u32);
    let hop = Time::from_ns(settings.whole("hop_ns"));
    let (bytes, pack) = (settings.whole("bytes"), settings.whole("pack"));
    let room = settings.whole("room") as u32;
    let sync = Time::from_ns(settings.whole("sync_ns"));
    let policy = policy.build(&Plan {
        traffic: Traffic::Building,
        sources: ports,
        nodes: ports,
        hop,
        messages: settings.whole("messages") as u32,
        outstanding: settings.whole("outstanding") as u32,
        barrier: settings.is_on("barrier").then_some(sync),
        window: 0,
    });
    let parts = Parts {
        network: FatTree::new(FatTreeShape {
            servers: ports,
            leaf,
            link,
            hop,
            segment,
            buffer,
            in_order: !policy.is_unordered(),
        }),
        policy,
        sizes: Sizes::new(Shape::named(settings.word("sizes")), bytes, pack, seed),
        fragments: ports,
        links: ports,
        triggers: match settings.real("load") {
            None => Triggers::Saturated,
            Some(load) => Triggers::Regular {
                interval: link.interval(bytes * pack, load),
                room,
            },
        },
        events: settings.whole("events") as u32,
    };
    let mut results = Builder::new(parts, seed).run(watch);
    results.rate_hz *= pack as f64;
    Ok(results)
}
