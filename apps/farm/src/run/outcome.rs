//! What a loop leaves behind at its end.

use pollux_farm::carrier::{Carrier as _, Ethernet, Unsent};
use pollux_farm::time::Time;
use pollux_farm::{feeder, node, results, scheduler};
use pollux_pmd::port::{RxQueue, TxQueue};

use super::seats::Handed;
use super::station::Station;

/// What a loop leaves behind.
pub struct Outcome {
    pub scheduler: Option<SchedulerOutcome>,
    pub results: Option<(Handed, results::Counters)>,
    pub feeders: Vec<FeederOutcome>,
    pub nodes: Vec<NodeOutcome>,
    pub unsent: Unsent,
    /// Messages that were damaged on purpose.
    pub damaged: u64,
    /// Messages for members of other loops.
    pub misrouted: u64,
    pub rx: Vec<RxQueue>,
    pub tx: Vec<TxQueue>,
}

/// The scheduler at the end.
pub struct SchedulerOutcome {
    pub counters: scheduler::Counters,
    /// From the first trigger to the last decision.
    pub duration: Time,
    /// Excluded nodes.
    pub excluded: Vec<bool>,
    pub stall: Option<scheduler::Stall>,
}

/// A feeder at the end.
pub struct FeederOutcome {
    pub counters: feeder::Counters,
    pub is_dead: bool,
}

/// A node at the end.
pub struct NodeOutcome {
    pub counters: node::Counters,
    pub checked: u64,
    pub wrong: u64,
    pub suspended: u64,
    pub is_dead: bool,
}

impl Outcome {
    /// Takes a loop apart.
    pub fn of(mut station: Station<Ethernet>) -> Self {
        station.carrier.flush();
        let members = &station.members;
        let scheduler = members.scheduler.as_ref().map(|seat| {
            let scheduler = &seat.scheduler;
            let nodes = 0..scheduler.topology().nodes();
            SchedulerOutcome {
                counters: *scheduler.counters(),
                duration: seat.ended - seat.began.unwrap_or(seat.ended),
                excluded: nodes.map(|n| scheduler.is_excluded(n as u16)).collect(),
                stall: scheduler.stall(),
            }
        });
        let results = members.results.as_ref();
        let results = results.map(|seat| (seat.handed.clone(), *seat.results.counters()));
        let feeders = members.feeders.iter().map(|seat| FeederOutcome {
            counters: *seat.feeder.counters(),
            is_dead: seat.is_dead,
        });
        let nodes = members.nodes.iter().map(|seat| NodeOutcome {
            counters: *seat.node.counters(),
            checked: seat.node.work().checked,
            wrong: seat.node.work().wrong,
            suspended: seat.node.work().suspended,
            is_dead: seat.is_dead,
        });
        let (feeders, nodes) = (feeders.collect(), nodes.collect());
        let (unsent, damaged) = (station.carrier.unsent(), station.carrier.damaged());
        let misrouted = station.misrouted;
        // Payloads return to the loop's free buffers before those return to the pool.
        drop(station.members);
        let (rx, tx) = station.carrier.into_queues();
        Self {
            scheduler,
            results,
            feeders,
            nodes,
            unsent,
            damaged,
            misrouted,
            rx,
            tx,
        }
    }
}
