//! Rests of a loop that has nothing to do.

use std::iter::once;

use pollux_mempool::time::Ns;
use pollux_pmd::Clock;
use pollux_pmd::lcore::idle::{Idle, IdleError, IdlePolicy};

use super::poll::RoceLoop;

impl RoceLoop {
    /// Idle handling of this loop, for [`rest`](Self::rest). What a program posts does not end a sleep: it
    /// waits for `longest` at most, as deadlines do.
    ///
    /// # Errors
    /// The loop is to sleep, and its port cannot wake it.
    pub fn idle(&self, policy: IdlePolicy, longest: Ns) -> Result<Idle, IdleError> {
        Idle::new(policy, longest, once(&self.rx))
    }

    /// Rests after a poll, which had something to do or not.
    #[inline]
    pub fn rest(&mut self, idle: &mut Idle, clock: &impl Clock, is_busy: bool) {
        if is_busy {
            idle.worked(once(&mut self.rx));
        } else {
            idle.rest(clock, once(&mut self.rx));
        }
    }
}
