//! Streams: which one a datagram belongs to, and what its sequence numbers say was lost.

mod demux;
mod sequence;
mod spill;
mod stamped;

pub use demux::{Demux, DemuxBuilder, DemuxError, StreamCounts, StreamView};
pub use sequence::{MAX_GAP, SequenceCounts, SequenceTracker, Verdict, WINDOW};
pub use spill::SpillTracker;
pub use stamped::Observation;

/// A configured stream: a small number that indexes per-stream state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u16);
