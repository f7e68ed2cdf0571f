//! Byte order and record location, common to the formats.

use super::link::Link;

/// Maximum plausible length of a record or block: libpcap's own limit is 256 KiB for Ethernet, and
/// the maximum length of a buffer chain is far below this. A longer one indicates a damaged file.
pub(super) const MAX_RECORD: usize = 16 << 20;

/// Byte order of a capture, or of a section of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Big,
    Little,
}

impl Order {
    /// `None` if the bytes are too short.
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let &bytes = bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Big => u16::from_be_bytes(bytes),
            Self::Little => u16::from_le_bytes(bytes),
        })
    }

    /// `None` if the bytes are too short.
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let &bytes = bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Big => u32::from_be_bytes(bytes),
            Self::Little => u32::from_le_bytes(bytes),
        })
    }
}

/// Location of the next record, relative to the front of the window.
pub(super) struct Located {
    /// Time stamp in nanoseconds since the Unix epoch; a simple packet block has none.
    pub(super) time: Option<u64>,
    pub(super) link: Link,
    /// Start of the captured bytes.
    pub(super) data: usize,
    pub(super) captured: usize,
    /// Original length of the frame.
    pub(super) original: usize,
    /// Length of the whole record.
    pub(super) record: usize,
}
