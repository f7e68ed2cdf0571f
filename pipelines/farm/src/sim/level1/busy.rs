//! Busy processors.

use crate::time::Time;

/// Integral of the number of busy processors since the measurement began.
#[derive(Debug, Default)]
pub(super) struct Busy {
    now: u32,
    /// Of each node.
    nodes: Vec<u32>,
    since: Time,
    sum: u128,
}

impl Busy {
    pub(super) fn new(nodes: u16) -> Self {
        Self {
            nodes: vec![0; nodes.into()],
            ..Self::default()
        }
    }

    fn advance(&mut self, now: Time) {
        self.sum += u128::from((now - self.since).ps()) * u128::from(self.now);
        self.since = now;
    }

    /// A node has another number of busy processors.
    pub(super) fn set(&mut self, now: Time, node: u16, busy: u32) {
        self.advance(now);
        let before = std::mem::replace(&mut self.nodes[usize::from(node)], busy);
        self.now = self.now - before + busy;
    }

    /// The measurement begins.
    pub(super) fn start(&mut self, now: Time) {
        self.advance(now);
        self.sum = 0;
    }

    /// Processors x picoseconds since then.
    pub(super) fn sum(&mut self, now: Time) -> f64 {
        self.advance(now);
        self.sum as f64
    }
}
