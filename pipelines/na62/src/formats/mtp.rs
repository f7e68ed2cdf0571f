//! NA62 L0 primitives: the Multi-Trigger Packet (docs/formats/mtp.md).
//!
//! Layout after the receive state machine of the L0 trigger processor's firmware
//! (dariosol/na62l0tpfw, `ethlink.vhd`). One packet is one UDP payload of 32-bit little-endian
//! words: a header of two words, then a mixture of timestamp words and primitive words.

mod decode;
mod packet;
mod write;

pub use decode::Decoded;
pub use packet::{
    FINE_FIRMWARE_NS, FINE_NS, HEADER_LEN, MAX_PACKET, MAX_PRIMITIVES, MtpPacket, Primitive,
    Primitives, SLOT_NS, SOURCE_L0TP, SOURCE_RICH,
};
pub use write::MtpWriter;

#[cfg(test)]
mod tests;
