//! Event queues: from the loop to the threads of outputs. Several queues share the buffer of an
//! event.

use std::sync::Arc;

use pollux_mempool::ring::RingError;
use pollux_mempool::{Frozen, FrozenConsumer, FrozenProducer, Mbuf, PoolCache, frozen_ring};
use pollux_na62::l0::{Decision, EventView, Verdict};

use crate::counts::QueueCounts;
use crate::event::OutputEvent;

/// Number of events between the loop and a thread: 80 ms at 100 kHz.
const QUEUE: usize = 1 << 13;

/// Maximum number of events that one queue and its consumer keep from their pool.
pub const CAPACITY: usize = QUEUE + 1;

/// The events that are meant for an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// Accepted events.
    #[default]
    Accepted,
    /// Accepted events, and rejected ones that are kept for monitoring.
    Kept,
    /// All events.
    All,
}

impl Selection {
    /// Whether an event of this verdict is one of them.
    #[must_use]
    #[inline]
    pub fn holds(self, verdict: Verdict) -> bool {
        match self {
            Self::Accepted => verdict.accepted(),
            Self::Kept => verdict.accepted() || verdict.monitored,
            Self::All => true,
        }
    }
}

/// Makes a queue for the events of a selection.
///
/// # Errors
/// None, for the capacity is a constant; the ring's type has one.
pub fn event_queue(
    selection: Selection,
    counts: Arc<QueueCounts>,
) -> Result<(EventQueue, QueuedEvents), RingError> {
    let (ring, consumer) = frozen_ring(QUEUE)?;
    let queue = EventQueue {
        ring,
        selection,
        counts,
    };
    Ok((queue, QueuedEvents(consumer)))
}

/// The producer in the loop.
pub struct EventQueue {
    ring: FrozenProducer,
    selection: Selection,
    counts: Arc<QueueCounts>,
}

impl EventQueue {
    /// Whether the queue has space for the next event, or never will have: its consumer has ended.
    #[must_use]
    #[inline]
    pub fn has_room(&self) -> bool {
        self.ring.free() > 0 || self.ring.is_abandoned()
    }

    /// Gives the event back, and counts it as lost, if the queue is full.
    #[inline]
    fn push(&mut self, event: Frozen) -> Result<(), Frozen> {
        let pushed = self.ring.push(event);
        match pushed {
            Ok(()) => self.counts.handed.add(1),
            Err(_) => self.counts.missed.add(1),
        }
        pushed
    }
}

/// All queues of a loop.
#[derive(Default)]
pub struct EventQueues(Vec<EventQueue>);

impl EventQueues {
    /// Adds a queue, before the loop starts.
    pub fn add(&mut self, queue: EventQueue) {
        self.0.push(queue);
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether each queue has space for the next event.
    #[must_use]
    #[inline]
    pub fn have_room(&self) -> bool {
        self.0.iter().all(EventQueue::has_room)
    }

    /// Passes an event on to all queues whose selection it is of, without a copy; `number` is that
    /// of its decision. Calls `wait` before a queue takes it, which may wait for space. The buffer of
    /// an event that no queue has taken goes to `events`.
    #[inline]
    pub fn push(
        &mut self,
        number: u32,
        event: Decision,
        events: &mut PoolCache,
        wait: impl Fn(&EventQueue),
    ) {
        let verdict = event.verdict();
        let mut mbuf = Mbuf::from(event);
        let taking = |queue: &EventQueue| queue.selection.holds(verdict);
        let last = self.0.iter().rposition(taking);
        let Some((last, others)) = last.and_then(|last| self.0[..=last].split_last_mut()) else {
            return events.free(mbuf);
        };
        mbuf.set_origin(mbuf.port(), mbuf.queue(), number, mbuf.arrival());
        let event = mbuf.freeze();
        for queue in others.iter_mut().filter(|queue| taking(queue)) {
            wait(queue);
            // A copy that was not taken is dropped.
            let _ = queue.push(event.clone());
        }
        wait(last);
        if let Err(event) = last.push(event)
            && let Ok(mbuf) = event.try_thaw()
        {
            // No queue has taken it.
            events.free(mbuf);
        }
    }
}

/// The consumer in the thread of an output.
pub struct QueuedEvents(FrozenConsumer);

impl QueuedEvents {
    /// Takes the oldest event, if there is one.
    #[inline]
    pub fn pop(&mut self) -> Option<QueuedEvent> {
        self.0.pop().map(QueuedEvent)
    }

    /// Whether no event was seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An event that was taken from a queue. Dropping it releases its buffer, if no other queue has it.
pub struct QueuedEvent(Frozen);

impl QueuedEvent {
    /// The event; always there, as the loop queues nothing else.
    #[must_use]
    #[inline]
    pub fn event(&self) -> Option<OutputEvent<'_>> {
        Some(OutputEvent {
            number: self.0.ordinal(),
            view: EventView::of(self.0.data())?,
        })
    }
}

#[cfg(test)]
mod tests;
