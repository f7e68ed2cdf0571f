//! `Draft`: an event under construction.

use pollux_mempool::{Mbuf, Mempool, PoolCache, PoolConfig, PoolError, prefetch};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{
    BUILT, COMPLETE, DISPUTED, Event, EventHead, FRONT, Front, Head, MAX_EVENT_HITS, TRUNCATED,
};
use crate::l0::pool::own_pool;
use crate::l0::span::Span;
use crate::rich::Hit;

/// Hits that are copied at once: one cache line.
const BLOCK: usize = 16;

/// Size of an event's buffer.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct EventBuffer {
    front: Front,
    /// The last block copy may extend beyond the last hit.
    hits: [Hit; MAX_EVENT_HITS + BLOCK],
}

/// A pool of buffers for so many events. NUMA node, lock and page size are those of `memory`, but
/// pages of 1 GiB are not used for it.
///
/// # Errors
/// As [`Mempool::new`].
pub fn event_pool(events: usize, memory: PoolConfig) -> Result<Mempool, PoolError> {
    own_pool(events, size_of::<EventBuffer>(), memory)
}

/// An event under construction, to which hits are added, in a buffer of an [`event_pool`].
#[derive(Debug)]
pub struct Draft {
    /// All of its data room is data.
    mbuf: Mbuf,
    hits: u16,
}

impl Draft {
    /// An event without hits; `None` if no buffer is left, or if the pool's buffers are not made
    /// for events.
    #[must_use]
    #[inline]
    pub fn new(cache: &mut PoolCache) -> Option<Self> {
        let mut mbuf = cache.alloc()?;
        let buffer = mbuf.append(size_of::<EventBuffer>())?;
        // Prefetched, since the hits are written later.
        for line in [0, FRONT, FRONT + BLOCK * size_of::<Hit>()] {
            prefetch::prefetch_write(buffer.as_ptr().wrapping_add(line));
        }
        Some(Self { mbuf, hits: 0 })
    }

    /// Number of hits.
    #[must_use]
    #[inline]
    pub fn hits(&self) -> u16 {
        self.hits
    }

    #[inline]
    fn buffer(&mut self) -> Option<&mut EventBuffer> {
        EventBuffer::mut_from_bytes(self.mbuf.data_mut()).ok()
    }

    /// Appends the first `count` of these hits; returns `false`, without a change, if they do not
    /// fit.
    #[must_use]
    #[inline]
    pub(crate) fn append<const N: usize>(&mut self, places: &[Hit; N], count: usize) -> bool {
        let start = usize::from(self.hits);
        if count > BLOCK || start + count > MAX_EVENT_HITS {
            return self.insert(start, &places[..count.min(N)]);
        }
        let to = self
            .buffer()
            .and_then(|buffer| buffer.hits[start..].first_chunk_mut::<BLOCK>());
        // Copies a whole block, whatever the count: a copy of variable length would need an
        // unpredictable branch. The next block overwrites the excess.
        let Some((to, from)) = to.zip(places.first_chunk::<BLOCK>()) else {
            return false;
        };
        *to = *from;
        self.hits += count as u16;
        true
    }

    /// Inserts hits before hit number `at`; returns `false`, without a change, if they do not fit.
    #[must_use]
    pub fn insert(&mut self, at: usize, hits: &[Hit]) -> bool {
        let (have, more) = (usize::from(self.hits), hits.len());
        if more > MAX_EVENT_HITS - have {
            return false;
        }
        let at = at.min(have);
        let Some(buffer) = self.buffer() else {
            return false;
        };
        buffer.hits.copy_within(at..have, at + more);
        buffer.hits[at..at + more].copy_from_slice(hits);
        self.hits += more as u16;
        true
    }

    /// Adds a delay, in units of 25/256 ns, to `count` hits from number `at` on.
    pub(crate) fn delay(&mut self, at: usize, count: usize, by: u16) {
        let end = at + count;
        let hits = self
            .buffer()
            .and_then(|buffer| buffer.hits.get_mut(at..end));
        for hit in hits.into_iter().flatten() {
            hit.fine = hit.fine.saturating_add(by);
        }
    }

    /// Moves `count` hits, from number `at` on, to the end.
    pub(crate) fn put_last(&mut self, at: usize, count: usize) {
        let end = usize::from(self.hits);
        let hits = self
            .buffer()
            .and_then(|buffer| buffer.hits.get_mut(at..end));
        if let Some(hits) = hits
            && count <= hits.len()
        {
            hits.rotate_left(count);
        }
    }

    /// Completes the event: sets its number of hits, and the time range of its hits, `span`.
    #[must_use]
    #[inline]
    pub fn finish(mut self, head: &EventHead, span: Span) -> Event {
        let hits = usize::from(self.hits);
        let flag = |flag, holds| if holds { flag } else { 0 };
        if let Some(buffer) = self.buffer() {
            buffer.front.head = Head {
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
