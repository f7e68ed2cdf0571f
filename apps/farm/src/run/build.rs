//! Builds a loop on its own thread: its carrier and its members.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use pollux_farm::carrier::{Ethernet, EthernetConfig, Payload, Routes};
use pollux_farm::feeder::Feeder;
use pollux_farm::feeder::mockup::Mockup;
use pollux_farm::members::Numbers;
use pollux_farm::node::Node;
use pollux_farm::results::Results;
use pollux_farm::role::Address;
use pollux_farm::scheduler::Scheduler;
use pollux_farm::time::Time;
use pollux_mempool::Mempool;
use pollux_pmd::{LatencyHistogram, Tally};

use super::counters::{Control, Counts};
use super::layout::Layout;
use super::plan::{CACHE, Plan};
use super::rest::Rest;
use super::run_clock::RunClock;
use super::seats::{FeederSeat, NodeSeat, Order, ResultSeat, SchedulerSeat};
use super::station::{Members, Station};
use super::wiring::{BACK, Lines};
use super::work::{NodeWork, Suspension};

/// What all loops of a run share.
#[derive(Clone)]
pub struct Common {
    pub control: Arc<Control>,
    pub counts: Arc<Counts>,
    pub pool: Mempool,
    pub clock: RunClock,
    pub suspension: Option<Suspension>,
}

/// What a loop has for itself.
pub struct Own {
    pub lines: Lines,
    pub tally: Tally,
    /// Of the loop with the scheduler.
    pub latency: Option<LatencyHistogram>,
}

/// The loop of a number.
///
/// # Errors
/// What the roles, the carrier or the pool refuse.
pub fn station(plan: &Parts, common: Common, own: Own) -> Result<Station<Ethernet>> {
    let cache = common
        .pool
        .cache(CACHE)
        .context("packet buffers of a loop")?;
    let members = plan.members(&common, own.latency)?;
    let config = EthernetConfig {
        routes: plan.routes.clone(),
        owners: own.lines.owners,
        within: plan.within,
        max_frame: own.lines.max_frame,
        crc: plan.crc,
        damage: plan.damage.clone(),
        tally: own.tally,
    };
    let carrier = Ethernet::new(config, own.lines.rx, own.lines.tx, cache)?;
    let carrier = carrier.with_backlog(plan.backlog);
    let Common { control, clock, .. } = common;
    let station = Station::new(members, carrier, control, clock, plan.rest);
    Ok(station)
}

/// What a loop is built of.
pub struct Parts {
    routes: Routes,
    within: Option<u16>,
    crc: bool,
    backlog: usize,
    damage: Option<pollux_farm::carrier::Damage>,
    rest: Rest,
    topology: pollux_farm::topology::Topology,
    scheduler: Option<(
        pollux_farm::scheduler::Config,
        super::triggers::Triggers,
        u64,
    )>,
    results: Option<pollux_farm::results::Config>,
    feeders: Vec<(pollux_farm::feeder::Config, Option<u64>)>,
    nodes: Vec<(pollux_farm::node::Config, Option<u64>)>,
    credits: Option<usize>,
    first_feeder: usize,
    node_numbers: Numbers,
    fragment: u32,
    start: Time,
    window: u64,
}

/// By which queue each member is reached: that to its loop, the own one to the switch, or that of the
/// process to the switch.
fn routes(plan: &Plan, number: usize) -> Result<Routes> {
    if let Layout::Part(share) = &plan.layout {
        let mut routes = Routes::over_switch(&plan.topology, BACK);
        for member in plan.members().filter(|&member| share.has(member)) {
            routes.set(member, BACK)?;
        }
        return Ok(routes);
    }
    if plan.switch.is_none() {
        let mut routes = Routes::new(&plan.topology);
        for member in plan.members() {
            routes.set(member, plan.loop_of(member) as u16)?;
        }
        return Ok(routes);
    }
    let mut routes = Routes::by_sender(&plan.topology);
    let members = plan.members().filter(|&m| plan.loop_of(m) == number);
    for (way, member) in (0..).zip(members) {
        routes.set(member, way)?;
    }
    Ok(routes)
}

/// The queue by which a loop reaches itself, where messages need no frame: no switch sees them, and
/// they are neither damaged nor guarded against it.
fn within(plan: &Plan, number: usize) -> Option<u16> {
    let way = match plan.layout {
        Layout::Loops if plan.switch.is_none() => number as u16,
        Layout::Part(_) => BACK,
        _ => return None,
    };
    (!plan.crc() && plan.asked.corrupt == 0.0).then_some(way)
}

impl Parts {
    /// Of the loop with a number.
    ///
    /// # Errors
    /// Triggers that cannot be.
    pub fn of(plan: &Plan, number: usize) -> Result<Self> {
        let routes = routes(plan, number)?;
        let share = &plan.shares[number];
        let feeder = |n| {
            let id = n as u8;
            (plan.feeder(id), plan.death(Address::Feeder(id)))
        };
        let node = |id| (plan.node(id), plan.death(Address::Node(id)));
        let events = plan.asked.events.unwrap_or(u64::MAX);
        let triggers = plan.triggers()?;
        Ok(Self {
            routes,
            within: within(plan, number),
            crc: plan.crc(),
            backlog: plan.backlog(),
            damage: plan.damage(number),
            rest: plan.rest(),
            topology: plan.topology.clone(),
            scheduler: share
                .scheduler
                .then(|| (plan.scheduler(), triggers, events)),
            results: share.results.then(|| plan.results()),
            feeders: share.feeders.clone().map(feeder).collect(),
            nodes: share.nodes.iter().map(node).collect(),
            credits: plan.credits(),
            first_feeder: share.feeders.start,
            node_numbers: share.nodes,
            fragment: plan.config.traffic.fragment,
            start: plan.start(),
            window: plan.window(),
        })
    }

    fn members(
        &self,
        common: &Common,
        latency: Option<LatencyHistogram>,
    ) -> Result<Members<Payload>> {
        let (topology, now) = (&self.topology, Time::ZERO);
        let store = Mockup::new(self.fragment, 0);
        let feeder = |&(config, death)| {
            Ok(FeederSeat {
                feeder: Feeder::new(config, topology, store, now)?,
                death,
                is_dead: false,
            })
        };
        let node = |&(config, death): &(pollux_farm::node::Config, _)| {
            let work = NodeWork::new(config.id, store, common.suspension.clone());
            let node = Node::new(config, topology, work, now)?;
            Ok(NodeSeat {
                node: match self.credits {
                    Some(credits) => node.with_credits(credits)?,
                    None => node,
                },
                death,
                is_dead: false,
            })
        };
        let scheduler = match &self.scheduler {
            None => None,
            Some((config, triggers, events)) => {
                let order = Order {
                    triggers: triggers.clone(),
                    control: Arc::clone(&common.control),
                    counts: Arc::clone(&common.counts),
                    clock: common.clock,
                    start: self.start,
                    events: *events,
                    pack: config.pack,
                    in_flight: config.in_flight,
                    window: self.window,
                    latency: latency.unwrap_or_default(),
                };
                let scheduler = Scheduler::new(config.clone(), now)?;
                Some(SchedulerSeat::new(scheduler, order))
            }
        };
        let results = match self.results {
            None => None,
            Some(config) => {
                let results = Results::new(config, topology, now)?;
                let counts = Arc::clone(&common.counts);
                Some(ResultSeat::new(results, topology, counts))
            }
        };
        Ok(Members {
            scheduler,
            results,
            first_feeder: self.first_feeder,
            feeders: self.feeders.iter().map(feeder).collect::<Result<_>>()?,
            node_numbers: self.node_numbers,
            nodes: self.nodes.iter().map(node).collect::<Result<_>>()?,
            due: Time::ZERO,
        })
    }
}
