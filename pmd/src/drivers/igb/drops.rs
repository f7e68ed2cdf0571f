//! Counters of dropped frames: RQDPC of each receive queue (section 8.10), which has 12 bits, begins
//! anew when they overflow, and is cleared by a read.
//!
//! A register read takes about a microsecond, so no poll loop reads them. Housekeeping adds them to
//! sums in memory, which the queues move to their ledgers: a thread, where the device counts in real
//! time and a counter can overflow within 2.7 ms of the shortest frames at 1 Gb/s; otherwise
//! [`Driver::link`](crate::driver::Driver::link).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::periodic::Periodic;
use crate::bus::{Bus, BusError, Device};

/// Offset of RQDPC from the first register of its queue.
const DROPPED: usize = 0x30;

/// Time in which no counter overflows.
const PERIOD: Duration = Duration::from_millis(1);

/// Frames that the receive queues of a port have dropped because no descriptor was left.
pub(crate) struct Drops<B> {
    bus: B,
    /// First register of each queue, and its frames that are not in its ledger yet.
    queues: Box<[(usize, AtomicU64)]>,
    /// Held from the read that clears a register to the addition to the sum, so that after a
    /// [`read`](Self::read) the sums have all that came before.
    reading: Mutex<()>,
}

impl<B: Bus> Drops<B> {
    /// For the queues whose registers begin at `bases`.
    pub(super) fn new(bus: B, bases: impl Iterator<Item = usize>) -> Self {
        Self {
            bus,
            queues: bases.map(|base| (base, AtomicU64::new(0))).collect(),
            reading: Mutex::new(()),
        }
    }

    /// Reads all counters. For housekeeping.
    pub(crate) fn read(&self) {
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        for (base, sum) in &self.queues {
            let dropped = match self.bus.read32(base + DROPPED) {
                // A device that is gone.
                u32::MAX => 0,
                dropped => u64::from(dropped & 0xfff),
            };
            if dropped > 0 {
                sum.fetch_add(dropped, Ordering::Relaxed);
            }
        }
    }

    /// Takes the frames of a queue that [`read`](Self::read) has found since the last call.
    #[inline]
    pub(super) fn take(&self, queue: usize) -> u64 {
        // Relaxed: the count orders nothing. A load first, as the sum is zero most of the time.
        match self.queues.get(queue) {
            Some((_, sum)) if sum.load(Ordering::Relaxed) > 0 => sum.swap(0, Ordering::Relaxed),
            _ => 0,
        }
    }
}

/// Housekeeping of the counters of a running port.
pub(crate) struct DropReader<B> {
    drops: Arc<Drops<B>>,
    _thread: Option<Periodic>,
}

impl<B: Bus> DropReader<B> {
    /// Starts the thread, if the device needs it. It ends when the value is dropped: before a reset.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(crate) fn start<D: Device<Bus = B>>(
        device: &D,
        drops: Arc<Drops<B>>,
    ) -> Result<Self, BusError> {
        let thread = device.counts_in_real_time().then(|| {
            let drops = drops.clone();
            Periodic::start(PERIOD, move || drops.read())
        });
        let thread = thread.transpose().map_err(|error| BusError::System {
            device: device.name().into(),
            what: "cannot start the thread that reads its counters".into(),
            hint: String::new(),
            error,
        })?;
        Ok(Self {
            drops,
            _thread: thread,
        })
    }

    /// Reads all counters now.
    pub(crate) fn read(&self) {
        self.drops.read();
    }
}
