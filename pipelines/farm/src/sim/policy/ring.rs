//! The flow-control ring of the thesis (III.A): a source sends its fragment when the event's message
//! reaches it, and then passes the message on.

use std::collections::VecDeque;

use super::rules::{Orders, Policy};
use crate::sim::network::{Fragment, Note};
use crate::time::Time;

/// A ring through all sources.
#[derive(Debug)]
pub struct Ring {
    nodes: u16,
    hop: Time,
    /// Messages on the ring at most.
    in_flight: u32,
    available: u32,
    /// The next event whose message is sent.
    next: u32,
    flying: u32,
    sources: Vec<Source>,
}

#[derive(Debug, Default)]
struct Source {
    busy: bool,
    /// Messages that wait for the end of the transfer.
    waiting: VecDeque<Note>,
}

impl Ring {
    /// A ring whose messages take `hop` from one source to the next, at most `in_flight` at a time.
    #[must_use]
    pub fn new(sources: u16, nodes: u16, hop: Time, in_flight: u32) -> Self {
        Self {
            nodes: nodes.max(1),
            hop,
            in_flight,
            available: 0,
            next: 0,
            flying: 0,
            sources: (0..sources).map(|_| Source::default()).collect(),
        }
    }

    fn start(&mut self, orders: &mut Orders) {
        while self.next < self.available && self.flying < self.in_flight {
            let note = Note {
                event: self.next,
                source: 0,
                node: (self.next % u32::from(self.nodes)) as u16,
            };
            orders.note(self.hop, note);
            self.next += 1;
            self.flying += 1;
        }
    }
}

impl Policy for Ring {
    fn available(&mut self, events: u32, orders: &mut Orders) {
        self.available = events;
        self.start(orders);
    }

    fn noted(&mut self, note: Note, orders: &mut Orders) {
        match self.sources.get_mut(usize::from(note.source)) {
            // It is back at the scheduler.
            None => {
                self.flying -= 1;
                self.start(orders);
            }
            Some(source) if source.busy => source.waiting.push_back(note),
            Some(source) => {
                source.busy = true;
                orders.send(note.event, note.source, note.node);
            }
        }
    }

    fn sent(&mut self, fragment: &Fragment, orders: &mut Orders) {
        let note = Note {
            event: fragment.event,
            source: fragment.source + 1,
            node: fragment.node,
        };
        orders.note(self.hop, note);
        let Some(source) = self.sources.get_mut(usize::from(fragment.source)) else {
            return;
        };
        source.busy = false;
        if let Some(next) = source.waiting.pop_front() {
            self.noted(next, orders);
        }
    }
}
