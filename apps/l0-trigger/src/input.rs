//! Inputs of the trigger: receive queues, and the order of recorded frames over all of them, which
//! is that of capture time.
//!
//! A recording can wait, so the loop can peek at the next frame of every queue and take the
//! earliest. The order, and with it every decision, does not depend on the distribution of the
//! streams over queues, or on the size of the bursts.

use std::collections::VecDeque;

use pollux_mempool::time::WireTime;
use pollux_na62::l0::Frame;
use pollux_pmd::endpoint::Lane;
use pollux_pmd::{Cause, RxQueue, Tally};

/// Where the frames of an input come from.
pub enum Source {
    /// The trigger's loop polls the queue.
    Queue(RxQueue),
    /// A receive loop does.
    Lane(Box<Lane>),
}

/// A receive queue of the trigger.
pub struct Input {
    pub source: Source,
    /// Index of its port on the command line.
    pub place: usize,
    /// Frames of a recording that wait for their turn.
    pub pending: Pending,
}

impl Input {
    /// Whether nothing more can be read.
    pub fn is_final(&self) -> bool {
        match &self.source {
            Source::Queue(rx) => rx.state().is_final(),
            Source::Lane(lane) => lane.has_ended(),
        }
    }

    /// Whether no frame is left and none can come.
    pub fn has_ended(&self) -> bool {
        self.is_final() && self.pending.is_empty()
    }

    /// Whether the queue itself has no frame now; a lane may be empty because its loop is behind.
    pub fn is_waiting(&self) -> bool {
        match &self.source {
            Source::Queue(_) => true,
            Source::Lane(lane) => lane.is_waiting(),
        }
    }

    /// The queue, if the trigger's loop polls it.
    pub fn queue(&mut self) -> Option<&mut RxQueue> {
        match &mut self.source {
            Source::Queue(rx) => Some(rx),
            Source::Lane(_) => None,
        }
    }

    /// The same, to stop its port.
    pub fn into_queue(self) -> Option<RxQueue> {
        match self.source {
            Source::Queue(rx) => Some(rx),
            Source::Lane(_) => None,
        }
    }
}

/// The frames of one queue that have been read and not yet processed.
#[derive(Default)]
pub struct Pending(VecDeque<Frame>);

impl Pending {
    pub fn push(&mut self, frame: Frame) {
        self.0.push_back(frame);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Drops the remaining frames.
    pub fn abort(&mut self, tally: &mut Tally) {
        tally.count_dropped(Cause::Aborted, self.0.len() as u64);
        self.0.clear();
    }
}

/// Position of a frame in the order: capture time, port, number of the frame.
fn rank(frame: &Frame, port: usize) -> (WireTime, usize, u32) {
    (
        frame.mbuf.wire_time().unwrap_or_default(),
        port,
        frame.mbuf.ordinal(),
    )
}

/// Takes the earliest frame of all queues. Every queue that can still yield frames must have one.
pub fn earliest(inputs: &mut [Input]) -> Option<Frame> {
    let (_, input) = inputs
        .iter_mut()
        .filter_map(|input| {
            let rank = rank(input.pending.0.front()?, input.place);
            Some((rank, input))
        })
        .min_by_key(|&(rank, _)| rank)?;
    input.pending.0.pop_front()
}
