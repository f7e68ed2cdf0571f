//! Payload of generated datagrams (docs/formats/generator.md): a header with flow, sequence number
//! and time, and bytes that are a function of the header and a seed.

use pollux_pmd::mempool::time::Tsc;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// `PG`, the first two bytes of the payload.
const MAGIC: u16 = u16::from_le_bytes(*b"PG");

/// Bytes of the header: the shortest payload.
pub(crate) const HEADER: usize = size_of::<Wire>();

/// Positions in the table at which the bytes of a frame may begin.
const STARTS: usize = 1 << 16;

/// The header as in the payload, byte by byte.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Wire {
    magic: U16,
    flow: U16,
    sequence: U32,
    sent: U64,
}

const _: () = assert!(size_of::<Wire>() == 16);

/// Decoded header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) flow: u16,
    /// Number of the frame in its flow, from 0.
    pub(crate) sequence: u32,
    /// Time when the frame was made, by the sender's counter: usable on the same machine only.
    pub(crate) sent: Tsc,
}

/// Pattern of the bytes behind the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Pattern {
    /// Zeros
    Zeros,
    /// Bytes that count up
    Increment,
    /// Random bytes that follow from --seed
    Random,
}

impl Pattern {
    /// Name on the command line and in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Zeros => "zeros",
            Self::Increment => "increment",
            Self::Random => "random",
        }
    }
}

/// The bytes behind the headers. They are copied from one table, which is cheaper than computing
/// them for each frame. The start position follows from flow and sequence number, so that
/// consecutive frames differ.
pub(crate) struct Content {
    table: Box<[u8]>,
}

impl Content {
    /// The bytes of a pattern, for payloads of up to `longest` bytes.
    pub(crate) fn new(pattern: Pattern, seed: u64, longest: usize) -> Self {
        let len = STARTS + longest;
        let table = match pattern {
            Pattern::Zeros => vec![0; len],
            Pattern::Increment => (0..len).map(|i| i as u8).collect(),
            Pattern::Random => {
                let words = SplitMix(seed).take(len.div_ceil(8));
                words.flat_map(u64::to_le_bytes).take(len).collect()
            }
        };
        Self {
            table: table.into(),
        }
    }

    /// The `len` bytes behind the header of a frame; fewer where `len` is above the longest.
    #[inline]
    fn of(&self, header: Header, len: usize) -> &[u8] {
        let n = u32::from(header.flow)
            .wrapping_mul(40_503)
            .wrapping_add(header.sequence);
        // Multiplicative hashing (Knuth, TAOCP vol. 3, 6.4): the top bits depend on all of n.
        let start = (n.wrapping_mul(2_654_435_761) >> 16) as usize;
        let rest = &self.table[start..];
        &rest[..len.min(rest.len())]
    }

    /// Fills a payload. A payload shorter than the header is left unchanged.
    #[inline]
    pub(crate) fn write(&self, header: Header, payload: &mut [u8]) {
        let Ok((wire, rest)) = Wire::mut_from_prefix(payload) else {
            return;
        };
        *wire = Wire {
            magic: U16::new(MAGIC),
            flow: U16::new(header.flow),
            sequence: U32::new(header.sequence),
            sent: U64::new(header.sent.0),
        };
        let content = self.of(header, rest.len());
        // Equal lengths: the table was made for the longest payload.
        rest[..content.len()].copy_from_slice(content);
    }

    /// Checks the pattern behind the header of a payload of `len` bytes that begins `offset` bytes
    /// into `segments`.
    #[inline]
    pub(crate) fn is_right<'a>(
        &self,
        header: Header,
        segments: impl IntoIterator<Item = &'a [u8]>,
        offset: usize,
        len: usize,
    ) -> bool {
        let mut expected = self.of(header, len.saturating_sub(HEADER));
        let mut skip = offset + HEADER;
        for segment in segments {
            let part = segment.get(skip..).unwrap_or_default();
            let part = part.get(..expected.len()).unwrap_or(part);
            skip = skip.saturating_sub(segment.len());
            let (first, rest) = expected.split_at(part.len());
            if part != first {
                return false;
            }
            expected = rest;
        }
        expected.is_empty()
    }
}

impl Header {
    /// Decodes the header of a payload; `None` for a payload that is not the generator's.
    #[inline]
    pub(crate) fn read(payload: &[u8]) -> Option<Self> {
        let (wire, _) = Wire::ref_from_prefix(payload).ok()?;
        (wire.magic.get() == MAGIC).then(|| Self {
            flow: wire.flow.get(),
            sequence: wire.sequence.get(),
            sent: Tsc(wire.sent.get()),
        })
    }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): simple to reimplement elsewhere.
struct SplitMix(u64);

impl Iterator for SplitMix {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some(z ^ z >> 31)
    }
}
