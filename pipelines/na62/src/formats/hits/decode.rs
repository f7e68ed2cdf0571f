//! The events of a frame, an event at a time without a look at its single codes.
//!
//! A byte of the indices ends a code unless its bit 7 is set, so the place of the last code's end
//! is that of a set bit in a mask. With it the next event is found, while this one's gaps are
//! still being added up: sums over sixteen lanes, of which those where a code begins are kept. Each
//! event waits for the length of the one before, so the masks are there before the first is looked at.

use pollux_pipelines::simd::{BLOCK, Decoder, LANES, Simd, Words};

use super::frame::{Events, HitsFrame, HitsHeader, MAX_HITS, gap_code};
use crate::formats::FormatError;
use crate::rich::Hit;
use crate::rich::geometry::PMS;

/// Bytes of indices of an event that is read in this way; one with more is read code by code.
const CODES: usize = 2 * LANES;
/// Bytes from the start of such an event that are looked at: gap and count, indices, times.
const REACH: usize = 3 + 2 * CODES;
/// Blocks of a frame that are looked at together. An event that begins in the last two, of which it may
/// need more, is looked at with what comes next.
const BLOCKS: usize = 8;
const _: () = assert!(3 + CODES < BLOCK && BLOCK < REACH);
/// Most bytes behind a header, whose length has 16 bits.
const MAX_PAYLOAD: usize = u16::MAX as usize;
/// An event takes two bytes at least, and so does a hit.
const MAX_EVENTS: usize = MAX_PAYLOAD / 2;

/// Takes the events of a frame.
pub trait EventSink {
    /// Where the hits of the next event are to be written, and some more behind them that are of no
    /// meaning; `None` if there is no room for more, which ends the decoding.
    fn place(&mut self) -> Option<&mut [Hit; MAX_HITS]>;
    /// There is an event: its timestamp (slots of 25 ns, ascending strictly), and how many hits it
    /// has at the [place](Self::place) (photomultiplier indices ascending strictly, possibly none).
    fn event(&mut self, timestamp: u64, hits: usize);
    /// Forgets the events of this frame: it is not sound.
    fn refuse(&mut self);
}

/// The events of a frame, in memory of their own.
#[derive(Clone, Debug)]
pub struct Decoded {
    events: Vec<Event>,
    /// Those of all events; a vector is stored whole, wherever its first lane belongs.
    hits: Box<[Hit]>,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    timestamp: u64,
    /// Where its hits end, and those of the next event begin.
    end: usize,
}

impl Default for Decoded {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoded {
    /// Room for those of any frame.
    #[must_use]
    pub fn new() -> Self {
        Self {
            events: Vec::with_capacity(MAX_EVENTS),
            hits: vec![Hit::default(); MAX_PAYLOAD / 2 + MAX_HITS].into(),
        }
    }

    /// The events, in their order: the timestamp of each, and its hits.
    #[must_use]
    pub fn events(&self) -> impl ExactSizeIterator<Item = (u64, &[Hit])> {
        let mut start = 0;
        self.events.iter().map(move |event| {
            let hits = &self.hits[start..event.end];
            start = event.end;
            (event.timestamp, hits)
        })
    }

    /// Forgets them, for those of the next frame.
    pub fn clear(&mut self) {
        self.events.clear();
    }

    #[inline(always)]
    fn end(&self) -> usize {
        self.events.last().map_or(0, |event| event.end)
    }
}

impl EventSink for Decoded {
    #[inline(always)]
    fn place(&mut self) -> Option<&mut [Hit; MAX_HITS]> {
        let end = self.end();
        self.hits[end..].first_chunk_mut()
    }

    #[inline(always)]
    fn event(&mut self, timestamp: u64, hits: usize) {
        let end = self.end() + hits;
        self.events.push(Event { timestamp, end });
    }

    fn refuse(&mut self) {
        self.clear();
    }
}

impl<'a> HitsFrame<'a> {
    /// Checks the frame in `bytes`, a whole UDP payload, and shows all its events to `sink`, in one
    /// pass by `simd`.
    ///
    /// # Errors
    /// As of [`HitsFrame::parse`]; `sink` was told to refuse what it was shown then.
    #[inline]
    pub fn decode(
        bytes: &'a [u8],
        simd: Simd,
        sink: &mut impl EventSink,
    ) -> Result<Self, FormatError> {
        HitsHeader::parse(bytes)?.decode(simd, sink)
    }
}

impl<'a> HitsHeader<'a> {
    /// As [`HitsFrame::decode`].
    ///
    /// # Errors
    /// As of [`HitsFrame::parse`].
    #[inline]
    pub fn decode(
        self,
        simd: Simd,
        sink: &mut impl EventSink,
    ) -> Result<HitsFrame<'a>, FormatError> {
        let frame = &self.0;
        simd.decode(Fill { frame, to: sink })?;
        Ok(self.0)
    }
}

/// Checks the events of a frame, and shows them to a sink.
pub(super) struct Fill<'a, S> {
    pub(super) frame: &'a HitsFrame<'a>,
    pub(super) to: &'a mut S,
}

impl<S: EventSink> Decoder for Fill<'_, S> {
    type Out = Result<(), FormatError>;

    #[inline(always)]
    fn scalar(self) -> Self::Out {
        self.frame.check_events()?;
        let mut events = self.frame.events();
        while let Some(hits) = self.to.place()
            && let Some((timestamp, hits)) = events.next_into(hits)
        {
            let count = hits.len();
            self.to.event(timestamp, count);
        }
        Ok(())
    }

    #[inline(always)]
    fn vector<W: Words>(mut self, isa: W::Isa) -> Self::Out {
        if self.sound::<W>(isa).is_some() {
            return Ok(());
        }
        // What is wrong is found code by code.
        self.to.refuse();
        self.scalar()
    }
}

impl<S: EventSink> Fill<'_, S> {
    /// Takes the events of a frame that is sound.
    #[inline(always)]
    fn sound<W: Words>(&mut self, isa: W::Isa) -> Option<()> {
        let (mut rest, first) = (self.frame.payload, self.frame.first_timestamp);
        let mut left = self.frame.event_count;
        let mut timestamp = first.wrapping_sub(1);
        let mut window = Window {
            bytes: [[0; BLOCK]; BLOCKS],
            ends: [0; BLOCKS],
        };
        while left > 0 {
            window.fill::<W>(isa, rest);
            let mut at = 0;
            while left > 0
                && at < rest.len()
                && let Some((event, ends)) = window.at(at)
            {
                let hits = self.to.place()?;
                let (gap, used, count) = match short_event::<W>(isa, event, ends, hits) {
                    Some(event) => event,
                    None => long_event(rest.get(at..)?, hits)?,
                };
                if gap > 0 && left == self.frame.event_count {
                    return None;
                }
                timestamp = timestamp.wrapping_add(1 + gap);
                at += used;
                left -= 1;
                self.to.event(timestamp, count);
            }
            rest = rest.get(at..).filter(|_| at > 0)?;
        }
        // The sum of all gaps has not passed 2^64.
        let in_time = self.frame.event_count == 0 || timestamp >= first;
        (rest.is_empty() && in_time).then_some(())
    }
}

/// The next bytes of a frame; those behind its end are of no meaning.
struct Window {
    bytes: [[u8; BLOCK]; BLOCKS],
    /// Bit n of all: byte n has bit 7 clear, and so ends a code if it is of one.
    ends: [u64; BLOCKS],
}

impl Window {
    /// Takes the first bytes of these.
    #[inline(always)]
    fn fill<W: Words>(&mut self, isa: W::Isa, bytes: &[u8]) {
        let (blocks, rest) = bytes.as_chunks();
        let mut to = self.bytes.iter_mut().zip(&mut self.ends);
        for (block, (to, ends)) in blocks.iter().zip(to.by_ref()) {
            *to = *block;
            *ends = !W::high_bits(isa, block);
        }
        if let Some((to, ends)) = to.next() {
            *to = W::block(isa, rest);
            *ends = !W::high_bits(isa, to);
        }
    }

    /// The bytes from one on, and which of the first 64 end a code; `None` if there are less than an
    /// event may have.
    #[inline(always)]
    fn at(&self, at: usize) -> Option<(&[u8; REACH], u64)> {
        let bytes = self.bytes.as_flattened().get(at..)?.first_chunk()?;
        let &[low, high] = self.ends.get(at / BLOCK..)?.first_chunk()?;
        let shift = at % BLOCK;
        Some((bytes, low >> shift | high << 1 << (BLOCK - 1 - shift)))
    }
}

/// Reads an event whose indices take at most [`CODES`] bytes: its gap of time, its length in
/// bytes, and how many hits it has. Bit n of `ends`: byte n ends a code if it is of one.
#[inline(always)]
fn short_event<W: Words>(
    isa: W::Isa,
    bytes: &[u8; REACH],
    ends: u64,
    hits: &mut [Hit; MAX_HITS],
) -> Option<(u64, usize, usize)> {
    let (gap, head, beyond) = gap_code([bytes[0], bytes[1]]);
    // Both are loaded, so that neither waits to be chosen.
    let count = usize::from(if head == 1 { bytes[1] } else { bytes[2] });
    if count > CODES {
        return None;
    }
    // Bit n: byte n of the indices is behind the end of a code, or the first of all, which is behind
    // the count.
    let begins = ends >> head;
    let len = W::nth_set(isa, begins, count as u32) as usize;
    if len > CODES {
        return None;
    }
    let inside = ((1u64 << len) - 1) as u32;
    let (begins, long) = (begins as u32 & inside, !(begins >> 1) as u32);
    let three_bytes = (long & !begins & inside) | u32::from(beyond >> 7);

    let codes: &[u8; CODES + 1] = bytes[head + 1..].first_chunk()?;
    let times: &[u8; CODES] = bytes[head + 1 + len..].first_chunk()?;
    let mut sum = W::splat(isa, 0);
    half(isa, codes, times, hits, [long, begins], &mut sum)?;
    if len > LANES {
        let done = (begins as u16).count_ones() as usize;
        let (codes, times, hits) = (&codes[LANES..], &times[done..], &mut hits[done..]);
        let masks = [long >> LANES, begins >> LANES];
        half(isa, codes, times, hits, masks, &mut sum)?;
    }
    let sound = three_bytes == 0 && sum.first() <= PMS as u32;
    sound.then_some((gap.into(), head + 1 + len + count, count))
}

/// Expands sixteen bytes of indices, of which those in the masks are the first of two, and begin a
/// code. In all lanes of `sum` is the index behind the last one.
#[inline(always)]
fn half<W: Words>(
    isa: W::Isa,
    codes: &[u8],
    times: &[u8],
    hits: &mut [Hit],
    [long, begins]: [u32; 2],
    sum: &mut W,
) -> Option<()> {
    let byte = W::widen(isa, codes.first_chunk()?);
    let behind = W::widen(isa, codes[1..].first_chunk()?).only(long as u16);
    let gap = (byte & W::splat(isa, 0x7F)) | behind.shl(7);
    let step = (gap + W::splat(isa, 1)).only(begins as u16);
    let sums = step.prefix_sum() + *sum;
    *sum = sums.last();
    let mut lanes = [0; LANES];
    (sums + W::splat(isa, u32::MAX)).compress(begins as u16, &mut lanes);
    (W::of(isa, &lanes) | W::widen(isa, times.first_chunk()?).shl(16)).store(&mut lanes);
    // In the order of its bytes a `Hit` is index and time, as are the lanes.
    *hits.first_chunk_mut::<LANES>()? = zerocopy::transmute!(lanes);
    Some(())
}

/// The same for any event, at the start of `bytes`.
#[inline(always)]
fn long_event(bytes: &[u8], hits: &mut [Hit; MAX_HITS]) -> Option<(u64, usize, usize)> {
    let mut events = Events {
        rest: bytes,
        left: 1,
        next_timestamp: 0,
    };
    let (gap, hits) = events.next_into(hits)?;
    Some((gap, bytes.len() - events.rest.len(), hits.len()))
}
