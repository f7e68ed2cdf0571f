//! The events of a frame, an event at a time without a look at its single codes.
//!
//! A byte of the indices ends a code unless its bit 7 is set, so the place of the last code's end
//! is that of a set bit in a mask. With it the next event is found, while this one's gaps are
//! still being added up: sums over sixteen lanes, of which those where a code begins are kept.

use super::{Events, FormatError, HitsFrame, MAX_HITS, PMS, gap_code};
use crate::rich::Hit;
use crate::simd::{Decoder, LANES, Simd, Words};

/// Bytes of indices of an event that is read in this way; one with more is read code by code.
const CODES: usize = 2 * LANES;
/// Bytes from the start of such an event that are looked at: gap and count, indices, times.
const REACH: usize = 3 + 2 * CODES;
/// Most bytes behind a header, whose length has 16 bits.
const MAX_PAYLOAD: usize = u16::MAX as usize;
/// An event takes two bytes at least, and so does a hit.
const MAX_EVENTS: usize = MAX_PAYLOAD / 2;

/// The events of a frame.
#[derive(Clone, Debug)]
pub struct Decoded {
    simd: Simd,
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

impl Decoded {
    /// Room for those of any frame, to be decoded by `simd`.
    #[must_use]
    pub fn new(simd: Simd) -> Self {
        Self {
            simd,
            events: Vec::with_capacity(MAX_EVENTS),
            hits: vec![Hit::default(); MAX_PAYLOAD / 2 + MAX_HITS].into(),
        }
    }

    /// The events, in their order: the timestamp of each (slots of 25 ns, ascending strictly), and
    /// its hits (photomultiplier indices ascending strictly, possibly none).
    #[must_use]
    pub fn events(&self) -> impl ExactSizeIterator<Item = (u64, &[Hit])> {
        let mut start = 0;
        self.events.iter().map(move |event| {
            let hits = &self.hits[start..event.end];
            start = event.end;
            (event.timestamp, hits)
        })
    }

    pub(super) fn clear(&mut self) {
        self.events.clear();
    }

    /// Checks and takes the events of a frame; none if it is refused.
    #[inline]
    pub(super) fn fill(&mut self, frame: &HitsFrame) -> Result<(), FormatError> {
        let to = &mut *self;
        let filled = to.simd.decode(Fill { frame, to });
        filled.inspect_err(|_| self.clear())
    }
}

struct Fill<'a> {
    frame: &'a HitsFrame<'a>,
    to: &'a mut Decoded,
}

impl Decoder for Fill<'_> {
    type Out = Result<(), FormatError>;

    #[inline(always)]
    fn scalar(self) -> Self::Out {
        self.frame.check_events()?;
        let (mut events, mut end) = (self.frame.events(), 0);
        while let Some(hits) = self.to.hits[end..].first_chunk_mut()
            && let Some((timestamp, hits)) = events.next_into(hits)
        {
            end += hits.len();
            self.to.events.push(Event { timestamp, end });
        }
        Ok(())
    }

    #[inline(always)]
    fn vector<W: Words>(mut self, isa: W::Isa) -> Self::Out {
        if self.sound::<W>(isa).is_some() {
            return Ok(());
        }
        // What is wrong is found code by code.
        self.to.clear();
        self.scalar()
    }
}

impl Fill<'_> {
    /// Takes the events of a frame that is sound.
    #[inline(always)]
    fn sound<W: Words>(&mut self, isa: W::Isa) -> Option<()> {
        let payload = self.frame.payload;
        let used = self.events::<W>(isa, payload, payload.len())?;
        // The last events, which have too little behind them.
        let rest = &payload[used..];
        let mut padded = [0; 2 * REACH];
        padded.get_mut(..rest.len())?.copy_from_slice(rest);
        let used = self.events::<W>(isa, &padded, rest.len())?;

        let events = &self.to.events;
        let whole = used == rest.len() && events.len() == usize::from(self.frame.event_count);
        // The first event has no gap, and the sum of all has not passed 2^64.
        let (first, start) = (events.first(), self.frame.first_timestamp);
        let in_time = first.is_none_or(|event| event.timestamp == start)
            && events.last().is_none_or(|event| event.timestamp >= start);
        (whole && in_time).then_some(())
    }

    /// Takes events from the first `len` bytes until they end, or there are less than [`REACH`]
    /// bytes behind; returns how many bytes they have.
    #[inline(always)]
    fn events<W: Words>(&mut self, isa: W::Isa, bytes: &[u8], len: usize) -> Option<usize> {
        let to = &mut *self.to;
        let last = to.events.last().copied();
        let mut end = last.map_or(0, |event| event.end);
        let before = self.frame.first_timestamp.wrapping_sub(1);
        let mut timestamp = last.map_or(before, |event| event.timestamp);
        let mut left = usize::from(self.frame.event_count) - to.events.len();
        let mut at = 0;
        while left > 0
            && let Some(event) = bytes[at..].first_chunk()
        {
            let hits: &mut [Hit; MAX_HITS] = to.hits[end..].first_chunk_mut()?;
            let (gap, used, count) = match short_event::<W>(isa, event, hits) {
                Some(event) => event,
                None => long_event(bytes.get(at..len)?, hits)?,
            };
            timestamp = timestamp.wrapping_add(1 + gap);
            end += count;
            at += used;
            left -= 1;
            to.events.push(Event { timestamp, end });
        }
        (at <= len).then_some(at)
    }
}

/// Reads an event whose indices take at most [`CODES`] bytes: its gap of time, its length in
/// bytes, and how many hits it has.
#[inline(always)]
fn short_event<W: Words>(
    isa: W::Isa,
    bytes: &[u8; REACH],
    hits: &mut [Hit; MAX_HITS],
) -> Option<(u64, usize, usize)> {
    let (gap, head, beyond) = gap_code([bytes[0], bytes[1]]);
    let count = usize::from(bytes[head]);
    let codes: &[u8; CODES + 1] = bytes[head + 1..].first_chunk()?;
    let [low, high] = [codes.first_chunk()?, codes[LANES..].first_chunk()?];
    // The bytes that have another behind them.
    let long = u32::from(W::high_bits(isa, low)) | u32::from(W::high_bits(isa, high)) << LANES;
    // Bit n: byte n is behind the end of a code, or the first of all.
    let ends = u64::from(!long) << 1 | 1;
    let len = W::nth_set(isa, ends, count.min(63) as u32) as usize;
    if len > CODES {
        return None;
    }
    let inside = ((1u64 << len) - 1) as u32;
    let three_bytes = (long & (long << 1) & inside) | u32::from(beyond >> 7);
    let begins = !(long << 1) & inside;

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
