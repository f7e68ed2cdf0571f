//! Fields of the header of a message.

use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::topology::Descriptor;

/// The fields; the kinds of message use them as docs/formats/farm.md says.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Fields {
    pub(super) version: u8,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) loops: u8,
    pub(super) crc: U32,
    pub(super) run: U32,
    pub(super) descriptor: U16,
    pub(super) count: U16,
    pub(super) attempt: U16,
    pub(super) part: u8,
    pub(super) member: u8,
    pub(super) generation: U32,
    pub(super) mep: U64,
    pub(super) event: U64,
    pub(super) members: U64,
    pub(super) words: [U64; 2],
}

const _: () = assert!(size_of::<Fields>() == 64);

impl Fields {
    /// CRC-32 (IEEE 802.3) of the header without the CRC itself.
    pub(super) fn computed_crc(&self) -> u32 {
        let bytes = self.as_bytes();
        let mut crc = crc32fast::Hasher::new();
        crc.update(&bytes[..4]);
        crc.update(&bytes[8..]);
        crc.finalize()
    }

    /// Sets the receive buffer and what is in it.
    pub(super) fn place(&mut self, descriptor: Descriptor, generation: u32, mep: u64) {
        self.descriptor = U16::new(descriptor.0);
        self.generation = U32::new(generation);
        self.mep = U64::new(mep);
    }
}

/// Kinds of message.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Flow = 1,
    Fragment,
    Feedback,
    Alive,
    More,
    Decision,
    Ack,
    Decided,
    Trigger,
    Withdraw,
    Assign,
    Request,
}

impl Kind {
    pub(super) const LAST: u8 = Self::Request as u8;
}

impl TryFrom<u8> for Kind {
    type Error = u8;

    fn try_from(kind: u8) -> Result<Self, u8> {
        Ok(match kind {
            1 => Self::Flow,
            2 => Self::Fragment,
            3 => Self::Feedback,
            4 => Self::Alive,
            5 => Self::More,
            6 => Self::Decision,
            7 => Self::Ack,
            8 => Self::Decided,
            9 => Self::Trigger,
            10 => Self::Withdraw,
            11 => Self::Assign,
            12 => Self::Request,
            other => return Err(other),
        })
    }
}
