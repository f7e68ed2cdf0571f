//! A crossbar without buffers inside: a fragment occupies its input and its output from its first to
//! its last byte (Myrinet, for example).

use std::collections::VecDeque;

use super::agenda::{Agenda, Fragment, Network, Outcome};
use super::link::Link;
use crate::time::Time;

/// A crossbar between sources and nodes.
///
/// In order, an input is a FIFO: its first fragment waits for its output, and the others behind it;
/// an output serves inputs in the order in which they asked (M. Karol, M. Hluchyj, S. Morgan, IEEE
/// Trans. Commun. 35 (1987) 1347). Otherwise an input sends the oldest fragment whose output is
/// idle.
#[derive(Debug)]
pub struct Crossbar {
    link: Link,
    in_order: bool,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
}

#[derive(Debug, Default)]
struct Input {
    sending: Option<Fragment>,
    queue: VecDeque<Fragment>,
    /// In order: whether the first fragment waits at its output.
    waits: bool,
}

#[derive(Debug, Default)]
struct Output {
    busy: bool,
    /// Inputs that ask for it. In order: with their first fragment; otherwise with any.
    asked: VecDeque<u16>,
}

/// The input has sent its fragment.
#[derive(Clone, Copy, Debug, Hash)]
pub struct Done(u16);

impl Crossbar {
    /// An empty crossbar.
    #[must_use]
    pub fn new(sources: u16, nodes: u16, link: Link, in_order: bool) -> Self {
        Self {
            link,
            in_order,
            inputs: (0..sources).map(|_| Input::default()).collect(),
            outputs: (0..nodes).map(|_| Output::default()).collect(),
        }
    }

    /// Starts the fragment at `at` of an idle input's queue; its output is idle too.
    fn start(&mut self, source: u16, at: usize, agenda: &mut Agenda<'_, Done>) {
        let input = &mut self.inputs[usize::from(source)];
        let Some(fragment) = input.queue.remove(at) else {
            return;
        };
        input.sending = Some(fragment);
        input.waits = false;
        self.outputs[usize::from(fragment.node)].busy = true;
        agenda.after(self.link.time(fragment.bytes.into()), Done(source));
    }

    /// An idle input starts its first fragment, or asks for its output.
    fn start_first(&mut self, source: u16, agenda: &mut Agenda<'_, Done>) {
        let input = &mut self.inputs[usize::from(source)];
        let Some(first) = input.queue.front() else {
            return;
        };
        let output = &mut self.outputs[usize::from(first.node)];
        if output.busy {
            output.asked.push_back(source);
            input.waits = true;
        } else {
            self.start(source, 0, agenda);
        }
    }

    /// An idle input starts the oldest fragment whose output is idle.
    fn start_any(&mut self, source: u16, agenda: &mut Agenda<'_, Done>) {
        let outputs = &mut self.outputs;
        let queue = &self.inputs[usize::from(source)].queue;
        let idle = |fragment: &Fragment| !outputs[usize::from(fragment.node)].busy;
        let Some((at, node)) = queue.iter().position(idle).map(|at| (at, queue[at].node)) else {
            return;
        };
        let asked = &mut outputs[usize::from(node)].asked;
        if let Some(entry) = asked.iter().position(|&other| other == source) {
            asked.remove(entry);
        }
        self.start(source, at, agenda);
    }

    /// An idle output is given the oldest fragment whose input is idle.
    fn serve_any(&mut self, node: u16, agenda: &mut Agenda<'_, Done>) {
        let asked = &mut self.outputs[usize::from(node)].asked;
        let inputs = &self.inputs;
        let idle = |&source: &u16| inputs[usize::from(source)].sending.is_none();
        let Some(source) = asked.iter().position(idle).and_then(|at| asked.remove(at)) else {
            return;
        };
        let queue = &self.inputs[usize::from(source)].queue;
        if let Some(at) = queue.iter().position(|fragment| fragment.node == node) {
            self.start(source, at, agenda);
        }
    }
}

impl Network for Crossbar {
    type Event = Done;

    fn send(&mut self, fragment: Fragment, agenda: &mut Agenda<'_, Done>) {
        let source = fragment.source;
        let input = &mut self.inputs[usize::from(source)];
        input.queue.push_back(fragment);
        let idle = input.sending.is_none();
        if self.in_order {
            if idle && !input.waits {
                self.start_first(source, agenda);
            }
            return;
        }
        let output = &mut self.outputs[usize::from(fragment.node)];
        if idle && !output.busy {
            let last = input.queue.len() - 1;
            self.start(source, last, agenda);
        } else {
            output.asked.push_back(source);
        }
    }

    fn handle(&mut self, Done(source): Done, agenda: &mut Agenda<'_, Done>) {
        let Some(fragment) = self.inputs[usize::from(source)].sending.take() else {
            return;
        };
        let node = usize::from(fragment.node);
        self.outputs[node].busy = false;
        agenda.report(Outcome::Sent(fragment));
        agenda.report(Outcome::Arrived(fragment));
        if self.in_order {
            if let Some(next) = self.outputs[node].asked.pop_front() {
                self.start(next, 0, agenda);
            }
            self.start_first(source, agenda);
        } else {
            self.start_any(source, agenda);
            if !self.outputs[node].busy {
                self.serve_any(fragment.node, agenda);
            }
        }
    }

    fn link(&self) -> Link {
        self.link
    }

    fn unloaded(&self, bytes: u32) -> Time {
        self.link.time(bytes.into())
    }
}
