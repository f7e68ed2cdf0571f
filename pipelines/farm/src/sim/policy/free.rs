//! No policy: each source sends its fragments in the order of the events, as fast as it can.

use super::rules::{Orders, Policy, Traffic};
use crate::sim::network::Fragment;

/// Sources that send without regard to each other (`none`).
#[derive(Debug)]
pub struct Free {
    traffic: Traffic,
    nodes: u16,
    /// How many events a source may be ahead of the oldest that is not built; 0 without limit.
    window: u32,
    available: u32,
    settled: u32,
    /// Number of the next fragment of uniform traffic.
    number: u32,
    sources: Vec<Source>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Source {
    /// The next event that it sends.
    next: u32,
    busy: bool,
}

impl Free {
    /// A farm of sources and nodes.
    #[must_use]
    pub fn new(traffic: Traffic, sources: u16, nodes: u16, window: u32) -> Self {
        Self {
            traffic,
            nodes,
            window,
            available: 0,
            settled: 0,
            number: 0,
            sources: vec![Source::default(); sources.into()],
        }
    }

    /// The source sends the next fragment, if it is idle and may.
    fn step(&mut self, source: u16, orders: &mut Orders) {
        let Some(state) = self.sources.get_mut(usize::from(source)) else {
            return;
        };
        let ahead = self.settled.saturating_add(self.window);
        let end = if self.window == 0 {
            self.available
        } else {
            self.available.min(ahead)
        };
        if state.busy || state.next >= end {
            return;
        }
        state.busy = true;
        let event = match self.traffic {
            Traffic::Building => state.next,
            Traffic::Uniform(_) => {
                self.number += 1;
                self.number - 1
            }
        };
        state.next += 1;
        orders.send(event, source, self.traffic.node(event, source, self.nodes));
    }

    fn step_all(&mut self, orders: &mut Orders) {
        for source in 0..self.sources.len() as u16 {
            self.step(source, orders);
        }
    }
}

impl Policy for Free {
    fn available(&mut self, events: u32, orders: &mut Orders) {
        self.available = events;
        self.step_all(orders);
    }

    fn sent(&mut self, fragment: &Fragment, orders: &mut Orders) {
        if let Some(source) = self.sources.get_mut(usize::from(fragment.source)) {
            source.busy = false;
        }
        self.step(fragment.source, orders);
    }

    fn settled(&mut self, events: u32, orders: &mut Orders) {
        self.settled = events;
        if self.window > 0 {
            self.step_all(orders);
        }
    }
}
