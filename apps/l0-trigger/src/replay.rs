//! The order of recorded frames: by capture time, over all queues and ports.
//!
//! A recording can wait, so the loop can look at the next frame of every queue and take the
//! earliest. The order, and with it every decision, does not depend on how the streams are spread
//! over queues, or on the size of the bursts.

use std::collections::VecDeque;

use pollux_mempool::time::WireTime;
use pollux_na62::l0::Frame;
use pollux_pmd::{Cause, Tally};

use crate::trigger::Input;

/// The frames of one queue that have been read and not yet taken.
#[derive(Default)]
pub struct Pending(VecDeque<Frame>);

impl Pending {
    pub fn push(&mut self, frame: Frame) {
        self.0.push_back(frame);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Drops what never had its turn.
    pub fn abort(&mut self, tally: &mut Tally) {
        tally.count_dropped(Cause::Aborted, self.0.len() as u64);
        self.0.clear();
    }
}

/// Where a frame stands in the order: when it was captured, on which port, as which frame.
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
