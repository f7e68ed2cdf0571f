//! What goes wrong between the boards and the trigger, and in which order frames arrive.
//!
//! Time here is the frames' own, so that the same seed gives the same sequence of frames at any
//! pace.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pollux_mempool::time::Ns;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use crate::config::{EmulatorConfig, Faults, SLOT_NS};
use crate::frames::{Frame, Spare};

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

/// A frame in the order of sending: by time, delayed ones last, then as they were made.
#[derive(Debug)]
struct Queued {
    key: (Ns, bool, u64),
    frame: Frame,
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Queued {}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Queued {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// Lets at most one fault befall each frame, and puts the frames in the order of sending.
#[derive(Debug)]
pub struct FaultInjector {
    faults: Faults,
    /// From one frame of a board to the next.
    period: Ns,
    rng: Xoshiro256PlusPlus,
    queue: BinaryHeap<Reverse<Queued>>,
    made: u64,
    enqueued: u64,
    counts: FaultCounts,
}

impl FaultInjector {
    /// An injector with nothing queued.
    #[must_use]
    pub fn new(config: &EmulatorConfig) -> Self {
        let period = u64::from(config.events_per_frame) * config.spacing() * SLOT_NS;
        Self {
            faults: config.faults,
            period: Ns(period),
            // Apart from the seeds of the events.
            rng: Xoshiro256PlusPlus::seed_from_u64(!config.seed),
            queue: BinaryHeap::with_capacity(1024),
            made: 0,
            enqueued: 0,
            counts: FaultCounts::default(),
        }
    }

    /// Takes a frame as its board made it. Frames come in the order in which they were made.
    pub fn push(&mut self, mut frame: Frame, spare: &mut Spare) {
        let Faults {
            lost,
            late,
            late_us,
            duplicated,
            reordered,
            corrupted,
        } = self.faults;
        let counts = &mut self.counts;
        self.made += 1;
        // One draw for each frame decides between all faults.
        let mut left: f64 = self.rng.random();
        let mut befalls = |probability: f64| {
            left -= probability;
            left < 0.0
        };
        let mut delayed = false;
        if befalls(lost) {
            counts.lost += 1;
            return spare.put(frame);
        } else if befalls(late) {
            counts.late += 1;
            delayed = true;
            frame.due = frame.due + Ns(u64::from(late_us) * 1000);
        } else if befalls(duplicated) {
            counts.duplicated += 1;
            let copy = spare.copy(&frame);
            self.enqueue(copy, false);
        } else if befalls(reordered) {
            counts.reordered += 1;
            delayed = true;
            frame.due = frame.due + self.period;
        } else if befalls(corrupted) {
            counts.corrupted += 1;
            let at = self.rng.random_range(0..frame.payload().len() as u16);
            frame.corrupt = Some((at, self.rng.random_range(1..=u8::MAX)));
        }
        self.enqueue(frame, delayed);
    }

    fn enqueue(&mut self, frame: Frame, delayed: bool) {
        let key = (frame.due, delayed, self.enqueued);
        self.enqueued += 1;
        self.queue.push(Reverse(Queued { key, frame }));
    }

    /// The frame to be sent next, where no frame due at `horizon` or later can come before it.
    #[must_use]
    pub fn peek(&self, horizon: Option<Ns>) -> Option<&Frame> {
        let Reverse(first) = self.queue.peek()?;
        horizon
            .is_none_or(|horizon| first.frame.due < horizon)
            .then_some(&first.frame)
    }

    /// Takes the frame to be sent next.
    pub fn pop(&mut self) -> Option<Frame> {
        self.queue.pop().map(|Reverse(queued)| queued.frame)
    }

    /// Frames that boards have made: without duplicates, with those lost.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Frames that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether no frame waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The faults so far.
    #[must_use]
    pub fn counts(&self) -> FaultCounts {
        self.counts
    }
}
