//! The events of a frame, an event at a time without a look at its single codes.
//!
//! A byte of the indices ends a code unless its bit 7 is set, so the place of the last code's end
//! is that of a set bit in a mask. With it the next event is found, while this one's gaps are
//! still being added up: sums over sixteen lanes, of which those where a code begins are kept.

use super::{Events, FormatError, HitsFrame, MAX_HITS, PMS, gap_code};
use crate::rich::Hit;
use crate::simd::{BLOCK, Decoder, LANES, Words};

/// Bytes of indices of an event that is read in this way; one with more is read code by code.
const CODES: usize = 2 * LANES;
/// Bytes from the start of such an event that are looked at: gap and count, indices, times.
const REACH: usize = 3 + 2 * CODES;
const _: () = assert!(3 + CODES <= BLOCK && BLOCK <= REACH);
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
        let (payload, first) = (self.frame.payload, self.frame.first_timestamp);
        let mut left = self.frame.event_count;
        let mut timestamp = first.wrapping_sub(1);
        let used = self.events::<W>(isa, payload, payload.len(), &mut left, &mut timestamp)?;
        // The last events, which have too little behind them.
        let rest = &payload[used..];
        let mut padded = [[0; BLOCK]; (2 * REACH).div_ceil(BLOCK)];
        for (block, bytes) in padded.iter_mut().zip(rest.chunks(BLOCK)) {
            *block = W::block(isa, bytes);
        }
        let padded = padded.as_flattened();
        let used = self.events::<W>(isa, padded, rest.len(), &mut left, &mut timestamp)?;

        // The sum of all gaps has not passed 2^64.
        let in_time = self.frame.event_count == 0 || timestamp >= first;
        (used == rest.len() && left == 0 && in_time).then_some(())
    }

    /// Takes events from the first `len` bytes until none are left, or there are less than [`REACH`]
    /// bytes behind; returns how many bytes they have. `timestamp` is that of the event before.
    #[inline(always)]
    fn events<W: Words>(
        &mut self,
        isa: W::Isa,
        bytes: &[u8],
        len: usize,
        left: &mut u16,
        timestamp: &mut u64,
    ) -> Option<usize> {
        let mut at = 0;
        while *left > 0
            && let Some(event) = bytes[at..].first_chunk()
        {
            let hits = self.to.place()?;
            let (gap, used, count) = match short_event::<W>(isa, event, hits) {
                Some(event) => event,
                None => long_event(bytes.get(at..len)?, hits)?,
            };
            if gap > 0 && *left == self.frame.event_count {
                return None;
            }
            *timestamp = timestamp.wrapping_add(1 + gap);
            at += used;
            *left -= 1;
            self.to.event(*timestamp, count);
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
    // The bytes that have another behind them. Of all bytes they are found while it is not yet known
    // where the indices begin: the next event waits for nothing but this.
    let long = (W::high_bits(isa, bytes.first_chunk()?) >> (head + 1)) as u32;
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
