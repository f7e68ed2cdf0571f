//! Detector data formats: a parser and a writer for each.
//!
//! Parsers borrow the packet, do not allocate, and check the whole packet before they return the
//! first event. A packet is either delivered or counted as one loss: no consumer ever sees part of
//! a corrupt packet.

pub mod hits;
pub mod mep;
pub mod mtp;
pub mod tel62;

/// Why a packet was refused. [`FormatError::BadVersion`] is the drop cause `bad-version`; every
/// other value is the drop cause `malformed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The packet has a version of the format that this build does not read.
    #[error("format version {found} where {expected} is read: update the sender or this program")]
    BadVersion {
        /// The version in the packet.
        found: u8,
        /// The version that this parser reads.
        expected: u8,
    },
    /// The packet ends before a field that its own lengths and counts announce.
    #[error("truncated: {need} bytes announced, {have} there")]
    Truncated {
        /// Announced length in bytes, as far as it was read.
        need: usize,
        /// Actual length in bytes.
        have: usize,
    },
    /// Bytes remain after all that the packet announces.
    #[error("{excess} bytes after the end that the header announces")]
    Trailing {
        /// Number of remaining bytes.
        excess: usize,
    },
    /// A field has a value that the format does not allow.
    #[error("malformed: {0}")]
    Malformed(&'static str),
}

/// Why a writer refused an item. The packet under construction stays valid without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The item does not fit into this packet: finish the packet and put the item into the next
    /// one.
    #[error("the packet is full: finish it and begin another")]
    Full,
    /// The buffer cannot hold the header.
    #[error("the buffer is smaller than the packet header: {need} bytes needed, {have} there")]
    Buffer {
        /// Length of the header in bytes.
        need: usize,
        /// Length of the buffer in bytes.
        have: usize,
    },
    /// The format cannot represent the item, in this packet or in any other.
    #[error("not representable: {0}")]
    Invalid(&'static str),
}

/// Compares the length that a header announces (`need`) with the actual length.
fn exact_length(need: usize, have: usize) -> Result<(), FormatError> {
    match have.checked_sub(need) {
        Some(0) => Ok(()),
        Some(excess) => Err(FormatError::Trailing { excess }),
        None => Err(FormatError::Truncated { need, have }),
    }
}
