//! Exclusion and readmission of nodes and feeders.

use super::flights::Phase;
use super::peer::{Exclusion, Peer};
use super::state::Scheduler;
use crate::message::Member;
use crate::role::Outbox;
use crate::time::Time;
use crate::topology::Feeders;

impl Scheduler {
    /// Excludes a node: its buffers get no event, and what it had is given to others. Feedback of
    /// an excluded node is discarded. False where there is no such node or it is excluded.
    pub fn exclude_node(&mut self, node: u16, now: Time, out: &mut impl Outbox) -> bool {
        let known = self.nodes.get(usize::from(node));
        if known.is_none_or(|peer| peer.excluded.is_some()) {
            return false;
        }
        self.drop_node(node, Exclusion::Commanded, now);
        self.serve(now, out);
        true
    }

    /// Readmits a node: its buffers register again by feedback. False where it is not excluded.
    pub fn readmit_node(&mut self, node: u16, now: Time) -> bool {
        let gap = self.gap();
        let Some(peer) = self.nodes.get_mut(usize::from(node)) else {
            return false;
        };
        if peer.excluded.take().is_none() {
            return false;
        }
        peer.hear(now, gap);
        if let Some(column) = self.config.topology.column_of(node) {
            self.columns.set_live(column, true);
        }
        true
    }

    /// Excludes a feeder: its fragments are missing in the events that are sent from now on. False
    /// where there is no such feeder or it is excluded.
    pub fn exclude_feeder(&mut self, feeder: u8) -> bool {
        let known = self.feeders.get(usize::from(feeder));
        if known.is_none_or(|peer| peer.excluded.is_some()) {
            return false;
        }
        self.drop_feeder(feeder, Exclusion::Commanded);
        true
    }

    /// Readmits a feeder. False where it is not excluded.
    pub fn readmit_feeder(&mut self, feeder: u8, now: Time, out: &mut impl Outbox) -> bool {
        let gap = self.gap();
        let Some(peer) = self.feeders.get_mut(usize::from(feeder)) else {
            return false;
        };
        if peer.excluded.take().is_none() {
            return false;
        }
        peer.hear(now, gap);
        self.members = self.members.with(Feeders::only(feeder));
        self.serve(now, out);
        true
    }

    /// Excludes a node or a feeder as if it had been silent for too long. It returns when it is heard. What
    /// is excluded already, and the result node, stay as they are.
    pub fn miss(&mut self, member: Member, now: Time) {
        let is_here = |peers: &[Peer], number: usize| {
            let peer = peers.get(number);
            peer.is_some_and(|peer| peer.excluded.is_none())
        };
        match member {
            Member::Node(node) if is_here(&self.nodes, node.into()) => {
                self.drop_node(node, Exclusion::Silent, now);
            }
            Member::Feeder(feeder) if is_here(&self.feeders, feeder.into()) => {
                self.drop_feeder(feeder, Exclusion::Silent);
                self.pass_feeder(feeder, now);
            }
            _ => {}
        }
    }

    /// Whether a node is excluded.
    #[must_use]
    pub fn is_excluded(&self, node: u16) -> bool {
        let peer = self.nodes.get(usize::from(node));
        peer.is_some_and(|peer| peer.excluded.is_some())
    }

    /// MEPs that a node was given.
    #[must_use]
    pub fn events_of(&self, node: u16) -> u64 {
        self.nodes
            .get(usize::from(node))
            .map_or(0, |peer| peer.events)
    }

    /// A feeder leaves the ring. Its messages time out and are sent past it.
    pub(super) fn drop_feeder(&mut self, feeder: u8, why: Exclusion) {
        if let Some(peer) = self.feeders.get_mut(usize::from(feeder)) {
            peer.excluded = Some(why);
        }
        let counts = &mut self.counters.exclusions;
        match why {
            Exclusion::Commanded => counts.commanded += 1,
            _ => counts.silent_feeders += 1,
        }
        self.members = self.members.without(Feeders::only(feeder));
    }

    /// A node leaves the farm.
    pub(super) fn drop_node(&mut self, node: u16, why: Exclusion, now: Time) {
        let Some(peer) = self.nodes.get_mut(usize::from(node)) else {
            return;
        };
        peer.exclude(why, now, self.config.silence);
        let counts = &mut self.counters.exclusions;
        match why {
            Exclusion::Silent => counts.silent_nodes += 1,
            Exclusion::Overdue => counts.overdue_nodes += 1,
            Exclusion::Undecided => counts.undecided_nodes += 1,
            Exclusion::Commanded => counts.commanded += 1,
        }
        let topology = &self.config.topology;
        let Some(column) = topology.column_of(node) else {
            return;
        };
        let is_its = |descriptor| topology.buffer_of(descriptor).is_some_and(|b| b.0 == node);
        self.columns
            .retain(column, |&descriptor| !is_its(descriptor));
        self.ready = self.ready.filter(|ready| !is_its(ready.descriptor));
        for buffer in 0..topology.buffers() {
            if let Some(descriptor) = topology.descriptor(node, buffer) {
                self.buffers.forget(descriptor);
            }
        }
        let lives = |n: u16| topology.column_of(n) == Some(column);
        let nodes = self.nodes.iter().enumerate();
        let live = nodes
            .clone()
            .any(|(n, peer)| lives(n as u16) && peer.excluded.is_none());
        self.columns.set_live(column, live);
        for mep in self.decided..self.unsent {
            let Some(flight) = self.flights.get(mep) else {
                continue;
            };
            let has = matches!(
                flight.phase,
                Phase::Ring | Phase::Building | Phase::Processed
            );
            if has && flight.node == node {
                flight.phase = Phase::Waiting;
                flight.expected = false;
                flight.wants_more = false;
                self.answered(mep);
                self.leave(mep);
                self.flights.stop(mep);
                self.reassigned.push_back(mep);
                self.counters.exclusions.reassigned += 1;
            }
        }
    }
}
