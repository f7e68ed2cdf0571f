//! `crossbar`: policies on a saturated crossbar, where theory says what they reach.

use super::error::SimError;
use crate::sim::builder::{Builder, Parts, Triggers};
use crate::sim::network::{Crossbar, Link};
use crate::sim::policy::{Plan, PolicyName, Traffic};
use crate::sim::settings::{Key, Kind, Settings, SettingsError};
use crate::sim::sizes::{Shape, Sizes};
use crate::sim::statistics::{Progress, Results};
use crate::time::Time;

/// Fragments of 1250 B at 10 Gb/s: a microsecond.
const BYTES: u64 = 1250;
const GBPS: u32 = 10;

pub(super) const KEYS: &[Key] = &[
    Key {
        name: "ports",
        kind: Kind::Whole(1, 4096),
        default: "8",
        text: "sources",
    },
    Key {
        name: "nodes",
        kind: Kind::Whole(0, 4096),
        default: "0",
        text: "receivers; 0: as many as ports",
    },
    Key {
        name: "traffic",
        kind: Kind::Word(&["building", "uniform"]),
        default: "building",
        text: "all fragments of an event go to one node, or each to a random one (credits, none)",
    },
    Shape::key("lognormal"),
    Key {
        name: "barrier",
        kind: Kind::Switch,
        default: "on",
        text: "slots: a slot begins when all fragments of the one before have arrived",
    },
    Key {
        name: "in_flight",
        kind: Kind::Whole(1, 65535),
        default: "16",
        text: "ring: messages on the ring; credits: fragments that a node has asked for",
    },
    Key {
        name: "window",
        kind: Kind::Whole(0, 1_000_000_000),
        default: "0",
        text: "none: events that a source may be ahead of the oldest unbuilt one; 0: any number",
    },
    Key {
        name: "events",
        kind: Kind::Whole(1, 1_000_000_000),
        default: "20000",
        text: "events; with uniform traffic, fragments of each port",
    },
];

pub(super) fn run(
    settings: &Settings,
    policy: PolicyName,
    seed: u64,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Results, SimError> {
    let ports = settings.whole("ports") as u16;
    let nodes = match settings.whole("nodes") {
        0 => ports,
        nodes => nodes as u16,
    };
    let sizes = Sizes::new(Shape::named(settings.word("sizes")), BYTES, 1, seed);
    let uniform = settings.word("traffic") == "uniform";
    let traffic = if uniform {
        Traffic::Uniform(sizes)
    } else {
        Traffic::Building
    };
    let in_flight = settings.whole("in_flight") as u32;
    if uniform && !matches!(policy, PolicyName::None | PolicyName::Credits) {
        return Err(SettingsError::Conflict(format!(
            "traffic=uniform: {policy} builds events: give traffic=building, or --policy none or \
             credits"
        ))
        .into());
    }
    let policy = policy.build(&Plan {
        traffic,
        sources: ports,
        nodes,
        hop: Time::ZERO,
        messages: in_flight,
        outstanding: in_flight,
        barrier: settings.is_on("barrier").then_some(Time::ZERO),
        window: settings.whole("window") as u32,
    });
    let (fragments, events) = match (uniform, settings.whole("events")) {
        (true, events) => (1, events * u64::from(ports)),
        (false, events) => (ports, events),
    };
    let Ok(events) = events.try_into() else {
        return Err(SettingsError::Conflict(format!(
            "events={}: {ports} ports have {events} fragments in all; give at most {}",
            settings.whole("events"),
            u32::MAX / u32::from(ports)
        ))
        .into());
    };
    let parts = Parts {
        // Only nodes that ask can let a source choose.
        network: Crossbar::new(ports, nodes, Link::new(GBPS), !policy.is_unordered()),
        policy,
        sizes,
        fragments,
        links: ports.min(nodes),
        triggers: Triggers::Saturated,
        events,
    };
    Ok(Builder::new(parts, seed).run(watch))
}
