//! An event in a packet buffer.
//!
//! ```text
//!   +------+------------------------+------------------------+----------+
//!   | head | MAX_RINGS places       | hits of the event      | tailroom |
//!   +------+------------------------+------------------------+----------+
//!   |<----------- 256 B ----------->|<-- 4 B each, at most MAX_EVENT_HITS -->|
//! ```

pub(super) mod draft;

use std::fmt;
use std::ops::Deref;

use pollux_mempool::Mbuf;
use pollux_mempool::time::Tsc;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::span::Span;
use super::verdict::Verdict;
use crate::rich::Hit;
use crate::rich::find::{MAX_RINGS, Ring};

/// Maximum number of hits of one event, over all sources.
pub const MAX_EVENT_HITS: usize = 512;

/// Properties of an event besides its hits and rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventHead {
    /// Time of the event, in slots of 25 ns.
    pub timestamp: u64,
    /// Bit s: source s contributed.
    pub sources: u16,
    /// All sources contributed, with all of their hits.
    pub complete: bool,
    /// Hits were left out, since the event buffer is full.
    pub truncated: bool,
    /// Sources disagreed on the time, without a majority: this is the event of some of them.
    pub disputed: bool,
    /// Number of its burst, from 1 on; the time stamp counts from the burst's start.
    pub burst: u16,
    /// Number of hits.
    pub hits: u16,
    /// Number of masked hits, which are the last ones: hits of sources with more hits than rings
    /// explain.
    pub masked: u16,
    /// Arrival time of its first fragment, on the clock.
    pub arrival: Tsc,
}

/// Time of an event, as determined by its rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventTime {
    /// Slot of 25 ns.
    pub slot: u64,
    /// Time within the slot, in units of 25/256 ns.
    pub fine: u8,
}

/// Layout of the data in front of the hits. The first ring shares the head's cache line.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Front {
    head: Head,
    rings: [Ring; MAX_RINGS],
}

/// The stored head.
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
    /// As in [`EventHead`].
    masked: u16,
    flags: u8,
    rules: u8,
    /// Progress of the event.
    step: u8,
    ring_count: u8,
    burst: u16,
}

/// Bits of [`Head::flags`].
const COMPLETE: u8 = 1;
const TRUNCATED: u8 = 1 << 1;
const DISPUTED: u8 = 1 << 2;
const MONITORED: u8 = 1 << 3;
const LATE: u8 = 1 << 4;

impl Head {
    #[inline]
    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Units of time in a slot.
const SLOT: u32 = 256;

const FRONT: usize = size_of::<Front>();
const _: () = assert!(FRONT == 256 && size_of::<Head>() == 32);

/// Values of [`Head::step`].
const BUILT: u8 = 1;
const RECONSTRUCTED: u8 = 2;
const DECIDED: u8 = 3;

/// Fallbacks for bytes that are not an event.
static NOTHING: Front = zerocopy::transmute!([0_u8; FRONT]);

/// Read access to the bytes of an event: of an owned one, or of a shared one
/// ([`Frozen`](pollux_mempool::Frozen)).
#[derive(Clone, Copy)]
pub struct EventView<'a> {
    front: &'a Front,
    hits: &'a [Hit],
}

impl<'a> EventView<'a> {
    /// Interprets bytes as an event; `None` if the length or the head is not that of an event in a
    /// buffer.
    #[must_use]
    #[inline]
    pub fn of(bytes: &'a [u8]) -> Option<Self> {
        let (front, rest) = Front::ref_from_prefix(bytes).ok()?;
        let hits = <[Hit]>::ref_from_bytes(rest).ok()?;
        Some(Self { front, hits })
    }

    /// Properties of the event.
    #[must_use]
    #[inline]
    pub fn head(self) -> EventHead {
        EventHead {
            timestamp: self.front.head.timestamp,
            sources: self.front.head.sources,
            complete: self.front.head.has(COMPLETE),
            truncated: self.front.head.has(TRUNCATED),
            disputed: self.front.head.has(DISPUTED),
            burst: self.front.head.burst,
            hits: self.hits.len() as u16,
            masked: self.front.head.masked,
            arrival: Tsc(self.front.head.arrival),
        }
    }

    /// Hits of all sources: in the order of the sources, each sorted by photomultiplier, or by time
    /// where hits are merged. Hits of masked sources come last.
    #[must_use]
    #[inline]
    pub fn hits(self) -> &'a [Hit] {
        self.hits
    }

    /// The hits that are searched for rings.
    #[must_use]
    #[inline]
    pub fn unmasked_hits(self) -> &'a [Hit] {
        let masked = usize::from(self.front.head.masked);
        &self.hits[..self.hits.len().saturating_sub(masked)]
    }

    /// Time range of the hits.
    #[must_use]
    #[inline]
    pub fn span(self) -> Span {
        Span {
            guard: self.front.head.guard,
            width: self.front.head.width,
        }
    }

    /// Its rings; empty before the ring search.
    #[must_use]
    #[inline]
    pub fn rings(self) -> &'a [Ring] {
        &self.front.rings[..usize::from(self.front.head.ring_count).min(MAX_RINGS)]
    }

    /// The time of the ring with the most hits (of equals, the first). It lies in the event's slot;
    /// where windows are wider than a slot, it lies in the slot of the window that the ring is in.
    /// Without a ring, it is the beginning of the slot or window. A time out of range, which no
    /// finder returns, is clamped.
    #[must_use]
    #[inline]
    pub fn time(self) -> EventTime {
        let Head {
            timestamp,
            guard,
            width,
            ..
        } = self.front.head;
        let begin = EventTime {
            slot: timestamp,
            fine: 0,
        };
        let strongest = |best: Option<&'a Ring>, ring: &'a Ring| match best {
            Some(best) if best.hits >= ring.hits => Some(best),
            _ => Some(ring),
        };
        let Some(ring) = self.rings().iter().fold(None, strongest) else {
            return begin;
        };
        let units = if width == 0 { SLOT } else { u32::from(width) };
        // Rounds (the function of that name is a call on CPUs without SSE4.1), saturates, and
        // converts NaN to 0. Rounding must not lead out of the window.
        let time = (ring.time - f32::from(guard) + 0.5) as u32;
        let time = time.min(units - 1);
        EventTime {
            slot: timestamp.saturating_add(u64::from(time / SLOT)),
            fine: (time % SLOT) as u8,
        }
    }

    /// The trigger decision; false before the decision.
    #[must_use]
    #[inline]
    pub fn verdict(self) -> Verdict {
        let head = &self.front.head;
        Verdict {
            rules: head.rules,
            rule_set: head.rule_set,
            monitored: head.has(MONITORED),
        }
    }

    /// The budget had passed when its decision was sent; false before that.
    #[must_use]
    #[inline]
    pub fn is_late(self) -> bool {
        self.front.head.has(LATE)
    }
}

/// All fragments of one event that arrived in time; made from a [`Draft`](super::Draft).
pub struct Event(Mbuf);

impl Event {
    /// The event in its buffer.
    #[must_use]
    #[inline]
    pub fn view(&self) -> EventView<'_> {
        // Always an event: its buffer was checked at construction, and grows by whole hits.
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

    /// Properties of the event.
    #[must_use]
    #[inline]
    pub fn head(&self) -> EventHead {
        self.view().head()
    }

    /// As [`EventView::hits`].
    #[must_use]
    #[inline]
    pub fn hits(&self) -> &[Hit] {
        self.view().hits()
    }

    /// Adds the rings; ignores those beyond [`MAX_RINGS`], and those of neighbouring events in
    /// time.
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

    /// The event in a buffer that has reached this step.
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

    /// Adds the trigger decision.
    #[must_use]
    #[inline]
    pub fn decided(mut self, verdict: Verdict) -> Decision {
        if let Some(front) = self.0.front_mut() {
            front.head.rules = verdict.rules;
            front.head.rule_set = verdict.rule_set;
            front.head.flags |= if verdict.monitored { MONITORED } else { 0 };
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

/// An event, its rings, and the decision.
#[derive(Debug)]
pub struct Decision(Reconstructed);

impl Decision {
    /// The trigger decision.
    #[must_use]
    #[inline]
    pub fn verdict(&self) -> Verdict {
        self.view().verdict()
    }

    /// Records that the budget had passed when the decision was sent.
    #[inline]
    pub fn mark_late(&mut self) {
        if let Some(front) = self.0.0.front_mut() {
            front.head.flags |= LATE;
        }
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

/// From a buffer that was passed through a ring. Returns a buffer that is not a built event.
impl TryFrom<Mbuf> for Event {
    type Error = Mbuf;

    #[inline]
    fn try_from(mbuf: Mbuf) -> Result<Self, Mbuf> {
        Event::at_step(mbuf, BUILT)
    }
}

/// From a buffer that was passed through a ring. Returns a buffer that is not a decision.
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
mod tests;
