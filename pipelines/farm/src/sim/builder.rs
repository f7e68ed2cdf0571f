//! The simulation of an event builder: triggers, a policy, a network, and what is measured.

use std::collections::VecDeque;

use super::engine::Engine;
use super::network::{Agenda, Event, Fragment, Network, Note, Outcome};
use super::policy::{Orders, Policy};
use super::sizes::Sizes;
use super::statistics::{Measures, Progress, Results};
use crate::time::Time;
use crate::trigger::Poisson;

/// When events come.
#[derive(Clone, Copy, Debug)]
pub enum Triggers {
    /// There is always another event.
    Saturated,
    /// At equal intervals. An event is refused while so many others wait at the sources.
    Regular {
        /// Between two events.
        interval: Time,
        /// Events that the sources have room for.
        room: u32,
    },
    /// At random, with a mean interval; otherwise as `Regular`.
    Poisson {
        /// Mean time between two events.
        interval: Time,
        /// Events that the sources have room for.
        room: u32,
    },
}

impl Triggers {
    /// Mean time between two events.
    fn interval(self) -> Time {
        match self {
            Self::Saturated => Time::ZERO,
            Self::Regular { interval, .. } | Self::Poisson { interval, .. } => interval,
        }
    }
}

/// What an event builder is made of.
pub struct Parts<N> {
    /// Between sources and nodes.
    pub network: N,
    /// When a source sends.
    pub policy: Box<dyn Policy>,
    /// Of fragments.
    pub sizes: Sizes,
    /// Fragments of an event.
    pub fragments: u16,
    /// Links that limit the traffic: the sources or the nodes, whichever are fewer.
    pub links: u16,
    /// When events come.
    pub triggers: Triggers,
    /// Events that are simulated.
    pub events: u32,
}

/// An event whose fragments have not all ended.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// When it was triggered; without triggers, when its first fragment was sent.
    born: Time,
    ended: u16,
    lost: u16,
}

/// A running simulation.
pub struct Builder<N: Network> {
    parts: Parts<N>,
    engine: Engine<Event<N::Event>>,
    poisson: Poisson,
    outcomes: VecDeque<Outcome>,
    orders: Orders,
    open: VecDeque<Open>,
    /// Number of the first of `open`.
    first: u32,
    triggered: u32,
    accepted: u32,
    /// Events that ended, complete or not, or were refused.
    over: u32,
    measures: Measures,
}

impl<N: Network> Builder<N> {
    /// A simulation from time zero.
    #[must_use]
    pub fn new(parts: Parts<N>, seed: u64) -> Self {
        Self {
            engine: Engine::new(seed),
            poisson: Poisson::every(parts.triggers.interval(), seed),
            outcomes: VecDeque::new(),
            orders: Orders::default(),
            open: VecDeque::new(),
            first: 0,
            triggered: 0,
            accepted: 0,
            over: 0,
            measures: Measures::new(parts.events / 10),
            parts,
        }
    }

    /// Runs until all events have ended, or until `watch`, which is called now and then, returns
    /// false.
    pub fn run(mut self, mut watch: impl FnMut(Progress) -> bool) -> Results {
        match self.parts.triggers {
            Triggers::Saturated => {
                self.parts.policy.available(u32::MAX, &mut self.orders);
                self.settle();
            }
            Triggers::Regular { .. } | Triggers::Poisson { .. } => {
                self.engine.after(Time::ZERO, Event::Trigger);
            }
        }
        let mut stopped = false;
        while self.over < self.parts.events {
            let Some(event) = self.engine.next_event() else {
                break;
            };
            match event {
                Event::Trigger => self.trigger(),
                Event::Note(note) => self.parts.policy.noted(note, &mut self.orders),
                Event::Network(event) => {
                    let mut agenda = Agenda::new(&mut self.engine, &mut self.outcomes);
                    self.parts.network.handle(event, &mut agenda);
                }
            }
            self.settle();
            if self.engine.handled().is_multiple_of(Progress::EVERY) {
                stopped = !watch(Progress {
                    events: self.over.into(),
                    of: self.parts.events.into(),
                    simulated: self.engine.now(),
                });
                if stopped {
                    break;
                }
            }
        }
        let link = self.parts.network.link();
        let mut results = self.measures.results(
            self.engine.now(),
            self.parts.links,
            self.parts.fragments,
            link,
        );
        results.stopped = stopped;
        results.over_time = self.engine.is_over_time();
        results.unfinished = u64::from(self.parts.events - self.over);
        results.queue_peak_bytes = self.parts.network.peak_bytes();
        results.hash = self.engine.digest();
        results
    }

    fn trigger(&mut self) {
        let (interval, room) = match self.parts.triggers {
            Triggers::Saturated => return,
            Triggers::Regular { interval, room } => (interval, room),
            Triggers::Poisson { room, .. } => (self.poisson.interval(), room),
        };
        self.triggered += 1;
        if self.open.len() as u64 >= u64::from(room) {
            self.over += 1;
            self.measures.lost();
        } else {
            self.open(self.accepted);
            self.accepted += 1;
            self.parts.policy.available(self.accepted, &mut self.orders);
        }
        if self.triggered < self.parts.events {
            self.engine.after(interval, Event::Trigger);
        } else {
            self.measures.last_trigger(self.engine.now());
        }
    }

    /// Enters an event among the open ones, with those before it.
    fn open(&mut self, event: u32) {
        let born = self.engine.now();
        while (event - self.first) as usize >= self.open.len() {
            self.open.push_back(Open {
                born,
                ended: 0,
                lost: 0,
            });
        }
    }

    /// Carries orders and outcomes out until there are none left.
    fn settle(&mut self) {
        loop {
            self.obey();
            let Some(outcome) = self.outcomes.pop_front() else {
                return;
            };
            match outcome {
                Outcome::Sent(fragment) => self.parts.policy.sent(&fragment, &mut self.orders),
                Outcome::Arrived(fragment) => {
                    let unloaded = self.parts.network.unloaded(fragment.bytes);
                    let now = self.engine.now();
                    let wait = now - fragment.ordered - unloaded;
                    self.measures.arrived(now, fragment.bytes, wait);
                    self.end(&fragment, false);
                }
                Outcome::Lost(fragment) => {
                    self.measures.lost();
                    self.end(&fragment, true);
                }
            }
        }
    }

    fn obey(&mut self) {
        // Neither loop adds orders: outcomes wait in their queue.
        for (delay, note) in self.orders.notes.drain(..) {
            self.engine.after(delay, Event::Note(note));
        }
        let mut sends = std::mem::take(&mut self.orders.sends);
        for Note {
            event,
            source,
            node,
        } in sends.drain(..)
        {
            self.open(event);
            let fragment = Fragment {
                ordered: self.engine.now(),
                event,
                bytes: self.parts.sizes.of(event, source),
                source,
                node,
            };
            let mut agenda = Agenda::new(&mut self.engine, &mut self.outcomes);
            self.parts.network.send(fragment, &mut agenda);
        }
        self.orders.sends = sends;
    }

    fn end(&mut self, fragment: &Fragment, lost: bool) {
        let now = self.engine.now();
        if let Some(open) = self.open.get_mut((fragment.event - self.first) as usize) {
            open.ended += 1;
            open.lost += u16::from(lost);
            if open.ended == self.parts.fragments {
                self.over += 1;
                self.measures.built(now, now - open.born, open.lost == 0);
            }
        }
        let before = self.first;
        let all = self.parts.fragments;
        while self.open.front().is_some_and(|open| open.ended == all) {
            self.open.pop_front();
            self.first += 1;
        }
        self.parts.policy.ended(fragment, &mut self.orders);
        if self.first > before {
            self.parts.policy.settled(self.first, &mut self.orders);
        }
    }
}
