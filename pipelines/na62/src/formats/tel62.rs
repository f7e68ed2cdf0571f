//! TDC data of a TEL62 readout board: the contents of a fragment of a multi-event packet for the
//! detectors with TDCs, the RICH among them (docs/formats/mep.md).
//!
//! Layout after the farm's decoder (NA62/na62-trigger-algorithms,
//! `common/decoding/TrbFragmentDecoder.h`). All words have 32 bits, little-endian: a board word;
//! for each FPGA of the board a word, its frames, and possibly a block of error words; a frame is a
//! word and the edges of one slot of 25 ns.

mod data;
mod decode;
mod write;

pub use data::{Edge, Edges, Tel62};
pub use decode::Decoded;
pub use write::write_tel62;

#[cfg(test)]
mod tests;
