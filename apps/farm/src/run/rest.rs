//! What a loop does when there is nothing to do.

use std::time::Duration;

/// Iterations without work before a loop sleeps.
const IDLE: u32 = 256;

/// Time that it sleeps: a time-out of the farm is far longer.
const SLEEP: Duration = Duration::from_micros(50);

/// What a loop does when there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It polls on: it has a CPU of its own.
    Never,
    /// It gives way to the other loops of the process, with which it shares CPUs.
    Yield,
    /// It gives way to other processes, and sleeps while nothing arrives for longer.
    Sleep,
}

/// A loop that rests.
#[derive(Clone, Copy, Debug)]
pub struct Resting {
    rest: Rest,
    idle: u32,
}

impl Resting {
    pub fn new(rest: Rest) -> Self {
        Self { rest, idle: 0 }
    }

    /// After an iteration, which had something to do or not.
    pub fn after(&mut self, worked: bool) {
        if worked {
            self.idle = 0;
            return;
        }
        self.idle = self.idle.saturating_add(1);
        match self.rest {
            Rest::Never => {}
            Rest::Sleep if self.idle > IDLE => std::thread::sleep(SLEEP),
            Rest::Yield | Rest::Sleep => std::thread::yield_now(),
        }
    }
}
