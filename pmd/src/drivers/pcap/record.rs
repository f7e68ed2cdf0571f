//! What the formats have in common: byte order, and where a record lies.

use super::link::Link;

/// Longest record or block that is believed: libpcap's own limit is 256 KiB for Ethernet, and
/// chains of buffers end far below this. A longer one is a sign of a damaged file.
pub(super) const MAX_RECORD: usize = 16 << 20;

/// Byte order of a capture, or of a section of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Big,
    Little,
}

impl Order {
    /// `None` where the bytes do not reach that far.
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let &bytes = bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Big => u16::from_be_bytes(bytes),
            Self::Little => u16::from_le_bytes(bytes),
        })
    }

    /// `None` where the bytes do not reach that far.
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let &bytes = bytes.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Big => u32::from_be_bytes(bytes),
            Self::Little => u32::from_le_bytes(bytes),
        })
    }
}

/// Where the next record lies, counted from the front of the window.
pub(super) struct Located {
    /// Stamp in nanoseconds since the Unix epoch; a simple packet block has none.
    pub(super) time: Option<u64>,
    pub(super) link: Link,
    /// Where the captured bytes start.
    pub(super) data: usize,
    pub(super) captured: usize,
    /// Length of the frame when it was captured.
    pub(super) original: usize,
    /// Length of the whole record.
    pub(super) record: usize,
}
