//! Reception of a loop: packets from receive queues, or stacks that sources write into memory.

use pollux_mempool::time::Tsc;
use pollux_pipelines::Moment;
use pollux_pmd::{RxQueue, TallyView, TxQueue};

use super::packets::PacketReception;
use super::place::Place;
use super::rdma::StackReception;
use super::received::ReceivedUntil;

/// What a loop receives.
#[expect(clippy::large_enum_variant, reason = "one for each loop")]
pub enum Reception<L> {
    /// Packets of the detector.
    Packets(PacketReception<L>),
    /// Stacks of image lines.
    Stacks(StackReception<L>),
}

impl<L: Place> Reception<L> {
    /// Prepares the thread of the loop, before its first round.
    pub fn begin(&self) {
        match self {
            Self::Packets(packets) => packets.begin(),
            Self::Stacks(stacks) => stacks.begin(),
        }
    }

    /// One round, which began at `time` by the clock and `now` after the start of the run. Returns whether
    /// there was anything to do.
    #[inline]
    pub fn poll(&mut self, time: Tsc, now: Moment) -> bool {
        match self {
            Self::Packets(packets) => packets.poll(time, now),
            Self::Stacks(stacks) => stacks.poll(now),
        }
    }

    /// A round without room for images: packets wait in their queues; lines are written on, and wait in their
    /// buffers.
    #[inline]
    pub fn hold(&mut self, now: Moment) -> bool {
        match self {
            Self::Packets(_) => false,
            Self::Stacks(stacks) => stacks.serve(now),
        }
    }

    /// The run ends: what has come so far belongs to it.
    pub fn close(&mut self) {
        if let Self::Stacks(stacks) = self {
            stacks.close();
        }
    }

    /// The time by which images are late.
    pub fn received_until(&self) -> ReceivedUntil {
        match self {
            Self::Packets(packets) => packets.received_until(),
            Self::Stacks(stacks) => stacks.received_until(),
        }
    }

    /// Whether nothing more can be received.
    pub fn has_ended(&self) -> bool {
        match self {
            Self::Packets(packets) => packets.has_ended(),
            Self::Stacks(stacks) => stacks.has_ended(),
        }
    }

    /// The counter of the packets, or lines.
    pub fn placed(&self) -> TallyView {
        match self {
            Self::Packets(packets) => packets.placed(),
            Self::Stacks(stacks) => stacks.placed(),
        }
    }

    /// The queues, for an idle loop. An endpoint has work of its own, and does not wait for its queue.
    pub fn queues(&mut self) -> impl Iterator<Item = &mut RxQueue> {
        let packets = match self {
            Self::Packets(packets) => Some(packets.queues()),
            Self::Stacks(_) => None,
        };
        packets.into_iter().flatten()
    }

    /// Reads counters outside of the process, and sends what was refused: every now and then.
    #[cold]
    pub fn chores(&mut self) {
        if let Self::Packets(packets) = self {
            packets.chores();
        }
    }

    /// The queues, with which the ports are stopped.
    pub fn finish(self) -> (Vec<RxQueue>, Vec<TxQueue>) {
        match self {
            Self::Packets(packets) => packets.finish(),
            Self::Stacks(stacks) => stacks.finish(),
        }
    }
}
