//! Silence of nodes and feeders.

use super::peer::{Exclusion, interval};
use super::state::Scheduler;
use crate::message::{Member, Message, Withdraw};
use crate::role::{Address, Outbox};
use crate::time::Time;

impl Scheduler {
    /// Excludes members that have been silent for too long. A node that has never registered is
    /// not missed.
    pub(super) fn look_after(&mut self, now: Time) {
        if now < self.watch {
            return;
        }
        // Where the scheduler itself stood still, it has not listened either.
        let late = now - self.watch;
        if late > interval(&self.config) {
            let peers = self.nodes.iter_mut().chain(&mut self.feeders);
            for peer in peers.chain([&mut self.results]) {
                peer.heard = peer.heard + late;
            }
        }
        self.watch = now + interval(&self.config);
        let since = now - self.silence();
        for node in 0..self.nodes.len() {
            let peer = &self.nodes[node];
            if peer.known && peer.is_silent(since) {
                self.drop_node(node as u16, Exclusion::Silent, now);
            }
        }
        for feeder in 0..self.feeders.len() {
            if self.feeders[feeder].is_silent(since) {
                self.drop_feeder(feeder as u8, Exclusion::Silent);
                self.pass_feeder(feeder as u8, now);
            }
        }
    }

    /// A member says that it runs.
    pub(super) fn heard(&mut self, from: Member, now: Time, out: &mut impl Outbox) {
        let gap = self.gap();
        // Where no node is left, those that were too late are better than none.
        let is_last = self.nodes.iter().all(|peer| peer.excluded.is_some());
        let peer = match from {
            Member::Feeder(feeder) => self.feeders.get_mut(usize::from(feeder)),
            Member::Node(node) => self.nodes.get_mut(usize::from(node)),
            Member::Results => Some(&mut self.results),
        };
        let Some(peer) = peer else {
            self.counters.unexpected += 1;
            return;
        };
        peer.hear(now, gap);
        let returns = peer.may_return(now) || (peer.is_tardy() && is_last);
        self.counters.exclusions.returned += u64::from(returns);
        match from {
            Member::Feeder(feeder) if returns => {
                self.readmit_feeder(feeder, now, out);
            }
            Member::Node(node) => {
                if returns {
                    self.readmit_node(node, now);
                }
                self.withdraw(node, out);
            }
            Member::Feeder(_) | Member::Results => {}
        }
    }

    /// Tells a node which of its buffers wait for events that were given to others.
    fn withdraw(&self, node: u16, out: &mut impl Outbox) {
        let excluded = self.is_excluded(node);
        let topology = &self.config.topology;
        for buffer in (0..topology.buffers()).filter(|_| !excluded) {
            if let Some(descriptor) = topology.descriptor(node, buffer)
                && let Some(generation) = self.buffers.withdrawn(descriptor)
            {
                let withdraw = Withdraw {
                    run: self.config.run,
                    descriptor,
                    generation,
                };
                out.send(Address::Node(node), &Message::Withdraw(withdraw));
            }
        }
    }
}
