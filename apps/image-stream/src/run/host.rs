//! What a run is embedded in: it ends the run, and follows it.

use std::sync::Arc;

use pollux_images::control::Event;
use pollux_pmd::lcore::StopFlag;

use super::counters::Counters;
use super::overrun::Overruns;

/// Follows the runs of a program that a manager controls.
pub trait Follow {
    /// All resources of the run are open. Waits for its start, where `waits` says so.
    fn ready(&self, counters: &Arc<Counters>, waits: bool);
    /// Tells the manager what happened.
    fn publish(&self, event: Event);
}

/// The context of a run.
pub struct Host<'a> {
    /// Ends the run.
    quit: StopFlag,
    follower: Option<&'a dyn Follow>,
}

impl<'a> Host<'a> {
    /// Of a run that is all that the program does.
    pub fn alone(quit: StopFlag) -> Self {
        Self {
            quit,
            follower: None,
        }
    }

    /// Of a run that a manager has armed.
    pub fn managed(quit: StopFlag, follower: &'a dyn Follow) -> Self {
        Self {
            quit,
            follower: Some(follower),
        }
    }

    /// All resources of the run are open, and its loops are launched next. Packets of an interface wait in its
    /// receive ring until then; a recording waits for the start.
    pub fn ready(&self, counters: &Arc<Counters>, recorded: bool) {
        if let Some(follower) = self.follower {
            follower.ready(counters, recorded);
        }
    }

    /// Housekeeping: tells the manager about overruns. Returns whether the run is to end.
    pub fn keep(&self, counters: &Counters, overruns: &mut Overruns) -> bool {
        if let Some(follower) = self.follower {
            overruns.poll(counters, |event| follower.publish(event));
        }
        self.quit.is_set()
    }
}
