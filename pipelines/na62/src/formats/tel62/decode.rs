//! Vectorized decoder of the edges of an event, sixteen words of a frame at a time.

use pollux_pipelines::simd::{Decoder, LANES, Simd, Words};

use super::data::{Edge, LEADING, MAX_WORDS, NO_EDGE, TIME, Tel62};
use crate::formats::FormatError;

/// Capacity of a column: vectors are stored whole, from any place on.
const PLACES: usize = MAX_WORDS + LANES;
/// Bit of a position that marks a trailing edge.
const TRAILING_BIT: u32 = 1 << 7;

/// The edges of an event, in columns.
#[derive(Clone, Debug)]
pub struct Decoded {
    simd: Simd,
    len: usize,
    times: Box<[u64]>,
    places: Box<[u32]>,
}

impl Decoded {
    /// A buffer for the edges of any event, decoded by the instruction set of `simd`.
    #[must_use]
    pub fn new(simd: Simd) -> Self {
        Self {
            simd,
            len: 0,
            times: vec![0; PLACES].into(),
            places: vec![0; PLACES].into(),
        }
    }

    /// Times since the start of the burst, in units of 25/256 ns, modulo 2^40.
    #[must_use]
    pub fn times(&self) -> &[u64] {
        &self.times[..self.len]
    }

    /// Source of each edge: bits 4-0 channel, 6-5 TDC chip, 15-8 FPGA; bit 7 is set for a trailing
    /// edge.
    #[must_use]
    pub fn places(&self) -> &[u32] {
        &self.places[..self.len]
    }

    /// The edges, in the order of the data.
    #[must_use]
    pub fn edges(&self) -> impl ExactSizeIterator<Item = Edge> + '_ {
        let columns = self.times().iter().zip(self.places());
        columns.map(|(&time, &place)| Edge {
            fpga: (place >> 8) as u8,
            tdc: (place >> 5) as u8 & 0x3,
            channel: place as u8 & 0x1F,
            leading: place & TRAILING_BIT == 0,
            time,
        })
    }

    fn clear(&mut self) {
        self.len = 0;
    }

    /// Checks and decodes the edges of an event; none if it is refused.
    #[inline]
    fn fill(&mut self, data: &Tel62, timestamp: u32) -> Result<(), FormatError> {
        let to = &mut *self;
        let simd = to.simd;
        let filled = simd.decode(Fill {
            data,
            timestamp,
            to,
        });
        filled.inspect_err(|_| self.clear())
    }
}

impl<'a> Tel62<'a> {
    /// Checks the payload of an event at slot `timestamp` of its burst, and decodes all its edges
    /// into `decoded`, in one pass.
    ///
    /// # Errors
    /// As of [`Tel62::parse`]; `decoded` is then empty.
    #[inline]
    pub fn decode(
        payload: &'a [u8],
        timestamp: u32,
        decoded: &mut Decoded,
    ) -> Result<Self, FormatError> {
        decoded.clear();
        let data = Self::board(payload)?;
        decoded.fill(&data, timestamp)?;
        Ok(data)
    }
}

struct Fill<'a> {
    data: &'a Tel62<'a>,
    timestamp: u32,
    to: &'a mut Decoded,
}

impl Decoder for Fill<'_> {
    type Out = Result<(), FormatError>;

    #[inline(always)]
    fn scalar(self) -> Self::Out {
        let to = self.to;
        let mut frames = self.data.frames(self.timestamp);
        while let Some(frame) = frames.next()? {
            frame.check()?;
            let columns = to.times[to.len..].iter_mut().zip(&mut to.places[to.len..]);
            for ((time, place), word) in columns.zip(frame.words) {
                let word = word.get();
                *time = frame.base | u64::from(word & TIME);
                *place = (word >> 19 & 0x7F) | (word >> 28 & 1) << 7 | u32::from(frame.fpga) << 8;
            }
            to.len += frame.words.len();
        }
        Ok(())
    }

    #[inline(always)]
    fn vector<W: Words>(self, isa: W::Isa) -> Self::Out {
        let to = self.to;
        let mut frames = self.data.frames(self.timestamp);
        let (time, place) = (W::splat(isa, TIME), W::splat(isa, 0x7F));
        let (trailing, edge) = (W::splat(isa, TRAILING_BIT), W::splat(isa, LEADING >> 1));
        while let Some(frame) = frames.next()? {
            let fpga = W::splat(isa, u32::from(frame.fpga) << 8);
            for words in frame.words.chunks(LANES) {
                let word = W::load(isa, words);
                // Leading and trailing are 4 and 5.
                let edges = word.shr(29).eq(edge);
                if edges.count_ones() as usize != words.len() {
                    return Err(NO_EDGE);
                }
                // It fits: LANES places follow `len`, which is at most MAX_WORDS.
                let (Some(times), Some(places)) = (
                    to.times[to.len..].first_chunk_mut(),
                    to.places[to.len..].first_chunk_mut(),
                ) else {
                    return Err(NO_EDGE);
                };
                (word & time).store_with(frame.base, times);
                (word.shr(19) & place | word.shr(21) & trailing | fpga).store(places);
                to.len += words.len();
            }
        }
        Ok(())
    }
}
