//! An Ethernet switch that stores and forwards, with a bounded queue at each output.

use std::collections::VecDeque;

use super::agenda::{Agenda, Fragment, Network, Outcome};
use super::link::Link;
use crate::time::Time;

/// A switch between sources and nodes. A fragment is one frame. A frame that its output's queue has
/// no room for is dropped.
#[derive(Debug)]
pub struct Ethernet {
    link: Link,
    /// From the last bit on a source's link to the output's queue.
    latency: Time,
    /// Room of the queue of an output. The frame that is being sent counts.
    buffer: u64,
    sources: Vec<Source>,
    outputs: Vec<Output>,
    peak: u64,
}

#[derive(Debug, Default)]
struct Source {
    /// The first is being sent.
    queue: VecDeque<Fragment>,
    /// Between source and output.
    flying: VecDeque<Fragment>,
}

#[derive(Debug, Default)]
struct Output {
    queue: VecDeque<Fragment>,
    bytes: u64,
}

/// Steps of a frame.
#[derive(Clone, Copy, Debug, Hash)]
pub enum Step {
    /// The source has sent its frame.
    Sent(u16),
    /// The frame reaches the queue of its output.
    Queued(u16),
    /// The output has sent its frame to the node.
    Received(u16),
}

impl Ethernet {
    /// An idle switch, whose outputs have a queue of so many bytes each.
    #[must_use]
    pub fn new(ports: u16, link: Link, latency: Time, buffer: u64) -> Self {
        Self {
            link,
            latency,
            buffer,
            sources: (0..ports).map(|_| Source::default()).collect(),
            outputs: (0..ports).map(|_| Output::default()).collect(),
            peak: 0,
        }
    }

    fn start(&self, bytes: u32, step: Step, agenda: &mut Agenda<'_, Step>) {
        agenda.after(self.link.time(bytes.into()), step);
    }
}

impl Network for Ethernet {
    type Event = Step;

    fn send(&mut self, fragment: Fragment, agenda: &mut Agenda<'_, Step>) {
        let queue = &mut self.sources[usize::from(fragment.source)].queue;
        queue.push_back(fragment);
        if queue.len() == 1 {
            self.start(fragment.bytes, Step::Sent(fragment.source), agenda);
        }
    }

    fn handle(&mut self, step: Step, agenda: &mut Agenda<'_, Step>) {
        match step {
            Step::Sent(source) => {
                let Source { queue, flying } = &mut self.sources[usize::from(source)];
                let Some(fragment) = queue.pop_front() else {
                    return;
                };
                flying.push_back(fragment);
                agenda.report(Outcome::Sent(fragment));
                agenda.after(self.latency, Step::Queued(source));
                if let Some(next) = queue.front().map(|next| next.bytes) {
                    self.start(next, Step::Sent(source), agenda);
                }
            }
            Step::Queued(source) => {
                let flying = &mut self.sources[usize::from(source)].flying;
                let Some(fragment) = flying.pop_front() else {
                    return;
                };
                let output = &mut self.outputs[usize::from(fragment.node)];
                let bytes = output.bytes + u64::from(fragment.bytes);
                if bytes > self.buffer {
                    agenda.report(Outcome::Lost(fragment));
                    return;
                }
                output.bytes = bytes;
                self.peak = self.peak.max(bytes);
                output.queue.push_back(fragment);
                if output.queue.len() == 1 {
                    self.start(fragment.bytes, Step::Received(fragment.node), agenda);
                }
            }
            Step::Received(node) => {
                let output = &mut self.outputs[usize::from(node)];
                let Some(fragment) = output.queue.pop_front() else {
                    return;
                };
                output.bytes -= u64::from(fragment.bytes);
                agenda.report(Outcome::Arrived(fragment));
                if let Some(next) = output.queue.front().map(|next| next.bytes) {
                    self.start(next, Step::Received(node), agenda);
                }
            }
        }
    }

    fn link(&self) -> Link {
        self.link
    }

    fn unloaded(&self, bytes: u32) -> Time {
        let once = self.link.time(bytes.into());
        once + self.latency + once
    }

    fn peak_bytes(&self) -> Option<u64> {
        Some(self.peak)
    }
}
