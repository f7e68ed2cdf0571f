//! The processors of a node.

use crate::node::{Built, Step, Work};
use crate::time::Time;

/// Processors that work on each event for the same time.
#[derive(Debug)]
pub(super) struct Cpus {
    time: Time,
    busy: u32,
}

impl Cpus {
    pub(super) fn new(time: Time) -> Self {
        Self { time, busy: 0 }
    }

    /// How many work.
    pub(super) fn busy(&self) -> u32 {
        self.busy
    }
}

impl Work<()> for Cpus {
    fn work(&mut self, now: Time, built: &Built<'_, ()>) -> Step {
        if built.calls == 0 && self.time > Time::ZERO {
            self.busy += 1;
            return Step::Wait(now + self.time);
        }
        self.busy = self.busy.saturating_sub(1);
        Step::Decide(0)
    }
}
