//! The compressed RICH hit container, version 1 (docs/formats/rich-hits.md).
//!
//! One frame is one UDP payload: a header of 24 bytes, then `event_count` events. Within an
//! event every variable-length number comes before the fixed-length fine times, each number
//! takes one or two bytes, and *gaps* rather than differences are stored: index i is
//! index i-1 plus one plus gap i. So the indices of any gaps ascend strictly, and a decoder has
//! one range check an event instead of one a hit, and no data-dependent branch but the loop.

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
