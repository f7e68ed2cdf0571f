//! Streams: demultiplexing of datagrams, and loss accounting by sequence numbers.

mod demux;
mod id;
mod sequence;
mod spill;
mod stamped;

pub use demux::{Demux, DemuxBuilder, DemuxError, StreamCounts, StreamView};
pub use id::StreamId;
pub use sequence::{MAX_GAP, SequenceCounts, SequenceTracker, Verdict, WINDOW};
pub use spill::SpillTracker;
pub use stamped::Observation;
