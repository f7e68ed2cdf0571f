//! `thesis` and `prototype`: the farm of the thesis with the roles of this crate.

use super::error::SimError;
use crate::sim::level1::{Farm, Gaps, Plan, Triggers};
use crate::sim::policy::PolicyName;
use crate::sim::settings::{Key, Kind, Settings};
use crate::sim::statistics::{Progress, Results};
use crate::sim::torus::Geometry;
use crate::time::Time;

/// Time of a message in a segment of the prototype's ring, beside the transfer: 1.40 us with it
/// (thesis, table IV-1).
const PROTOTYPE_HOP: Time = Time::from_ns(1400 - 465);
/// From the last fragment of an event to its feedback, without work (thesis, IV.D).
const NO_WORK: Time = Time::from_ns(1500);
/// Receive buffers of a node: so many that the network is what limits a run of 20000 events, also at
/// rates that the processors cannot follow.
const BUFFERS: u16 = 100;
/// Receive buffers of a node of the congested prototype: so many events in a row go to it.
const CONGESTED: u16 = 40;
/// The node whose latency the thesis measures: CN7, next to the second feeder.
const CN7: u16 = 6;

pub(super) const THESIS: &[Key] = &[
    Key {
        name: "rate",
        kind: Kind::RealOrMax(1.0, 1e8),
        default: "1000000",
        text: "triggers a second, at equal intervals; max: as many as the ring takes",
    },
    Key {
        name: "bytes",
        kind: Kind::Whole(1, 4096),
        default: "128",
        text: "bytes of a fragment; a burst has 128 at most",
    },
    Key {
        name: "hop_ns",
        kind: Kind::Whole(0, 100_000),
        default: "10",
        text: "time of a message from feeder to feeder, beside the transfer, in ns",
    },
    Key {
        name: "bypass",
        kind: Kind::Whole(0, 255),
        default: "0",
        text: "rounds in which a feeder with a larger transfer passes messages on; 0: none",
    },
    Key {
        name: "big",
        kind: Kind::Real(0.0, 1.0),
        default: "0",
        text: "share of events that are larger",
    },
    Key {
        name: "big_factor",
        kind: Kind::Whole(1, 100),
        default: "5",
        text: "by which factor they are larger",
    },
    Key {
        name: "cpus",
        kind: Kind::Whole(144, 4000),
        default: "550",
        text: "processors, two in a node; 72 nodes are the core, others are in cover layers",
    },
    Key {
        name: "time_us",
        kind: Kind::Whole(0, 5000),
        default: "500",
        text: "time that a processor works on an event, in us",
    },
    Key {
        name: "events",
        kind: Kind::Whole(1, 1_000_000_000),
        default: "20000",
        text: "events",
    },
];

pub(super) const PROTOTYPE: &[Key] = &[
    Key {
        name: "rate",
        kind: Kind::RealOrMax(1.0, 1e8),
        default: "1000000",
        text: "triggers a second, at equal intervals; max: as many as the ring takes",
    },
    Key {
        name: "suspend_us",
        kind: Kind::Whole(0, 5000),
        default: "0",
        text: "time that a node is suspended for an event, in us",
    },
    Key {
        name: "driver",
        kind: Kind::Switch,
        default: "on",
        text: "whether the driver has the buses of the feeders 324 times a second, for 10 us",
    },
    Key {
        name: "events",
        kind: Kind::Whole(1, 1_000_000_000),
        default: "100000",
        text: "events",
    },
];

fn triggers(settings: &Settings) -> Triggers {
    settings.real("rate").map_or(Triggers::Max, |rate| {
        Triggers::Regular(Time::from_ps((1e12 / rate).round() as u64))
    })
}

pub(super) fn thesis(
    settings: &Settings,
    policy: PolicyName,
    seed: u64,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Results, SimError> {
    let plan = Plan {
        geometry: Geometry {
            columns: 6,
            rows: 6,
            layers: 2,
            feeders_per_row: 2,
            nodes: settings.whole("cpus").div_ceil(2) as u16,
        },
        triggers: triggers(settings),
        events: settings.whole("events"),
        bytes: settings.whole("bytes") as u32,
        big: settings.real("big").unwrap_or_default(),
        factor: settings.whole("big_factor") as u32,
        hop: Time::from_ns(settings.whole("hop_ns")),
        bypass: settings.whole("bypass") as u8,
        buffers: BUFFERS,
        cpus: 2,
        work: Time::from_ns(1000 * settings.whole("time_us")),
        ring: policy == PolicyName::Ring,
        gaps: None,
        probe: None,
    };
    Ok(Farm::new(plan, seed)?.run(watch))
}

pub(super) fn prototype(
    settings: &Settings,
    policy: PolicyName,
    seed: u64,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Results, SimError> {
    let ring = policy == PolicyName::Ring;
    let gaps = Gaps {
        every: Time::from_ps(1_000_000_000_000 / 324),
        length: Time::from_ns(10_000),
    };
    let plan = Plan {
        geometry: Geometry {
            columns: 6,
            rows: 2,
            layers: 1,
            feeders_per_row: 1,
            nodes: 12,
        },
        triggers: triggers(settings),
        events: settings.whole("events"),
        bytes: 128,
        big: 0.0,
        factor: 1,
        hop: PROTOTYPE_HOP,
        bypass: 0,
        buffers: if ring { 10 } else { CONGESTED },
        cpus: 2,
        work: NO_WORK + Time::from_ns(1000 * settings.whole("suspend_us")),
        ring,
        gaps: settings.is_on("driver").then_some(gaps),
        probe: Some(CN7),
    };
    Ok(Farm::new(plan, seed)?.run(watch))
}
