//! An event that is being built.

use pollux_mempool::{Mbuf, Mempool, PoolCache, PoolConfig, PoolError, hint};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{
    BUILT, COMPLETE, DISPUTED, Event, EventHead, FRONT, Front, Head, MAX_EVENT_HITS, TRUNCATED,
};
use crate::l0::pool::own_pool;
use crate::l0::span::Span;
use crate::rich::Hit;

/// Hits that are copied at once: a line of the cache.
const PIECE: usize = 16;

/// All of an event's buffer.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Room {
    front: Front,
    /// Behind the last hit that there may be, a piece may spill.
    hits: [Hit; MAX_EVENT_HITS + PIECE],
}

/// A pool of buffers for so many events; NUMA node and lock are those of `memory`, and so is the
/// page size, but that no page of 1 GiB is taken for it.
///
/// # Errors
/// As [`Mempool::new`].
pub fn event_pool(events: usize, memory: PoolConfig) -> Result<Mempool, PoolError> {
    own_pool(events, size_of::<Room>(), memory)
}

/// An event to which hits are added, in a buffer of an [`event_pool`].
#[derive(Debug)]
pub struct Draft {
    /// All of its room is data.
    mbuf: Mbuf,
    hits: u16,
}

impl Draft {
    /// Without hits; `None` if there is no buffer left, or if the pool's are not made for events.
    #[must_use]
    #[inline]
    pub fn new(cache: &mut PoolCache) -> Option<Self> {
        let mut mbuf = cache.alloc()?;
        let room = mbuf.append(size_of::<Room>())?;
        // It will not be written at once.
        for line in [0, FRONT, FRONT + PIECE * size_of::<Hit>()] {
            hint::expect_write(room.as_ptr().wrapping_add(line));
        }
        Some(Self { mbuf, hits: 0 })
    }

    /// Hits that it has.
    #[must_use]
    #[inline]
    pub fn hits(&self) -> u16 {
        self.hits
    }

    #[inline]
    fn room(&mut self) -> Option<&mut Room> {
        Room::mut_from_bytes(self.mbuf.data_mut()).ok()
    }

    /// Adds hits behind all others: the first `count` of these; `false`, and no change, if they do
    /// not fit.
    #[must_use]
    #[inline]
    pub(crate) fn append<const N: usize>(&mut self, places: &[Hit; N], count: usize) -> bool {
        let start = usize::from(self.hits);
        if count > PIECE || start + count > MAX_EVENT_HITS {
            return self.insert(start, &places[..count.min(N)]);
        }
        let to = self
            .room()
            .and_then(|room| room.hits[start..].first_chunk_mut::<PIECE>());
        // A whole piece, whatever the count: a copy of so many would take a branch that is hard to
        // tell. What is too much is overwritten by the next one.
        let Some((to, from)) = to.zip(places.first_chunk::<PIECE>()) else {
            return false;
        };
        *to = *from;
        self.hits += count as u16;
        true
    }

    /// Adds hits behind the first `at` of those that it has; `false`, and no change, if they do not
    /// fit.
    #[must_use]
    pub fn insert(&mut self, at: usize, hits: &[Hit]) -> bool {
        let (have, more) = (usize::from(self.hits), hits.len());
        if more > MAX_EVENT_HITS - have {
            return false;
        }
        let at = at.min(have);
        let Some(room) = self.room() else {
            return false;
        };
        room.hits.copy_within(at..have, at + more);
        room.hits[at..at + more].copy_from_slice(hits);
        self.hits += more as u16;
        true
    }

    /// Makes `count` hits, from the one at `at` on, so much later, in units of 25/256 ns.
    pub(crate) fn delay(&mut self, at: usize, count: usize, by: u16) {
        let end = at + count;
        let hits = self.room().and_then(|room| room.hits.get_mut(at..end));
        for hit in hits.into_iter().flatten() {
            hit.fine = hit.fine.saturating_add(by);
        }
    }

    /// Puts `count` hits, from the one at `at` on, behind all others.
    pub(crate) fn put_last(&mut self, at: usize, count: usize) {
        let end = usize::from(self.hits);
        let hits = self.room().and_then(|room| room.hits.get_mut(at..end));
        if let Some(hits) = hits
            && count <= hits.len()
        {
            hits.rotate_left(count);
        }
    }

    /// The event; its number of hits is that of those which were added, and `span` says of which
    /// time they are.
    #[must_use]
    #[inline]
    pub fn finish(mut self, head: &EventHead, span: Span) -> Event {
        let hits = usize::from(self.hits);
        let flag = |flag, holds| if holds { flag } else { 0 };
        if let Some(room) = self.room() {
            room.front.head = Head {
                timestamp: head.timestamp,
                arrival: head.arrival.0,
                sources: head.sources,
                guard: span.guard,
                width: span.width,
                masked: head.masked,
                burst: head.burst,
                flags: flag(COMPLETE, head.complete)
                    | flag(TRUNCATED, head.truncated)
                    | flag(DISPUTED, head.disputed),
                step: BUILT,
                ..Head::default()
            };
        }
        self.mbuf.truncate(FRONT + hits * size_of::<Hit>());
        Event(self.mbuf)
    }
}
