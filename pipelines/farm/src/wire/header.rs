//! Fields of the header of a message.

use zerocopy::byteorder::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::crc::header_crc;
use crate::topology::Descriptor;

/// Bits of `flags`.
pub(super) const HOLD: u8 = 1;
pub(super) const PAYLOAD_CRC: u8 = 2;

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
    #[inline]
    pub(super) fn computed_crc(&self) -> u32 {
        header_crc(zerocopy::transmute_ref!(self))
    }

    /// Whether a bit is set that the kind of message does not use.
    pub(super) fn has_others(&self, kind: Kind) -> bool {
        let (words, _) = self.as_bytes().as_chunks();
        let used = &USED[kind as usize];
        let others = words.iter().zip(used).fold(0, |others, (word, used)| {
            others | (u64::from_le_bytes(*word) & !used)
        });
        let [lengths, _] = self.words.map(U64::get);
        let has_crc = self.flags & PAYLOAD_CRC != 0;
        others != 0 || (matches!(kind, Kind::Fragment) && !has_crc && lengths >> 32 != 0)
    }

    /// Sets the receive buffer and what is in it.
    pub(super) fn place(&mut self, descriptor: Descriptor, generation: u32, mep: u64) {
        self.descriptor = U16::new(descriptor.0);
        self.generation = U32::new(generation);
        self.mep = U64::new(mep);
    }
}

/// Bits of the eight words of a header by kind: those of all kinds are version, kind, CRC and run.
const USED: [[u64; 8]; Kind::LAST as usize + 1] = {
    const ALL: u64 = u64::MAX;
    const BASE: u64 = 0xFFFF_FFFF_0000_FFFF;
    const HOLDS: u64 = (HOLD as u64) << 16;
    const HAS_CRC: u64 = (PAYLOAD_CRC as u64) << 16;
    const LOOPS: u64 = 0xFF << 24;
    const RUN: u64 = 0xFFFF_FFFF;
    const DESCRIPTOR: u64 = 0xFFFF << 32;
    const COUNT: u64 = 0xFFFF << 48;
    const ATTEMPT: u64 = 0xFFFF;
    const PART: u64 = 0xFF << 16;
    const MEMBER: u64 = 0xFF << 24;
    const GENERATION: u64 = 0xFFFF_FFFF << 32;
    /// A descriptor and events, and a transfer of them.
    const MEP: u64 = RUN | DESCRIPTOR | COUNT;
    const TRANSFER: u64 = ATTEMPT | PART | GENERATION;
    /// Buffers without events.
    const BUFFER: u64 = RUN | DESCRIPTOR;
    let mut used = [[0; 8]; Kind::LAST as usize + 1];
    used[Kind::Flow as usize] = [BASE | HOLDS | LOOPS, MEP, TRANSFER, ALL, ALL, ALL, ALL, ALL];
    used[Kind::Fragment as usize] = [
        BASE | HAS_CRC,
        MEP,
        TRANSFER | MEMBER,
        ALL,
        ALL,
        ALL,
        ALL,
        0xFFFF,
    ];
    used[Kind::Feedback as usize] = [BASE, BUFFER, MEMBER | GENERATION, ALL, 0, 0, 0, 0];
    used[Kind::Alive as usize] = [BASE, BUFFER, MEMBER, 0, 0, 0, 0, 0];
    used[Kind::More as usize] = [BASE, BUFFER, GENERATION, ALL, 0, 0, 0, 0];
    used[Kind::Decision as usize] = [BASE, MEP, ATTEMPT | GENERATION, ALL, ALL, ALL, ALL, 0];
    used[Kind::Ack as usize] = [BASE, RUN, 0, ALL, 0, 0, 0, 0];
    used[Kind::Decided as usize] = [BASE, RUN, 0, ALL, 0, 0, ALL, ALL];
    used[Kind::Trigger as usize] = [BASE, RUN | COUNT, 0, 0, ALL, 0, 0, 0];
    used[Kind::Withdraw as usize] = [BASE, BUFFER, GENERATION, 0, 0, 0, 0, 0];
    used[Kind::Assign as usize] = [BASE | LOOPS, MEP, TRANSFER, ALL, ALL, ALL, 0, 0];
    used[Kind::Request as usize] = [BASE | HOLDS, MEP, TRANSFER | MEMBER, ALL, ALL, ALL, 0, 0];
    used
};

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
