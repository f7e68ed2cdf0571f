//! A store of fragments: a ring of slots by event number.

use crate::fragments::Fragments;

/// A fragment that was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The slot of the event is taken by one that is not decided.
    #[error(
        "no free slot for event {event}: events from {oldest} on are not decided; set more slots"
    )]
    Full {
        /// The event.
        event: u64,
        /// The first event that is not decided.
        oldest: u64,
    },
    /// The event is decided already.
    #[error("event {event} is decided: its fragment is late")]
    Late {
        /// The event.
        event: u64,
    },
    /// The part is stored already.
    #[error("part {part} of event {event} was stored before")]
    Repeated {
        /// The event.
        event: u64,
        /// The part.
        part: u8,
    },
    /// Larger than a slot.
    #[error("{bytes} bytes of event {event}: a slot has {slot}; set larger slots")]
    Oversize {
        /// The event.
        event: u64,
        /// Bytes of the fragment.
        bytes: usize,
        /// Bytes of a slot.
        slot: usize,
    },
    /// There are parts 0 and 1.
    #[error("part {0} of an event: there are 0 and 1")]
    Part(u8),
}

/// Counters of a store, each of one cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Stored.
    pub stored: u64,
    /// Not stored: no free slot.
    pub full: u64,
    /// Not stored: the event was decided.
    pub late: u64,
    /// Not stored: stored before.
    pub repeated: u64,
    /// Not stored: larger than a slot.
    pub oversize: u64,
    /// Not stored: no such part.
    pub part: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    event: u64,
    lengths: [Option<u32>; 2],
}

/// Fragments of the events that are not decided.
#[derive(Debug)]
pub struct Store {
    slots: Box<[Slot]>,
    data: Box<[u8]>,
    /// Bytes of one part of a slot.
    room: usize,
    /// The first event that is not decided.
    oldest: u64,
    counters: Counters,
}

impl Store {
    /// Room for the fragments of `events` events at a time, at least one, of `room` bytes a part.
    #[must_use]
    pub fn new(events: usize, room: u32) -> Self {
        let events = events.max(1);
        let free = Slot {
            event: u64::MAX,
            lengths: [None; 2],
        };
        Self {
            slots: vec![free; events].into(),
            data: vec![0; events * 2 * room as usize].into(),
            room: room as usize,
            oldest: 0,
            counters: Counters::default(),
        }
    }

    /// Counters since the start.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Stores a part of an event's data.
    ///
    /// # Errors
    /// A fragment that is not stored; it is counted.
    pub fn push(&mut self, event: u64, part: u8, data: &[u8]) -> Result<(), StoreError> {
        let result = self.try_push(event, part, data);
        let counters = &mut self.counters;
        let count = match result {
            Ok(()) => &mut counters.stored,
            Err(StoreError::Full { .. }) => &mut counters.full,
            Err(StoreError::Late { .. }) => &mut counters.late,
            Err(StoreError::Repeated { .. }) => &mut counters.repeated,
            Err(StoreError::Oversize { .. }) => &mut counters.oversize,
            Err(StoreError::Part(_)) => &mut counters.part,
        };
        *count += 1;
        result
    }

    fn try_push(&mut self, event: u64, part: u8, data: &[u8]) -> Result<(), StoreError> {
        if part > 1 {
            return Err(StoreError::Part(part));
        }
        let (bytes, slot) = (data.len(), self.room);
        if bytes > slot {
            return Err(StoreError::Oversize { event, bytes, slot });
        }
        let oldest = self.oldest;
        if event < oldest {
            return Err(StoreError::Late { event });
        }
        if event - oldest >= self.slots.len() as u64 {
            return Err(StoreError::Full { event, oldest });
        }
        let n = self.index(event);
        let slot = &mut self.slots[n];
        if slot.event != event {
            *slot = Slot {
                event,
                lengths: [None; 2],
            };
        }
        let length = &mut slot.lengths[usize::from(part)];
        if length.is_some() {
            return Err(StoreError::Repeated { event, part });
        }
        *length = Some(bytes as u32);
        let start = self.start(n, part);
        self.data[start..start + bytes].copy_from_slice(data);
        Ok(())
    }

    fn index(&self, event: u64) -> usize {
        (event % self.slots.len() as u64) as usize
    }

    fn start(&self, slot: usize, part: u8) -> usize {
        (slot * 2 + usize::from(part)) * self.room
    }
}

impl Fragments for Store {
    fn length(&self, event: u64, part: u8) -> Option<u32> {
        let slot = self.slots.get(self.index(event))?;
        let kept = slot.event == event && event >= self.oldest;
        *slot.lengths.get(usize::from(part)).filter(|_| kept)?
    }

    fn write(&self, event: u64, part: u8, into: &mut [u8]) {
        let start = self.start(self.index(event), part);
        if let Some(data) = self.data.get(start..start + into.len()) {
            into.copy_from_slice(data);
        }
    }

    fn release(&mut self, before: u64) {
        self.oldest = self.oldest.max(before);
    }
}
