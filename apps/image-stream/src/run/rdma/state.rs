//! What the thread of the sources and the loop share of a module.
//!
//! A seat is free, taken, or left. The thread gives a free one to a source, and marks it when the source has left.
//! The loop takes what that source has written, and only then the seat is free again: no other source writes
//! into its buffers before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use pollux_rdma::{QueuePair, RemoteBuffer};

/// A source that is connected.
pub struct Peer {
    pub qp: QueuePair,
    /// Where it reads how many stacks were taken.
    pub taken: RemoteBuffer,
}

/// Who has a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Occupancy {
    /// No source.
    Free,
    /// A source that is connected.
    Taken,
    /// A source that is gone; the loop takes what it has left.
    Left,
}

#[derive(Clone)]
struct State(Arc<AtomicU8>);

impl State {
    fn get(&self) -> Occupancy {
        match self.0.load(Ordering::Acquire) {
            1 => Occupancy::Taken,
            2 => Occupancy::Left,
            _ => Occupancy::Free,
        }
    }

    fn set(&self, occupancy: Occupancy) {
        self.0.store(occupancy as u8, Ordering::Release);
    }
}

/// The loop's end.
pub struct LoopEnd {
    state: State,
    arrivals: Receiver<Peer>,
}

/// The thread's end.
pub struct SourcesEnd {
    state: State,
    arrivals: SyncSender<Peer>,
}

/// Both ends of a free seat.
pub fn shared() -> (LoopEnd, SourcesEnd) {
    let state = State(Arc::default());
    let (sender, arrivals) = sync_channel(1);
    let other = SourcesEnd {
        state: state.clone(),
        arrivals: sender,
    };
    (LoopEnd { state, arrivals }, other)
}

impl LoopEnd {
    /// The source that has come.
    #[inline]
    pub fn arrival(&self) -> Option<Peer> {
        self.arrivals.try_recv().ok()
    }

    /// Whether the source is gone.
    #[inline]
    pub fn has_left(&self) -> bool {
        self.state.get() == Occupancy::Left
    }

    /// Frees the seat: all that its source has written was taken.
    pub fn free(&self) {
        self.state.set(Occupancy::Free);
    }
}

impl SourcesEnd {
    pub fn occupancy(&self) -> Occupancy {
        self.state.get()
    }

    /// Gives a free seat to a source.
    pub fn take(&self, peer: Peer) {
        self.state.set(Occupancy::Taken);
        if self.arrivals.try_send(peer).is_err() {
            self.state.set(Occupancy::Free);
        }
    }

    /// The source is gone.
    pub fn leave(&self) {
        self.state.set(Occupancy::Left);
    }
}
