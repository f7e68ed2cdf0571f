//! Silence of nodes and feeders.

use super::Scheduler;
use super::config::Config;
use crate::time::Time;

/// A node or a feeder, as the scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) excluded: bool,
    /// MEPs that it was given.
    pub(super) events: u64,
    known: bool,
    heard: Time,
}

impl Peer {
    pub(super) fn new(now: Time) -> Self {
        Self {
            excluded: false,
            events: 0,
            known: false,
            heard: now,
        }
    }

    pub(super) fn hear(&mut self, now: Time) {
        self.known = true;
        self.heard = now;
    }

    /// Whether it was heard at that time or later.
    pub(super) fn has_spoken(&self, since: Time) -> bool {
        self.heard >= since
    }

    fn is_silent(&self, since: Time) -> bool {
        !self.excluded && !self.has_spoken(since)
    }
}

/// Time between two looks at all members.
pub(super) fn interval(config: &Config) -> Time {
    Time::from_ps((config.silence.ps() / 4).max(1))
}

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
        let since = now - self.config.silence;
        for node in 0..self.nodes.len() {
            let peer = &self.nodes[node];
            if peer.known && peer.is_silent(since) {
                self.counters.exclusions.silent_nodes += 1;
                self.drop_node(node as u16);
            }
        }
        for feeder in 0..self.feeders.len() {
            if self.feeders[feeder].is_silent(since) {
                self.counters.exclusions.silent_feeders += 1;
                self.drop_feeder(feeder as u8);
            }
        }
    }
}
