//! Messages between the members of one loop, which are handed over as they are.
//!
//! They are delivered depth first: the flow control message of an event goes from feeder to feeder
//! of the loop before anything else is delivered, then its fragments are placed, and only then the
//! next event begins. What an event needs stays in the first-level cache that way, however many
//! events are under way.
//!
//! Nothing waits without end: a chain ends with the last feeder of the loop, and messages that begin
//! no transfer are answered by few others.

use std::collections::VecDeque;

use super::arrival::Arrival;
use crate::message::Message;
use crate::role::Address;

/// Messages that wait for members of the loop. All memory is allocated at construction.
#[derive(Debug)]
pub struct Handover<P> {
    /// A flow control message on its way from feeder to feeder.
    chain: Option<Arrival<P>>,
    /// Fragments, and what ends an event.
    first: VecDeque<Arrival<P>>,
    /// What has a feeder begin a transfer.
    later: VecDeque<Arrival<P>>,
    most: usize,
    /// Messages that were handed over.
    count: u64,
}

impl<P> Handover<P> {
    /// Room for so many messages that begin a transfer, and for as many others.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            chain: None,
            first: VecDeque::with_capacity(most),
            later: VecDeque::with_capacity(most),
            most,
            count: 0,
        }
    }

    /// Whether one more message has room.
    #[must_use]
    #[inline]
    pub fn has_room(&self) -> bool {
        self.first.len() < self.most && self.later.len() < self.most
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
                    self.later.push_back(arrival());
                }
            }
            Message::Request(_) => self.later.push_back(arrival()),
            _ => self.first.push_back(arrival()),
        }
    }

    /// The next message of an event that has begun.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "no iterator: what is delivered adds messages"
    )]
    pub fn next(&mut self) -> Option<Arrival<P>> {
        if self.chain.is_some() {
            return self.chain.take();
        }
        pop(&mut self.first)
    }

    /// The next message that begins a transfer.
    #[inline]
    pub fn next_begin(&mut self) -> Option<Arrival<P>> {
        pop(&mut self.later)
    }

    /// Whether no message waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.chain.is_none() && self.first.is_empty() && self.later.is_empty()
    }

    /// Messages that were handed over.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }
}

/// Takes the first message of a queue. One that is empty begins at its start again, where its memory
/// is in the cache.
#[inline]
fn pop<P>(queue: &mut VecDeque<Arrival<P>>) -> Option<Arrival<P>> {
    let arrival = queue.pop_front();
    if queue.is_empty() {
        queue.clear();
    }
    arrival
}
