//! Receivers ask: a node takes an event when it has credit, and asks the sources for its fragments.

use super::rules::{Orders, Policy, Traffic};
use crate::sim::network::{Fragment, Note};
use crate::time::Time;

/// Nodes with a number of fragments each that they have asked for and not received: the builder
/// units of CMS, the grants of Homa.
///
/// A free node takes the next event, and asks the sources in turn. At one place of the turn each node
/// asks another source. A node begins at the furthest place that a node has reached: nodes in step
/// do not meet at a source.
#[derive(Debug)]
pub struct Credits {
    traffic: Traffic,
    sources: u16,
    /// A request's way to a source.
    hop: Time,
    available: u32,
    next: u32,
    nodes: Vec<Node>,
    /// The furthest place in the turn that a node has reached.
    place: u32,
    /// Where the search for a node for the next event begins.
    turn: u16,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    credit: u32,
    event: u32,
    /// Sources that it has asked for this event.
    asked: u16,
    /// Place in the turn of the sources, counted from the start.
    place: u32,
}

impl Credits {
    /// Nodes that ask for so many fragments ahead.
    #[must_use]
    pub fn new(traffic: Traffic, sources: u16, nodes: u16, hop: Time, outstanding: u32) -> Self {
        let node = Node {
            credit: outstanding,
            event: 0,
            asked: sources,
            place: 0,
        };
        Self {
            traffic,
            sources,
            hop,
            available: 0,
            next: 0,
            nodes: vec![node; nodes.into()],
            place: 0,
            turn: 0,
        }
    }

    /// The node asks as long as it has credit, and there is something to ask for.
    fn ask(&mut self, number: u16, orders: &mut Orders) {
        let Some(mut node) = self.nodes.get(usize::from(number)).copied() else {
            return;
        };
        while node.credit > 0 {
            let (event, source) = match self.traffic {
                Traffic::Uniform(sizes) => {
                    let event = self.next;
                    self.next += 1;
                    (event, sizes.pick(event, number, self.sources))
                }
                Traffic::Building => {
                    if node.asked == self.sources {
                        if self.next == self.available {
                            break;
                        }
                        node.event = self.next;
                        node.asked = 0;
                        node.place = self.place;
                        self.next += 1;
                    }
                    node.asked += 1;
                    node.place = node.place.wrapping_add(1);
                    self.place = self.place.max(node.place);
                    let source =
                        (u64::from(number) + u64::from(node.place)) % u64::from(self.sources);
                    (node.event, source as u16)
                }
            };
            node.credit -= 1;
            let note = Note {
                event,
                source,
                node: number,
            };
            if self.hop == Time::ZERO {
                orders.sends.push(note);
            } else {
                orders.note(self.hop, note);
            }
        }
        self.nodes[usize::from(number)] = node;
    }
}

impl Policy for Credits {
    fn available(&mut self, events: u32, orders: &mut Orders) {
        self.available = events;
        let nodes = self.nodes.len() as u16;
        for _ in 0..nodes {
            let number = self.turn % nodes;
            self.turn = (number + 1) % nodes;
            self.ask(number, orders);
            if self.next == self.available {
                break;
            }
        }
    }

    fn noted(&mut self, note: Note, orders: &mut Orders) {
        orders.sends.push(note);
    }

    fn ended(&mut self, fragment: &Fragment, orders: &mut Orders) {
        if let Some(node) = self.nodes.get_mut(usize::from(fragment.node)) {
            node.credit += 1;
        }
        self.ask(fragment.node, orders);
    }

    fn is_unordered(&self) -> bool {
        true
    }
}
