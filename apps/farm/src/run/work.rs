//! What a node does with an event: it checks the payload, stands still if it is its turn, and
//! decides.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pollux_farm::feeder::mockup::Mockup;
use pollux_farm::node::{Built, Step, Work};
use pollux_farm::time::Time;

/// One event in so many is accepted: 40 kHz of 1 MHz, as of LHCb's Level-1.
const ACCEPTED: u64 = 25;

/// Which node stands still: one at a time, the next one of the next column.
#[derive(Clone, Debug)]
pub struct Suspension {
    time: Time,
    nodes: u64,
    turn: Arc<AtomicU64>,
}

impl Suspension {
    /// Nodes that stand still for a time. They are dealt to the columns in turn, so the next one is
    /// in the next column.
    pub fn new(time: Time, nodes: usize) -> Self {
        Self {
            time,
            nodes: nodes as u64,
            turn: Arc::default(),
        }
    }

    fn is_turn_of(&self, node: u16) -> bool {
        // Relaxed: the turn publishes no other data.
        self.turn.load(Ordering::Relaxed) % self.nodes == u64::from(node)
    }

    /// The turn of a node is over.
    pub fn pass(&self, node: u16) {
        if self.is_turn_of(node) {
            self.turn.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The work of a node.
#[derive(Debug)]
pub struct NodeWork {
    node: u16,
    store: Mockup,
    suspension: Option<Suspension>,
    /// Fragments of single events that were compared with the mock-up words.
    pub checked: u64,
    /// Those that differ.
    pub wrong: u64,
    /// Times that the node stood still.
    pub suspended: u64,
}

impl NodeWork {
    /// The work of a node on mock-up events.
    pub fn new(node: u16, store: Mockup, suspension: Option<Suspension>) -> Self {
        Self {
            node,
            store,
            suspension,
            checked: 0,
            wrong: 0,
            suspended: 0,
        }
    }

    /// The node is dead: another one may stand still.
    pub fn die(&self) {
        if let Some(suspension) = &self.suspension {
            suspension.pass(self.node);
        }
    }

    fn check<P: Deref<Target = [u8]>>(&mut self, built: &Built<'_, Option<P>>) {
        for payload in built.fragments.iter().flatten().flatten() {
            let compared = self.store.compare(built.event, built.count, payload);
            self.checked += compared.checked;
            self.wrong += compared.wrong;
        }
    }
}

impl<P: Deref<Target = [u8]>> Work<Option<P>> for NodeWork {
    fn work(&mut self, now: Time, built: &Built<'_, Option<P>>) -> Step {
        if built.calls == 0 {
            self.check(built);
            if let Some(suspension) = &self.suspension
                && suspension.is_turn_of(self.node)
            {
                self.suspended += 1;
                return Step::Wait(now + suspension.time);
            }
        } else if let Some(suspension) = &self.suspension {
            suspension.pass(self.node);
        }
        // The first event of the MEP that is accepted, and one in so many from there on.
        let mut accepted = 0;
        let mut n = (ACCEPTED - built.event % ACCEPTED) % ACCEPTED;
        while n < u64::from(built.count) {
            accepted |= 1 << n;
            n += ACCEPTED;
        }
        Step::Decide(accepted)
    }
}
