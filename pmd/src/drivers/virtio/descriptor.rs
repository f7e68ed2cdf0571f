//! Descriptors, common to both kinds of rings.

/// A buffer segment: its device address, and its length in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) address: u64,
    pub(super) len: u32,
}

/// A descriptor as it was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptor {
    pub(super) piece: Piece,
    pub(super) flags: u16,
    /// Its last field: in a split ring the next of the chain, in a packed one the buffer's id.
    pub(super) last: u16,
}

impl Descriptor {
    /// Decodes the words of a split ring (section 2.7.5).
    #[inline(always)]
    pub(super) fn of_split([address, rest]: [u64; 2]) -> Self {
        let len = rest as u32;
        Self {
            piece: Piece { address, len },
            flags: (rest >> 32) as u16,
            last: (rest >> 48) as u16,
        }
    }

    /// Decodes the words of a packed ring (section 2.8.13).
    #[inline(always)]
    pub(super) fn of_packed([address, rest]: [u64; 2]) -> Self {
        let len = rest as u32;
        Self {
            piece: Piece { address, len },
            flags: (rest >> 48) as u16,
            last: (rest >> 32) as u16,
        }
    }
}
