//! Detector data formats: a parser and a writer for each.
//!
//! Parsers borrow the packet, allocate nothing, and check a packet whole before the first
//! event is handed out, so that a packet is either delivered or counted as one loss: no
//! consumer ever sees half of a corrupt packet.

pub mod hits;
pub mod mep;
pub mod mtp;
pub mod tel62;

/// Why a packet was refused. [`FormatError::BadVersion`] is the drop cause `bad-version`;
/// every other value is the drop cause `malformed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The packet is written in a version of the format that this build does not read.
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
        /// Bytes that the packet announces, as far as was read.
        need: usize,
        /// Bytes that were there.
        have: usize,
    },
    /// Bytes remain after everything that the packet announces.
    #[error("{excess} bytes after the end that the header announces")]
    Trailing {
        /// Bytes left over.
        excess: usize,
    },
    /// A field has a value that the format does not allow.
    #[error("malformed: {0}")]
    Malformed(&'static str),
}

/// Why a writer refused an item. The packet under construction stays valid without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The item does not fit into this packet: finish it and put the item into the next one.
    #[error("the packet is full: finish it and begin another")]
    Full,
    /// The buffer cannot even hold the header.
    #[error("the buffer is smaller than the packet header: {need} bytes needed, {have} there")]
    Buffer {
        /// Bytes that the header takes.
        need: usize,
        /// Bytes that the buffer has.
        have: usize,
    },
    /// The format cannot carry the item, in this packet or in any other.
    #[error("not representable: {0}")]
    Invalid(&'static str),
}

/// Holds the length that a header announces (`need`) against the bytes that are there.
fn exact_length(need: usize, have: usize) -> Result<(), FormatError> {
    match have.checked_sub(need) {
        Some(0) => Ok(()),
        Some(excess) => Err(FormatError::Trailing { excess }),
        None => Err(FormatError::Truncated { need, have }),
    }
}
