//! Messages between the members of one loop, which are handed over as they are.
//!
//! They are delivered depth first: the flow control message of an event goes from feeder to feeder
//! of the loop before anything else is delivered, then its fragments are placed, and only then the
//! next event begins. What an event needs stays in the first-level cache that way, however many
//! events are under way.
//!
//! Nothing waits without end: a chain ends with the last feeder of the loop, and messages that begin
//! no transfer are answered by few others.

mod fifo;

use super::arrival::Arrival;
use crate::message::Message;
use crate::role::Address;
use fifo::Fifo;

/// Messages that wait for members of the loop. All memory is allocated at construction.
#[derive(Debug)]
pub struct Handover<P> {
    /// A flow control message on its way from feeder to feeder.
    chain: Option<Arrival<P>>,
    /// Fragments, and what ends an event.
    first: Fifo<Arrival<P>>,
    /// What has a feeder begin a transfer.
    later: Fifo<Arrival<P>>,
    /// Messages that were handed over.
    count: u64,
}

impl<P> Handover<P> {
    /// Room for so many messages that begin a transfer, and for as many others.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            chain: None,
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
    #[inline(always)]
    pub fn push(&mut self, from: Address, to: Address, message: &Message, payload: Option<P>) {
        self.count += 1;
        let arrival = move || Arrival {
            to,
            message: *message,
            payload,
        };
        match message {
            Message::Flow(_) if matches!(to, Address::Feeder(_)) => {
                if self.chain.is_none() && matches!(from, Address::Feeder(_)) {
                    self.chain = Some(arrival());
                } else {
                    self.later.push(arrival());
                }
            }
            Message::Request(_) => self.later.push(arrival()),
            _ => self.first.push(arrival()),
        }
    }

    /// Whether a message of an event that has begun waits.
    #[inline]
    pub(super) fn has_next(&self) -> bool {
        self.chain.is_some() || !self.first.is_empty()
    }

    /// The next message of an event that has begun.
    #[inline(always)]
    #[expect(
        clippy::should_implement_trait,
        reason = "no iterator: what is delivered adds messages"
    )]
    pub fn next(&mut self) -> Option<Arrival<P>> {
        if self.chain.is_some() {
            return self.chain.take();
        }
        self.first.pop()
    }

    /// Whether a message that begins a transfer waits.
    #[inline]
    pub(super) fn has_begin(&self) -> bool {
        !self.later.is_empty()
    }

    /// The next message that begins a transfer.
    #[inline(always)]
    pub fn next_begin(&mut self) -> Option<Arrival<P>> {
        self.later.pop()
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
