//! A barrel shifter: in each slot every source sends to another node (LHCb Run 3).

use std::collections::VecDeque;

use super::rules::{Orders, Policy};
use crate::sim::network::{Fragment, Note};
use crate::time::Time;

/// Rounds of as many slots as there are sources or nodes, whichever are more. A round has an event
/// for each node; in slot p source i sends to node i + p.
#[derive(Debug)]
pub struct Slots {
    nodes: u32,
    /// Slots of a round.
    period: u32,
    /// Time from the last fragment of a slot to the next slot; without a barrier each source goes on
    /// by itself.
    barrier: Option<Time>,
    available: u32,
    /// The first event that is in no round yet.
    next: u32,
    rounds: VecDeque<Round>,
    /// Number of the first of `rounds`.
    first: u64,
    sources: Vec<Source>,
    /// Fragments on their way.
    flying: u32,
    /// With a barrier: whether a slot, or the pause after it, goes on.
    running: bool,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    event: u32,
    events: u32,
    /// Sources that have done all slots.
    done: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Source {
    round: u64,
    slot: u32,
    busy: bool,
}

impl Slots {
    /// Slots with a barrier between them, or without.
    #[must_use]
    pub fn new(sources: u16, nodes: u16, barrier: Option<Time>) -> Self {
        Self {
            nodes: nodes.into(),
            period: sources.max(nodes).into(),
            barrier,
            available: 0,
            next: 0,
            rounds: VecDeque::new(),
            first: 0,
            sources: vec![Source::default(); sources.into()],
            flying: 0,
            running: false,
        }
    }

    /// The round of this number: where it is the next one, with the events that are there.
    fn round(&mut self, number: u64) -> Option<Round> {
        let at = (number - self.first) as usize;
        if at == self.rounds.len() {
            let events = (self.available - self.next).min(self.nodes);
            if events == 0 {
                return None;
            }
            self.rounds.push_back(Round {
                event: self.next,
                events,
                done: 0,
            });
            self.next += events;
        }
        self.rounds.get(at).copied()
    }

    /// A source has done all slots of a round. Rounds end in their order.
    fn finish(&mut self, number: u64) {
        if let Some(round) = self.rounds.get_mut((number - self.first) as usize) {
            round.done += 1;
        }
        while self
            .rounds
            .front()
            .is_some_and(|round| round.done == self.sources.len())
        {
            self.rounds.pop_front();
            self.first += 1;
        }
    }

    /// The source sends what it has to in its slot. Without a barrier it goes on to the first slot in
    /// which it has something to send.
    fn step(&mut self, number: u16, orders: &mut Orders) {
        let Some(mut source) = self.sources.get(usize::from(number)).copied() else {
            return;
        };
        while !source.busy {
            let Some(round) = self.round(source.round) else {
                break;
            };
            let node = (u32::from(number) + source.slot) % self.period;
            if node < round.events {
                source.busy = true;
                orders.send(round.event + node, number, node as u16);
                self.flying += 1;
            }
            source.slot += 1;
            if source.slot == self.period {
                self.finish(source.round);
                source.slot = 0;
                source.round += 1;
            }
            if self.barrier.is_some() {
                break;
            }
        }
        self.sources[usize::from(number)] = source;
    }

    /// With a barrier: begins the next slot in which anything is sent.
    fn begin(&mut self, orders: &mut Orders) {
        while self.flying == 0 && (!self.rounds.is_empty() || self.next < self.available) {
            for source in 0..self.sources.len() as u16 {
                self.step(source, orders);
            }
        }
        self.running = self.flying > 0;
    }
}

impl Policy for Slots {
    fn available(&mut self, events: u32, orders: &mut Orders) {
        self.available = events;
        if self.barrier.is_none() {
            for source in 0..self.sources.len() as u16 {
                self.step(source, orders);
            }
        } else if !self.running {
            self.begin(orders);
        }
    }

    fn sent(&mut self, fragment: &Fragment, orders: &mut Orders) {
        if self.barrier.is_none() {
            self.sources[usize::from(fragment.source)].busy = false;
            self.step(fragment.source, orders);
        }
    }

    fn ended(&mut self, fragment: &Fragment, orders: &mut Orders) {
        self.flying -= 1;
        let Some(pause) = self.barrier.filter(|_| self.flying == 0) else {
            return;
        };
        for source in &mut self.sources {
            source.busy = false;
        }
        if pause == Time::ZERO {
            return self.begin(orders);
        }
        let note = Note {
            event: fragment.event,
            source: fragment.source,
            node: fragment.node,
        };
        orders.note(pause, note);
    }

    fn noted(&mut self, _: Note, orders: &mut Orders) {
        self.begin(orders);
    }
}
