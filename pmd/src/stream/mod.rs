//! Streams: which one a datagram belongs to, and what its sequence numbers say was lost.

mod demux;
mod sequence;
mod stamped;

pub use demux::{Demux, DemuxBuilder, DemuxError, StreamCounts, StreamView};
pub use sequence::{MAX_GAP, SequenceCounts, SequenceTracker, Verdict, WINDOW};
pub use stamped::{Observation, StampedTracker};

/// A configured stream: a small number that indexes per-stream state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u16);
