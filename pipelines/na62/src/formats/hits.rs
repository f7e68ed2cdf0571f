//! The compressed RICH hit container, version 1 (docs/formats/rich-hits.md).
//!
//! One frame is one UDP payload: a header of 24 bytes, then `event_count` events. Within an event
//! every variable-length number precedes the fixed-length fine times. Each number takes one or two
//! bytes, and *gaps* are stored instead of differences: index i is index i-1 plus one plus gap i.
//! So the indices ascend strictly for any gaps, and a decoder needs one range check per event
//! instead of one per hit, and no data-dependent branch except the loop.

mod decode;
mod frame;
mod write;

pub use decode::{Decoded, EventSink};
pub use frame::{
    Events, HEADER_LEN, HitsFrame, HitsHeader, MAGIC, MAX_FRAME, MAX_GAP, MAX_HITS, VERSION,
};
pub use write::HitsWriter;

#[cfg(test)]
mod tests;
