//! Fragments of events in a packet buffer, stored one after another.
//!
//! ```text
//!   +------+----------------+------+--------+------+-- ... --+----------------------+
//!   | head | hits, 4 B each | head | hits   | head |         | free: one fragment   |
//!   +------+----------------+------+--------+------+-- ... --+----------------------+
//!   | 32 B | an even number |
//! ```

use pollux_mempool::time::Tsc;
use pollux_mempool::{Mbuf, Mempool, PoolCache, PoolConfig, PoolError};
use pollux_pipelines::stage::Moment;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::pool::own_pool;
use crate::formats::hits::{EventSink, MAX_HITS};
use crate::rich::Hit;

/// The data of one source for one event.
#[derive(Clone, Copy, Debug)]
pub struct Fragment<'a> {
    /// Time of the event, in slots of 25 ns since the start of the burst.
    pub timestamp: u64,
    /// Index of the source in the configured list.
    pub source: u16,
    /// This is the last fragment of its frame; the frame is counted as delivered or lost with it.
    pub ends_frame: bool,
    /// In the first fragment of a frame: number of frames of its source that are missing before
    /// this one by sequence number; saturates.
    pub lost: u16,
    /// In the first fragment of a frame: the frame was counted as missing before it arrived.
    pub reordered: bool,
    /// Arrival time of its frame, on the time scale of the deadlines.
    pub at: Moment,
    /// Arrival time of its frame, on the clock.
    pub arrival: Tsc,
    /// Its hits, sorted by photomultiplier; at most [`MAX_HITS`].
    pub hits: &'a [Hit],
}

/// A stored fragment, without its hits.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Head {
    timestamp: u64,
    at: u64,
    arrival: u64,
    source: u16,
    hits: u16,
    lost: u16,
    /// [`ENDS_FRAME`] and [`REORDERED`].
    flags: u16,
}

const ENDS_FRAME: u16 = 1;
const REORDERED: u16 = 2;

const HEAD: usize = size_of::<Head>();
const _: () = assert!(HEAD == 32);

/// Length of the largest fragment in bytes. At least this is free after the last fragment, so that
/// hits can be written and read in blocks of constant length.
const MOST: usize = stored(MAX_HITS);

/// Length of a buffer in bytes: a frame of 9000 bytes fits with all its fragments, unless nearly
/// all of them are empty.
const ROOM: usize = 1 << 16;

/// Length of a fragment with so many hits, in bytes.
const fn stored(hits: usize) -> usize {
    HEAD + size_of::<Hit>() * hits.next_multiple_of(2)
}

/// A pool of so many fragment buffers. NUMA node, lock and page size are those of `memory`, but
/// pages of 1 GiB are not used for it.
///
/// # Errors
/// As [`Mempool::new`].
pub fn fragment_pool(buffers: usize, memory: PoolConfig) -> Result<Mempool, PoolError> {
    own_pool(buffers, ROOM, memory)
}

/// Fragments of one or several frames, in order. A frame may continue in the next buffer.
#[derive(Debug)]
pub struct Fragments {
    /// All of its data room is data.
    mbuf: Mbuf,
    /// Used bytes, from the start.
    used: usize,
    /// Offset of the last fragment.
    last: usize,
}

impl Fragments {
    /// An empty buffer of a [`fragment_pool`]; `None` if none is left, or if the pool's buffers are
    /// not made for fragments.
    #[must_use]
    pub fn new(cache: &mut PoolCache) -> Option<Self> {
        let mut mbuf = cache.alloc()?;
        mbuf.append(ROOM)?;
        Some(Self {
            mbuf,
            used: 0,
            last: 0,
        })
    }

    /// Whether there are no fragments.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Used bytes.
    #[inline]
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Whether so many fragments with so many hits in total fit.
    #[inline]
    pub(crate) fn has_room(&self, fragments: usize, hits: usize) -> bool {
        // Each may end with padding.
        let most = (HEAD + size_of::<Hit>()) * fragments + size_of::<Hit>() * hits;
        self.used + most + MOST <= ROOM
    }

    /// Adds a fragment; returns `false`, without a change, if it does not fit.
    #[must_use]
    pub fn push(&mut self, fragment: &Fragment) -> bool {
        let hits = fragment.hits;
        if hits.len() > MAX_HITS || !self.has_room(1, hits.len()) {
            return false;
        }
        let ends_frame = if fragment.ends_frame { ENDS_FRAME } else { 0 };
        let reordered = if fragment.reordered { REORDERED } else { 0 };
        let head = Head {
            timestamp: fragment.timestamp,
            at: fragment.at.0,
            arrival: fragment.arrival.0,
            source: fragment.source,
            hits: hits.len() as u16,
            lost: fragment.lost,
            flags: ends_frame | reordered,
        };
        let place = self.mbuf.data_mut().get_mut(self.used..);
        let place = place.and_then(<[u8]>::split_first_chunk_mut::<HEAD>);
        let bytes = hits.as_bytes();
        let Some((front, rest)) = place else {
            return false;
        };
        let Some(places) = rest.get_mut(..bytes.len()) else {
            return false;
        };
        *front = zerocopy::transmute!(head);
        places.copy_from_slice(bytes);
        self.last = self.used;
        self.used += stored(hits.len());
        true
    }

    /// A writer for fragments with the source and the arrival of this one.
    #[inline]
    pub(crate) fn filler(&mut self, like: &Fragment) -> Filler<'_> {
        Filler {
            bytes: self.mbuf.data_mut(),
            begin: self.used,
            used: &mut self.used,
            last: &mut self.last,
            head: Head {
                timestamp: 0,
                at: like.at.0,
                arrival: like.arrival.0,
                source: like.source,
                hits: 0,
                lost: 0,
                flags: 0,
            },
        }
    }

    /// Marks the last fragment as the end of its frame, if there is one after the first `before`
    /// bytes.
    #[inline]
    pub(crate) fn end_frame(&mut self, before: usize) {
        let last = self.last..self.used.max(self.last);
        let last = (self.used > before).then_some(last);
        let last = last.and_then(|last| self.mbuf.data_mut().get_mut(last));
        if let Some((head, _)) = last.and_then(|bytes| Head::mut_from_prefix(bytes).ok()) {
            head.flags |= ENDS_FRAME;
        }
    }

    /// Records the result of the sequence check in the fragment at an offset, which is the first of
    /// its frame.
    #[inline]
    pub(crate) fn mark(&mut self, at: usize, lost: u16, reordered: bool) {
        if lost == 0 && !reordered {
            return;
        }
        let place = self.mbuf.data_mut().get_mut(at..self.used.max(at));
        if let Some((head, _)) = place.and_then(|bytes| Head::mut_from_prefix(bytes).ok()) {
            head.lost = lost;
            head.flags |= if reordered { REORDERED } else { 0 };
        }
    }

    /// Removes the fragments after the first `used` bytes.
    #[inline]
    pub(crate) fn cut(&mut self, used: usize) {
        self.used = self.used.min(used);
    }

    /// Removes hits from all fragments; returns the number of removed hits.
    pub fn retain(&mut self, mut keep: impl FnMut(&Hit) -> bool) -> u64 {
        let (mut at, mut to, mut gone) = (0, 0, 0);
        let bytes = self.mbuf.data_mut();
        while at < self.used {
            let fragment = bytes[at..].first_chunk::<HEAD>();
            let Some(mut head) = fragment.and_then(|head| Head::read_from_bytes(head).ok()) else {
                break;
            };
            let (start, count) = (at + HEAD, head.hits);
            at += stored(count.into());
            head.hits = 0;
            // Kept hits move to the front, never over hits that are not yet tested.
            for n in 0..usize::from(count) {
                let place = start + n * size_of::<Hit>();
                let Ok((hit, _)) = Hit::read_from_prefix(&bytes[place..]) else {
                    break;
                };
                if keep(&hit) {
                    let place = to + HEAD + usize::from(head.hits) * size_of::<Hit>();
                    bytes[place..place + size_of::<Hit>()].copy_from_slice(hit.as_bytes());
                    head.hits += 1;
                }
            }
            gone += u64::from(count - head.hits);
            bytes[to..to + HEAD].copy_from_slice(head.as_bytes());
            self.last = to;
            to += stored(head.hits.into());
        }
        self.used = to;
        gone
    }

    /// Iterator over the fragments.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Fragment<'_>> {
        self.padded().map(|(fragment, _)| fragment)
    }

    /// Iterator over the fragments, each with a slice that begins with its hits and has a length
    /// suitable for block copies; the other elements are undefined.
    #[inline(always)]
    pub(crate) fn padded(&self) -> impl Iterator<Item = (Fragment<'_>, &[Hit; MAX_HITS])> {
        let mut bytes = self.mbuf.data();
        let mut left = self.used;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let (head, rest) = Head::ref_from_prefix(bytes).ok()?;
            let (places, _) = <[Hit; MAX_HITS]>::ref_from_prefix(rest).ok()?;
            let hits = usize::from(head.hits);
            bytes = bytes.get(stored(hits)..)?;
            left = left.saturating_sub(stored(hits));
            let fragment = Fragment {
                timestamp: head.timestamp,
                source: head.source,
                ends_frame: head.flags & ENDS_FRAME != 0,
                lost: head.lost,
                reordered: head.flags & REORDERED != 0,
                at: Moment(head.at),
                arrival: Tsc(head.arrival),
                hits: places.get(..hits)?,
            };
            Some((fragment, places))
        })
    }
}

impl From<Fragments> for Mbuf {
    #[inline]
    fn from(fragments: Fragments) -> Self {
        fragments.mbuf
    }
}

/// Adds fragments of one frame.
pub(crate) struct Filler<'a> {
    bytes: &'a mut [u8],
    /// Used bytes before the frame.
    begin: usize,
    used: &'a mut usize,
    last: &'a mut usize,
    /// As for all of them.
    head: Head,
}

impl EventSink for Filler<'_> {
    #[inline(always)]
    fn place(&mut self) -> Option<&mut [Hit; MAX_HITS]> {
        let bytes = self.bytes.get_mut(*self.used + HEAD..)?;
        let (places, _) = <[Hit; MAX_HITS]>::mut_from_prefix(bytes).ok()?;
        Some(places)
    }

    #[inline(always)]
    fn event(&mut self, timestamp: u64, hits: usize) {
        let head = Head {
            timestamp,
            hits: hits as u16,
            ..self.head
        };
        let place = self.bytes.get_mut(*self.used..);
        if let Some(place) = place.and_then(<[u8]>::first_chunk_mut::<HEAD>) {
            *place = zerocopy::transmute!(head);
            *self.last = *self.used;
            *self.used += stored(hits);
        }
    }

    fn refuse(&mut self) {
        *self.used = self.begin;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    type Part = (u64, u16, bool, Vec<Hit>);

    fn parts(fragments: &Fragments) -> Vec<Part> {
        let part = |f: Fragment| (f.timestamp, f.source, f.ends_frame, f.hits.to_vec());
        fragments.iter().map(part).collect()
    }

    fn push(fragments: &mut Fragments, (timestamp, source, ends_frame, hits): &Part) -> bool {
        fragments.push(&Fragment {
            timestamp: *timestamp,
            source: *source,
            ends_frame: *ends_frame,
            lost: 0,
            reordered: false,
            at: Moment(*timestamp),
            arrival: Tsc(7),
            hits,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Pushed fragments are present, and only the removed hits are missing.
        #[test]
        fn fragments_stay_as_they_are(
            pushed in prop::collection::vec(
                (any::<u64>(), 0..16u16, any::<bool>(), prop::collection::vec(any::<u16>(), 0..30)), 0..100
            ),
            odd in any::<bool>(),
        ) {
            let hits = |pms: &Vec<u16>| pms.iter().map(|&pm| Hit { pm, fine: !pm }).collect();
            let mut expected: Vec<Part> =
                pushed.iter().map(|(t, s, e, pms)| (*t, *s, *e, hits(pms))).collect();
            let pool = fragment_pool(2, PoolConfig::default()).unwrap();
            let mut fragments = Fragments::new(&mut pool.cache(2).unwrap()).unwrap();
            for part in &expected {
                prop_assert!(push(&mut fragments, part));
            }
            prop_assert_eq!(fragments.is_empty(), expected.is_empty());
            prop_assert_eq!(&parts(&fragments), &expected);
            prop_assert!(fragments.iter().all(|f| f.at.0 == f.timestamp && f.arrival == Tsc(7)));
            let mut gone = 0;
            for (.., hits) in &mut expected {
                let before = hits.len();
                hits.retain(|hit| (hit.pm % 2 == 1) == odd);
                gone += (before - hits.len()) as u64;
            }
            prop_assert_eq!(fragments.retain(|hit| (hit.pm % 2 == 1) == odd), gone);
            prop_assert_eq!(parts(&fragments), expected);
            // The last fragment is still known afterwards.
            fragments.end_frame(0);
            prop_assert!(fragments.iter().last().is_none_or(|last| last.ends_frame));
        }
    }

    #[test]
    fn a_full_buffer_takes_no_more() {
        let pool = fragment_pool(2, PoolConfig::default()).unwrap();
        let mut fragments = Fragments::new(&mut pool.cache(2).unwrap()).unwrap();
        let most = (1, 2, false, vec![Hit { pm: 3, fine: 4 }; MAX_HITS]);
        let mut count = 0;
        while push(&mut fragments, &most) {
            count += 1;
        }
        assert_eq!((count, parts(&fragments).len()), (61, 61));
        assert!(parts(&fragments).iter().all(|part| *part == most));
        let too_many = (1, 2, false, vec![Hit::default(); MAX_HITS + 1]);
        let mut empty = Fragments::new(&mut pool.cache(2).unwrap());
        assert!(!push(empty.as_mut().unwrap(), &too_many) && empty.unwrap().is_empty());

        let small = Mempool::new(PoolConfig {
            buffers: 2,
            data_room: 64,
            ..PoolConfig::default()
        });
        assert!(Fragments::new(&mut small.unwrap().cache(2).unwrap()).is_none());
    }
}
