//! What goes wrong between the boards and the trigger, and in which order frames arrive.

use pollux_faults::{Behind, Counts, Injector};
use pollux_mempool::time::Ns;
use serde::Serialize;

use crate::config::{Arrival, EmulatorConfig, SLOT_NS};
use crate::frames::Frame;

/// Frames that may wait before the injector takes more memory.
const ROOM: usize = 1024;

/// How many frames each fault befell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FaultCounts {
    /// Never sent.
    pub lost: u64,
    /// Sent after their time.
    pub late: u64,
    /// Sent twice.
    pub duplicated: u64,
    /// Sent behind the next frame of their board.
    pub reordered: u64,
    /// Sent with a changed byte.
    pub corrupted: u64,
}

impl From<Counts> for FaultCounts {
    fn from(counts: Counts) -> Self {
        Self {
            lost: counts.lost,
            late: counts.delayed,
            duplicated: counts.duplicated,
            reordered: counts.reordered,
            corrupted: counts.corrupted,
        }
    }
}

impl pollux_faults::Frame for Frame {
    fn due(&self) -> Ns {
        self.due
    }

    fn set_due(&mut self, due: Ns) {
        self.due = due;
    }

    fn len_on_link(&self) -> usize {
        self.payload().len()
    }

    /// Its sender does not support marks.
    fn mark(&mut self) -> bool {
        false
    }

    fn corrupt(&mut self, pick: impl FnOnce(usize) -> Option<(usize, u8)>) -> bool {
        self.corrupt = pick(self.payload().len()).map(|(at, bits)| (at as u16, bits));
        self.corrupt.is_some()
    }
}

/// The injector of a configuration, with nothing queued.
#[must_use]
pub fn injector(config: &EmulatorConfig) -> Injector<Frame> {
    // From one frame of a board to the next; of a Poisson process, longer than that but in one case
    // of a thousand.
    let period = u64::from(config.events_per_frame) * config.spacing() * SLOT_NS;
    let period = match config.arrival {
        Arrival::Regular => period,
        Arrival::Poisson => {
            let spread = 4.0 / f64::from(config.events_per_frame).sqrt();
            (period as f64 * (1.0 + spread)) as u64
        }
    };
    // The seed is apart from those of the events.
    Injector::new(
        config.faults.rates(),
        Behind::Time(Ns(period)),
        !config.seed,
        ROOM,
    )
}
