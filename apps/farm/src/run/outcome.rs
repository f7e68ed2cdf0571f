//! What a loop leaves behind at its end.

use pollux_farm::carrier::{Carrier as _, Ethernet};
use pollux_farm::scheduler::Stall;
use pollux_pmd::port::{RxQueue, TxQueue};
use serde::{Deserialize, Serialize};

use super::seats::Handed;
use super::station::Station;

/// What a loop leaves behind.
pub struct Outcome {
    pub left: Left,
    pub rx: Vec<RxQueue>,
    pub tx: Vec<TxQueue>,
}

/// The members of loops at their end, and what the carriers counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Left {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<SchedulerOutcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<ResultOutcome>,
    pub feeders: Vec<FeederOutcome>,
    pub nodes: Vec<NodeOutcome>,
    /// Messages between members of one loop, which had no frame.
    pub handed_over: u64,
    /// Frames that could not be sent.
    pub unsent: u64,
    /// Messages that were damaged on purpose.
    pub damaged: u64,
    /// Messages for members of other loops.
    pub misrouted: u64,
}

/// The scheduler at the end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SchedulerOutcome {
    /// Triggered events.
    pub triggered: u64,
    /// Triggers that found too many events waiting.
    pub refused: u64,
    /// Packs that were decided, of those that were triggered.
    pub decided_packs: u64,
    pub triggered_packs: u64,
    /// Packs that were sent again.
    pub resent: u64,
    pub flow: Flow,
    pub columns_repeated: u64,
    /// From the first trigger to the last decision.
    pub duration_s: f64,
    /// Excluded nodes.
    pub excluded: Vec<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall: Option<String>,
}

/// Flow control messages.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Flow {
    pub sent: u64,
    pub returned: u64,
    pub errors: u64,
    pub loops: u64,
    pub timeouts: u64,
}

/// The result node at the end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResultOutcome {
    pub handed: Handed,
    /// Events for which a decision arrived.
    pub built: u64,
    /// Decisions whose events do not follow those of the pack before.
    pub gaps: u64,
}

/// A feeder at the end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FeederOutcome {
    pub id: usize,
    /// Transfers that it made, those that were asked for again included.
    pub transfers: u64,
    pub dead: bool,
}

/// A node at the end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeOutcome {
    pub id: usize,
    /// Events that it built.
    pub events: u64,
    /// Fragments of single events that it compared with the mock-up words.
    pub checked: u64,
    /// Those that differ.
    pub wrong: u64,
    pub suspended: u64,
    pub dead: bool,
}

impl Outcome {
    /// Takes a loop apart.
    pub fn of(mut station: Station<Ethernet>) -> Self {
        station.carrier.flush();
        let members = &station.members;
        let scheduler = members.scheduler.as_ref().map(|seat| {
            let (scheduler, counters) = (&seat.scheduler, seat.scheduler.counters());
            let (triggers, flow) = (&counters.triggers, &counters.flow);
            let duration = seat.ended - seat.began.unwrap_or(seat.ended);
            let nodes = 0..scheduler.topology().nodes() as u16;
            SchedulerOutcome {
                triggered: triggers.taken,
                refused: triggers.pending_full + triggers.in_flight_full,
                decided_packs: scheduler.decided(),
                triggered_packs: scheduler.triggered(),
                resent: flow.resent,
                flow: Flow {
                    sent: flow.sent,
                    returned: flow.returned,
                    errors: flow.errors,
                    loops: flow.loops,
                    timeouts: flow.timeouts,
                },
                columns_repeated: counters.columns_repeated,
                duration_s: duration.ps() as f64 / 1e12,
                excluded: nodes.filter(|&n| scheduler.is_excluded(n)).collect(),
                stall: scheduler.stall().map(|stall| text(stall).to_owned()),
            }
        });
        let results = members.results.as_ref().map(|seat| ResultOutcome {
            handed: seat.handed.clone(),
            built: seat.results.counters().events,
            gaps: seat.results.counters().gaps,
        });
        let feeders = (members.first_feeder..).zip(&members.feeders);
        let feeders = feeders.map(|(id, seat)| FeederOutcome {
            id,
            transfers: seat.feeder.counters().transfers,
            dead: seat.is_dead,
        });
        let nodes = members.node_numbers.iter().zip(&members.nodes);
        let nodes = nodes.map(|(id, seat)| NodeOutcome {
            id: id.into(),
            events: seat.node.counters().events,
            checked: seat.node.work().checked,
            wrong: seat.node.work().wrong,
            suspended: seat.node.work().suspended,
            dead: seat.is_dead,
        });
        let unsent = station.carrier.unsent();
        let left = Left {
            scheduler,
            results,
            feeders: feeders.collect(),
            nodes: nodes.collect(),
            handed_over: station.carrier.handed_over(),
            unsent: unsent.no_buffer + unsent.oversize + unsent.queue_full + unsent.no_member,
            damaged: station.carrier.damaged(),
            misrouted: station.misrouted,
        };
        // Payloads return to the loop's free buffers before those return to the pool.
        drop(station.members);
        let (rx, tx) = station.carrier.into_queues();
        Self { left, rx, tx }
    }
}

impl Left {
    /// Adds what another loop has left behind.
    pub fn add(&mut self, other: Self) {
        self.scheduler = self.scheduler.take().or(other.scheduler);
        self.results = self.results.take().or(other.results);
        self.feeders.extend(other.feeders);
        self.nodes.extend(other.nodes);
        self.nodes.sort_by_key(|node| node.id);
        self.handed_over += other.handed_over;
        self.unsent += other.unsent;
        self.damaged += other.damaged;
        self.misrouted += other.misrouted;
    }
}

/// Why no event leaves the scheduler.
fn text(stall: Stall) -> &'static str {
    match stall {
        Stall::Disabled => "the scheduler is disabled",
        Stall::NoFeeder => "all feeders are excluded",
        Stall::NoNode => "all nodes are excluded",
        Stall::Busy => "no receive buffer that may be next is free",
    }
}
