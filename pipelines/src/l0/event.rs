//! An event in a packet buffer.
//!
//! ```text
//!   +------+---------------------------+------------------------+----------+
//!   | head | rings: room for MAX_RINGS | hits, as many as came  | tailroom |
//!   +------+---------------------------+------------------------+----------+
//!   |<------------ 256 B ------------->|<-- 4 B each, at most MAX_EVENT_HITS -->|
//! ```

use std::fmt;
use std::ops::Deref;

use pollux_mempool::region::PageSize;
use pollux_mempool::time::Tsc;
use pollux_mempool::{Mbuf, Mempool, PoolCache, PoolConfig, PoolError};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Verdict;
use crate::merge::Span;
use crate::rich::Hit;
use crate::rich::find::{MAX_RINGS, Ring};

/// Most hits of one event, over all sources.
pub const MAX_EVENT_HITS: usize = 512;

/// What is known of an event besides its hits and rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventHead {
    /// Time of the event, in slots of 25 ns.
    pub timestamp: u64,
    /// Bit s: source s contributed.
    pub sources: u16,
    /// All sources contributed.
    pub complete: bool,
    /// Number of hits.
    pub hits: u16,
    /// When its first fragment came, on the clock.
    pub arrival: Tsc,
}

/// What stands in front of the hits. The first ring shares the head's cache line.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Front {
    head: Head,
    rings: [Ring; MAX_RINGS],
}

/// The head as it is stored.
#[derive(Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Head {
    timestamp: u64,
    arrival: u64,
    sources: u16,
    rule_set: u16,
    /// As in [`Span`].
    guard: u16,
    width: u16,
    complete: u8,
    rules: u8,
    monitored: u8,
    /// How far the event has come.
    step: u8,
    ring_count: u8,
    reserved: [u8; 3],
}

const FRONT: usize = size_of::<Front>();
const _: () = assert!(FRONT == 256 && size_of::<Head>() == 32);

/// Values of [`Head::step`].
const BUILT: u8 = 1;
const RECONSTRUCTED: u8 = 2;
const DECIDED: u8 = 3;

/// What would be seen of bytes that are no event.
static NOTHING: Front = zerocopy::transmute!([0_u8; FRONT]);

/// A pool of buffers for so many events; NUMA node and lock are those of `memory`, and so is the
/// page size, but that no page of 1 GiB is taken for it.
///
/// # Errors
/// As [`Mempool::new`].
pub fn event_pool(events: usize, memory: PoolConfig) -> Result<Mempool, PoolError> {
    Mempool::new(PoolConfig {
        buffers: events,
        data_room: FRONT + MAX_EVENT_HITS * size_of::<Hit>(),
        headroom: 0,
        pages: match memory.pages {
            PageSize::Gib1 => PageSize::Mib2,
            pages => pages,
        },
        ..memory
    })
}

/// The bytes of an event, to be read: of an owned one, or of a [`Frozen`](pollux_mempool::Frozen)
/// that several have.
#[derive(Clone, Copy)]
pub struct EventView<'a> {
    front: &'a Front,
    hits: &'a [Hit],
}

impl<'a> EventView<'a> {
    /// Looks at bytes as an event; `None` if they are too few, or begin or end elsewhere than an
    /// event in a buffer does.
    #[must_use]
    #[inline]
    pub fn of(bytes: &'a [u8]) -> Option<Self> {
        let (front, rest) = Front::ref_from_prefix(bytes).ok()?;
        let hits = <[Hit]>::ref_from_bytes(rest).ok()?;
        Some(Self { front, hits })
    }

    /// What is known of the event.
    #[must_use]
    #[inline]
    pub fn head(self) -> EventHead {
        EventHead {
            timestamp: self.front.head.timestamp,
            sources: self.front.head.sources,
            complete: self.front.head.complete != 0,
            hits: self.hits.len() as u16,
            arrival: Tsc(self.front.head.arrival),
        }
    }

    /// Hits of all sources: in the order of the sources, each sorted by photomultiplier, or by time
    /// where hits are merged.
    #[must_use]
    #[inline]
    pub fn hits(self) -> &'a [Hit] {
        self.hits
    }

    /// Of which time they are.
    #[must_use]
    #[inline]
    pub fn span(self) -> Span {
        Span {
            guard: self.front.head.guard,
            width: self.front.head.width,
        }
    }

    /// Its rings; none before they have been looked for.
    #[must_use]
    #[inline]
    pub fn rings(self) -> &'a [Ring] {
        &self.front.rings[..usize::from(self.front.head.ring_count).min(MAX_RINGS)]
    }

    /// The trigger's word; no before it has been said.
    #[must_use]
    #[inline]
    pub fn verdict(self) -> Verdict {
        let head = &self.front.head;
        Verdict {
            rules: head.rules,
            rule_set: head.rule_set,
            monitored: head.monitored != 0,
        }
    }
}

/// All fragments of one event that came in time.
pub struct Event(Mbuf);

impl Event {
    /// An event without hits, in a buffer of an [`event_pool`]; `None` if there is none left, or
    /// if the pool's buffers are not made for it.
    #[must_use]
    #[inline]
    pub fn new(cache: &mut PoolCache) -> Option<Self> {
        let mut mbuf = cache.alloc()?;
        let fresh = mbuf.append(FRONT).is_some();
        let mut event = Self(mbuf);
        let front = event.front_mut().filter(|_| fresh)?;
        front.head = Head {
            step: BUILT,
            ..Head::default()
        };
        Some(event)
    }

    /// The event as it lies in its buffer.
    #[must_use]
    #[inline]
    pub fn view(&self) -> EventView<'_> {
        // Always an event: its buffer was checked when it was made, and grows by whole hits.
        EventView::of(self.0.data()).unwrap_or(EventView {
            front: &NOTHING,
            hits: &[],
        })
    }

    /// The bytes that [`EventView::of`] reads.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.0.data()
    }

    #[inline]
    fn front_mut(&mut self) -> Option<&mut Front> {
        let (front, _) = Front::mut_from_prefix(self.0.data_mut()).ok()?;
        Some(front)
    }

    /// What is known of the event.
    #[must_use]
    #[inline]
    pub fn head(&self) -> EventHead {
        self.view().head()
    }

    /// Hits of all sources: in the order of the sources, each sorted by photomultiplier.
    #[must_use]
    #[inline]
    pub fn hits(&self) -> &[Hit] {
        self.view().hits()
    }

    /// Says what is known of the event; the number of hits is that of those which it has.
    #[inline]
    pub fn set_head(&mut self, head: &EventHead) {
        if let Some(front) = self.front_mut() {
            front.head.timestamp = head.timestamp;
            front.head.arrival = head.arrival.0;
            front.head.sources = head.sources;
            front.head.complete = u8::from(head.complete);
        }
    }

    /// Says of which time its hits are.
    #[inline]
    pub fn set_span(&mut self, span: Span) {
        if let Some(front) = self.front_mut() {
            (front.head.guard, front.head.width) = (span.guard, span.width);
        }
    }

    /// Adds hits behind the first `at` of those that it has; `false`, and no change, if they do
    /// not fit.
    #[must_use]
    #[inline]
    pub fn insert(&mut self, at: usize, hits: &[Hit]) -> bool {
        let bytes = hits.as_bytes();
        if self.0.append(bytes.len()).is_none() {
            return false;
        }
        let data = self.0.data_mut();
        let end = data.len() - bytes.len();
        let start = (FRONT + at * size_of::<Hit>()).min(end);
        if start < end {
            data.copy_within(start..end, start + bytes.len());
        }
        data[start..start + bytes.len()].copy_from_slice(bytes);
        true
    }

    /// The event with its rings; those beyond [`MAX_RINGS`] are passed over, and those of its
    /// neighbours in time.
    #[must_use]
    #[inline]
    pub fn reconstructed(mut self, rings: &[Ring]) -> Reconstructed {
        let span = self.view().span();
        if let Some(front) = self.front_mut() {
            let own = rings.iter().filter(|ring| span.holds(ring.time));
            let places = front.rings.iter_mut().zip(own);
            front.head.ring_count = places.map(|(place, ring)| *place = *ring).count() as u8;
            front.head.step = RECONSTRUCTED;
        }
        Reconstructed(self)
    }

    /// The event in a buffer that has come this far.
    fn at_step(mbuf: Mbuf, step: u8) -> Result<Self, Mbuf> {
        match EventView::of(mbuf.data()) {
            Some(view) if view.front.head.step == step => Ok(Self(mbuf)),
            _ => Err(mbuf),
        }
    }
}

/// An event with its rings.
#[derive(Debug)]
pub struct Reconstructed(Event);

impl Reconstructed {
    /// Its rings.
    #[must_use]
    #[inline]
    pub fn rings(&self) -> &[Ring] {
        self.view().rings()
    }

    /// The event with the trigger's word.
    #[must_use]
    #[inline]
    pub fn decided(mut self, verdict: Verdict) -> Decision {
        if let Some(front) = self.0.front_mut() {
            front.head.rules = verdict.rules;
            front.head.rule_set = verdict.rule_set;
            front.head.monitored = u8::from(verdict.monitored);
            front.head.step = DECIDED;
        }
        Decision(self)
    }
}

impl Deref for Reconstructed {
    type Target = Event;

    #[inline]
    fn deref(&self) -> &Event {
        &self.0
    }
}

/// An event, its rings, and what was decided about it.
#[derive(Debug)]
pub struct Decision(Reconstructed);

impl Decision {
    /// The trigger's word.
    #[must_use]
    #[inline]
    pub fn verdict(&self) -> Verdict {
        self.view().verdict()
    }
}

impl Deref for Decision {
    type Target = Reconstructed;

    #[inline]
    fn deref(&self) -> &Reconstructed {
        &self.0
    }
}

impl From<Event> for Mbuf {
    #[inline]
    fn from(event: Event) -> Self {
        event.0
    }
}

impl From<Decision> for Mbuf {
    #[inline]
    fn from(decision: Decision) -> Self {
        decision.0.0.0
    }
}

/// As it came through a ring of buffers. A buffer that is not a built event comes back.
impl TryFrom<Mbuf> for Event {
    type Error = Mbuf;

    #[inline]
    fn try_from(mbuf: Mbuf) -> Result<Self, Mbuf> {
        Event::at_step(mbuf, BUILT)
    }
}

/// As it came through a ring of buffers. A buffer that is not a decision comes back.
impl TryFrom<Mbuf> for Decision {
    type Error = Mbuf;

    #[inline]
    fn try_from(mbuf: Mbuf) -> Result<Self, Mbuf> {
        Event::at_step(mbuf, DECIDED).map(|event| Self(Reconstructed(event)))
    }
}

impl fmt::Debug for EventView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("head", &self.head())
            .field("verdict", &self.verdict())
            .field("rings", &self.rings())
            .field("hits", &self.hits())
            .finish()
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn hits(pms: std::ops::Range<u16>) -> Vec<Hit> {
        pms.map(|pm| Hit { pm, fine: pm % 256 }).collect()
    }

    const HEAD: EventHead = EventHead {
        timestamp: 0x0102_0304_0506_0708,
        sources: 0b1011,
        complete: true,
        hits: 5,
        arrival: Tsc(9),
    };

    #[test]
    fn an_event_is_one_buffer_from_its_first_hit_to_its_last_owner() {
        let pool = event_pool(8, PoolConfig::default()).unwrap();
        let mut cache = pool.cache(4).unwrap();
        // Twice, as the second time the buffer is not fresh.
        for n in [3_u16, 0] {
            let mut event = Event::new(&mut cache).unwrap();
            assert_eq!(
                (event.head(), event.hits()),
                (EventHead::default(), &[][..])
            );
            assert!(event.insert(0, &hits(7..9)) && event.insert(0, &hits(0..2)));
            assert!(event.insert(2, &hits(4..5)) && event.insert(9, &[]));
            assert_eq!(event.hits(), [hits(0..2), hits(4..5), hits(7..9)].concat());
            event.set_head(&EventHead { hits: 999, ..HEAD });
            assert_eq!(event.head(), HEAD);

            let rings: Vec<_> = (0..n)
                .map(|hits| Ring {
                    hits,
                    ..Ring::default()
                })
                .collect();
            let event = event.reconstructed(&rings);
            assert!(event.rings() == rings && event.view().verdict() == Verdict::default());
            let verdict = Verdict {
                rules: n as u8,
                rule_set: 0x1234,
                monitored: n == 0,
            };
            let decision = event.decided(verdict);
            assert_eq!((decision.verdict(), decision.head()), (verdict, HEAD));

            let decision = Decision::try_from(Mbuf::from(decision)).unwrap();
            let frozen = Mbuf::from(decision).freeze();
            let (one, other) = (frozen.clone(), EventView::of(frozen.data()).unwrap());
            assert_eq!(
                format!("{other:?}"),
                format!("{:?}", EventView::of(one.data()).unwrap())
            );
            assert_eq!((other.hits().len(), other.rings()), (5, &rings[..]));
            drop((frozen, one));
        }
        drop(cache);
        assert_eq!(pool.available(), 8);
    }

    #[test]
    fn hits_are_added_whole_or_not_at_all_and_rings_up_to_their_room() {
        let pool = event_pool(2, PoolConfig::default()).unwrap();
        let mut event = Event::new(&mut pool.cache(2).unwrap()).unwrap();
        assert!(event.insert(0, &hits(0..500)));
        assert!(!event.insert(500, &hits(0..13)));
        assert!(event.insert(500, &hits(500..512)) && !event.insert(0, &hits(0..1)));
        assert_eq!(event.hits(), hits(0..MAX_EVENT_HITS as u16));
        let event = event.reconstructed(&[Ring::default(); MAX_RINGS + 1]);
        assert_eq!(event.rings().len(), MAX_RINGS);
    }

    #[test]
    fn other_buffers_are_no_events() {
        let small = Mempool::new(PoolConfig {
            buffers: 2,
            data_room: 64,
            headroom: 0,
            ..PoolConfig::default()
        });
        let small = small.unwrap();
        assert!(Event::new(&mut small.cache(2).unwrap()).is_none());
        assert_eq!(small.available(), 2);

        let pool = event_pool(4, PoolConfig::default()).unwrap();
        let mut cache = pool.cache(4).unwrap();
        let built = Event::new(&mut cache).unwrap();
        let built = Decision::try_from(Mbuf::from(built)).unwrap_err();
        let event = Event::try_from(built).unwrap();
        let decided = event.reconstructed(&[]).decided(Verdict::default());
        assert!(Event::try_from(Mbuf::from(decided)).is_err());
        let empty = cache.alloc().unwrap();
        let empty = Event::try_from(empty).unwrap_err();
        assert!(EventView::of(empty.data()).is_none());
        let bytes = [0_u64; FRONT / 8 + 1];
        assert!(EventView::of(bytes.as_bytes()).is_some());
        assert!(
            EventView::of(&bytes.as_bytes()[4..]).is_none(),
            "misaligned"
        );
        assert!(
            EventView::of(&bytes.as_bytes()[..FRONT + 3]).is_none(),
            "half a hit"
        );
    }
}
