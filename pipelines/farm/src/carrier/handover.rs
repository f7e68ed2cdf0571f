//! Messages between the members of one loop, which are handed over as they are.
//!
//! What ends an event is delivered before what begins one, so that few events are under way in a
//! loop at a time. Nothing waits without end: messages that begin no transfer are answered by few
//! others.

mod fifo;

use super::arrival::Arrival;
use crate::message::Message;
use crate::role::Address;
use fifo::Fifo;

/// Messages that wait for members of the loop. All memory is allocated at construction.
#[derive(Debug)]
pub struct Handover {
    /// What ends an event.
    first: Fifo<(Address, Message)>,
    /// What has a feeder begin a transfer.
    later: Fifo<(Address, Message)>,
    /// Messages that were handed over.
    count: u64,
}

impl Handover {
    /// Room for so many messages that begin a transfer, and for as many others.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            first: Fifo::new(most),
            later: Fifo::new(most),
            count: 0,
        }
    }

    /// Whether one more message has room.
    #[must_use]
    #[inline]
    pub fn has_room(&self) -> bool {
        !self.first.is_full() && !self.later.is_full()
    }

    /// Hands a message over, for which there is room.
    #[inline]
    pub fn push(&mut self, to: Address, message: &Message) {
        self.count += 1;
        let begins = matches!(message, Message::Flow(_) | Message::Request(_));
        if begins && matches!(to, Address::Feeder(_)) {
            self.later.push((to, *message));
        } else {
            self.first.push((to, *message));
        }
    }

    /// A message does not wait: the caller delivers it.
    #[inline]
    pub fn pass(&mut self) {
        self.count += 1;
    }

    /// Whether a message of an event that has begun waits.
    #[inline]
    pub(super) fn has_next(&self) -> bool {
        !self.first.is_empty()
    }

    /// The next message of an event that has begun.
    #[inline(always)]
    #[expect(
        clippy::should_implement_trait,
        reason = "no iterator: what is delivered adds messages"
    )]
    pub fn next<P>(&mut self) -> Option<Arrival<P>> {
        self.first.pop().map(arrival)
    }

    /// Whether a message that begins a transfer waits.
    #[inline]
    pub(super) fn has_begin(&self) -> bool {
        !self.later.is_empty()
    }

    /// The next message that begins a transfer.
    #[inline(always)]
    pub fn next_begin<P>(&mut self) -> Option<Arrival<P>> {
        self.later.pop().map(arrival)
    }

    /// Whether no message waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.has_next() && !self.has_begin()
    }

    /// Messages that were handed over.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// A message that needed no frame.
#[inline(always)]
fn arrival<P>((to, message): (Address, Message)) -> Arrival<P> {
    Arrival {
        to,
        message,
        payload: None,
    }
}
