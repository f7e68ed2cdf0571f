//! Vectorized decoder of a frame: one event per step, without a branch per code.
//!
//! A byte of the indices ends a code unless its bit 7 is set, so the end of an event's last code is
//! the position of a set bit in a mask. With it the next event is found while the gaps of the
//! current one are being added up: prefix sums over sixteen lanes, of which those where a code
//! begins are kept. Each event depends on the length of the previous one, so the masks are computed
//! before the first event is read.

use pollux_pipelines::simd::{BLOCK, Decoder, LANES, Simd, Words};

use super::frame::{Events, HitsFrame, HitsHeader, MAX_HITS, gap_code};
use crate::formats::FormatError;
use crate::rich::Hit;
use crate::rich::geometry::PMS;

/// Maximum number of index bytes of an event that is decoded in this way; longer events are decoded
/// code by code.
const CODES: usize = 2 * LANES;
/// Bytes read from the start of such an event: gap and count, indices, times.
const REACH: usize = 3 + 2 * CODES;
/// Blocks of a frame that are processed together. An event that begins in the last two blocks may
/// need bytes of the next ones, and is processed with those.
const BLOCKS: usize = 8;
const _: () = assert!(3 + CODES < BLOCK && BLOCK < REACH);
/// Maximum length after a header, whose length field has 16 bits.
const MAX_PAYLOAD: usize = u16::MAX as usize;
/// An event takes at least two bytes, and so does a hit.
const MAX_EVENTS: usize = MAX_PAYLOAD / 2;

/// Receives the events of a frame.
pub trait EventSink {
    /// Buffer for the hits of the next event; places after them may get undefined values. `None` if
    /// there is no space, which ends the decoding.
    fn place(&mut self) -> Option<&mut [Hit; MAX_HITS]>;
    /// Accepts an event: its timestamp (slots of 25 ns, strictly ascending), and the number of its
    /// hits, which are at the [place](Self::place) (photomultiplier indices strictly ascending,
    /// possibly none).
    fn event(&mut self, timestamp: u64, hits: usize);
    /// Discards the events of this frame: the frame is malformed.
    fn refuse(&mut self);
}

/// Owned buffer for the events of a frame.
#[derive(Clone, Debug)]
pub struct Decoded {
    events: Vec<Event>,
    /// Hits of all events. Vectors are stored whole, from any place on.
    hits: Box<[Hit]>,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    timestamp: u64,
    /// End of its hits, where those of the next event begin.
    end: usize,
}

impl Default for Decoded {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoded {
    /// A buffer for the events of any frame.
    #[must_use]
    pub fn new() -> Self {
        Self {
            events: Vec::with_capacity(MAX_EVENTS),
            hits: vec![Hit::default(); MAX_PAYLOAD / 2 + MAX_HITS].into(),
        }
    }

    /// The events in order: the timestamp of each, and its hits.
    #[must_use]
    pub fn events(&self) -> impl ExactSizeIterator<Item = (u64, &[Hit])> {
        let mut start = 0;
        self.events.iter().map(move |event| {
            let hits = &self.hits[start..event.end];
            start = event.end;
            (event.timestamp, hits)
        })
    }

    /// Removes all events, before the next frame.
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
    /// Checks the frame in `bytes`, a whole UDP payload, and passes all its events to `sink`, in
    /// one pass, by the instruction set of `simd`.
    ///
    /// # Errors
    /// As of [`HitsFrame::parse`]; `sink` was then called to discard the events.
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

/// Checks the events of a frame and passes them to a sink.
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
        // The error is found by the scalar parser.
        self.to.refuse();
        self.scalar()
    }
}

impl<S: EventSink> Fill<'_, S> {
    /// Passes the events of a valid frame to the sink.
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
        // The sum of all gaps has not exceeded 2^64.
        let in_time = self.frame.event_count == 0 || timestamp >= first;
        (rest.is_empty() && in_time).then_some(())
    }
}

/// The next bytes of a frame; bytes after its end are undefined.
struct Window {
    bytes: [[u8; BLOCK]; BLOCKS],
    /// Bit n: byte n has bit 7 clear, so it ends a code if it belongs to one.
    ends: [u64; BLOCKS],
}

impl Window {
    /// Removes the first bytes.
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

    /// The bytes from `at` on, and the mask of code ends in the first 64; `None` if fewer remain
    /// than an event may have.
    #[inline(always)]
    fn at(&self, at: usize) -> Option<(&[u8; REACH], u64)> {
        let bytes = self.bytes.as_flattened().get(at..)?.first_chunk()?;
        let &[low, high] = self.ends.get(at / BLOCK..)?.first_chunk()?;
        let shift = at % BLOCK;
        Some((bytes, low >> shift | high << 1 << (BLOCK - 1 - shift)))
    }
}

/// Reads an event whose indices take at most [`CODES`] bytes: its time gap, its length in bytes,
/// and the number of its hits. Bit n of `ends`: byte n ends a code if it belongs to one.
#[inline(always)]
fn short_event<W: Words>(
    isa: W::Isa,
    bytes: &[u8; REACH],
    ends: u64,
    hits: &mut [Hit; MAX_HITS],
) -> Option<(u64, usize, usize)> {
    let (gap, head, beyond) = gap_code([bytes[0], bytes[1]]);
    // Both are loaded, so that neither load waits for the selection.
    let count = usize::from(if head == 1 { bytes[1] } else { bytes[2] });
    if count > CODES {
        return None;
    }
    // Bit n: byte n of the indices follows the end of a code, or is the first one, which follows
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

/// Expands sixteen bytes of indices. The masks select those that are the first of two bytes, and
/// those that begin a code. All lanes of `sum` hold the index after the last one.
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
    // The bytes of a `Hit` are index and time, in the order of the lanes.
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
