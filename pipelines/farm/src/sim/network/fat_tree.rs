//! A two-level fat tree without loss: links with credits, virtual cut-through, D-mod-k routes.

use std::collections::VecDeque;

use super::agenda::{Agenda, Fragment, Network, Outcome};
use super::link::Link;
use crate::time::Time;

/// Dimensions of a fat tree.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Servers, each a source and a node.
    pub servers: u16,
    /// Servers of each leaf switch; also the number of spine switches, so that the bisection is full.
    pub leaf: u16,
    /// Rate of each link.
    pub link: Link,
    /// Latency of a link and of the switch at its end, for the first byte.
    pub hop: Time,
    /// Largest segment, the unit in which links are shared.
    pub segment: u32,
    /// Room of the buffer at a switch's input, at least a segment.
    pub buffer: u32,
    /// Whether an adapter sends its fragments one after another, and not segments of all in turns.
    pub in_order: bool,
}

/// Servers at leaf switches, each of which has a link to each spine switch.
///
/// A switch puts the segments of its input buffers into a queue for each link. A link sends the first
/// of its queue when it is idle and the buffer at its end has room (the credit). The spine of a route is the destination modulo the number of
/// spines: a shift, where server i sends to i + p, meets no other flow on any link (E. Zahavi,
/// D-Mod-K routing, Technion CCIT 776, 2010).
#[derive(Debug)]
pub struct FatTree {
    shape: Shape,
    leaves: u16,
    links: Vec<Channel>,
    /// Adapters of the servers.
    adapters: Vec<VecDeque<Cut>>,
    peak: u64,
}

/// A fragment at its adapter, and how much of it has been sent.
#[derive(Clone, Copy, Debug)]
struct Cut {
    fragment: Fragment,
    left: u32,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    fragment: Fragment,
    bytes: u32,
    last: bool,
}

/// A link and the input buffer at its end.
#[derive(Debug)]
struct Channel {
    /// Where the segment that it sends comes from.
    sending: Option<(Input, Segment)>,
    /// Segments that wait for it, with the input buffers that hold them.
    queue: VecDeque<(u32, Segment)>,
    /// Segments whose first byte is under way.
    flying: VecDeque<Segment>,
    /// Room that is left in the buffer.
    credit: u32,
}

/// Input of a link.
#[derive(Clone, Copy, Debug)]
enum Input {
    Adapter,
    /// Buffer at the end of this link.
    Buffer(u32),
}

/// What happens at a link.
#[derive(Clone, Copy, Debug, Hash)]
pub enum Step {
    /// The first byte of a segment reaches the buffer at its end.
    Head(u32),
    /// The last byte has left its beginning.
    Tail(u32),
    /// The last byte has reached the server at its end.
    Landed(u32),
}

impl FatTree {
    /// An idle network. `servers` is a multiple of `leaf`.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let leaves = shape.servers / shape.leaf.max(1);
        let channel = || Channel {
            sending: None,
            queue: VecDeque::new(),
            flying: VecDeque::new(),
            credit: shape.buffer,
        };
        Self {
            shape,
            leaves,
            // Up to the leaf and up to the spine, down to the leaf and down to the server: as many of
            // each as there are servers.
            links: (0..4 * u32::from(shape.servers))
                .map(|_| channel())
                .collect(),
            adapters: (0..shape.servers).map(|_| VecDeque::new()).collect(),
            peak: 0,
        }
    }

    fn servers(&self) -> u32 {
        self.shape.servers.into()
    }

    /// The link that follows `link` on the way to `node`.
    fn next(&self, link: u32, node: u16) -> u32 {
        let (n, leaf) = (self.servers(), u32::from(self.shape.leaf));
        let node = u32::from(node);
        let home = node / leaf;
        let down = 3 * n + node;
        match link / n {
            0 if link / leaf == home => down,
            0 => n + link / leaf * leaf + node % leaf,
            1 => 2 * n + (link - n) % leaf * u32::from(self.leaves) + home,
            _ => down,
        }
    }

    /// Whether the link ends at a server, which takes whatever comes.
    fn ends_at_server(&self, link: u32) -> bool {
        link >= 3 * self.servers()
    }

    /// An idle link takes the segment that waits longest, if the credit allows.
    fn serve(&mut self, link: u32, agenda: &mut Agenda<'_, Step>) {
        if link < self.servers() {
            return self.serve_adapter(link, agenda);
        }
        let to_server = self.ends_at_server(link);
        let channel = &mut self.links[link as usize];
        let Some(&(input, segment)) = channel.queue.front() else {
            return;
        };
        if channel.sending.is_none() && (to_server || channel.credit >= segment.bytes) {
            channel.queue.pop_front();
            self.start(link, Input::Buffer(input), segment, agenda);
        }
    }

    /// As [`serve`](Self::serve), for the link of an adapter.
    fn serve_adapter(&mut self, link: u32, agenda: &mut Agenda<'_, Step>) {
        let (channel, queue) = (
            &self.links[link as usize],
            &mut self.adapters[link as usize],
        );
        if channel.sending.is_some() {
            return;
        }
        let Some(first) = queue.front_mut() else {
            return;
        };
        let bytes = first.left.min(self.shape.segment);
        if channel.credit < bytes {
            return;
        }
        first.left -= bytes;
        let segment = Segment {
            fragment: first.fragment,
            bytes,
            last: first.left == 0,
        };
        if segment.last {
            queue.pop_front();
        } else if !self.shape.in_order {
            queue.rotate_left(1);
        }
        self.start(link, Input::Adapter, segment, agenda);
    }

    fn start(&mut self, link: u32, from: Input, segment: Segment, agenda: &mut Agenda<'_, Step>) {
        let to_server = self.ends_at_server(link);
        let channel = &mut self.links[link as usize];
        channel.sending = Some((from, segment));
        channel.flying.push_back(segment);
        let time = self.shape.link.time(segment.bytes.into());
        agenda.after(time, Step::Tail(link));
        if to_server {
            agenda.after(self.shape.hop + time, Step::Landed(link));
        } else {
            channel.credit -= segment.bytes;
            self.peak = self.peak.max((self.shape.buffer - channel.credit).into());
            agenda.after(self.shape.hop, Step::Head(link));
        }
    }
}

impl Network for FatTree {
    type Event = Step;

    fn send(&mut self, fragment: Fragment, agenda: &mut Agenda<'_, Step>) {
        self.adapters[usize::from(fragment.source)].push_back(Cut {
            fragment,
            left: fragment.bytes,
        });
        self.serve_adapter(fragment.source.into(), agenda);
    }

    fn handle(&mut self, step: Step, agenda: &mut Agenda<'_, Step>) {
        match step {
            Step::Head(link) => {
                let Some(segment) = self.links[link as usize].flying.pop_front() else {
                    return;
                };
                let next = self.next(link, segment.fragment.node);
                self.links[next as usize].queue.push_back((link, segment));
                self.serve(next, agenda);
            }
            Step::Tail(link) => {
                let Some((from, segment)) = self.links[link as usize].sending.take() else {
                    return;
                };
                match from {
                    Input::Adapter if segment.last => {
                        agenda.report(Outcome::Sent(segment.fragment));
                    }
                    Input::Adapter => {}
                    Input::Buffer(input) => {
                        self.links[input as usize].credit += segment.bytes;
                        self.serve(input, agenda);
                    }
                }
                self.serve(link, agenda);
            }
            Step::Landed(link) => {
                let landed = self.links[link as usize].flying.pop_front();
                if let Some(segment) = landed.filter(|segment| segment.last) {
                    agenda.report(Outcome::Arrived(segment.fragment));
                }
            }
        }
    }

    fn link(&self) -> Link {
        self.shape.link
    }

    /// The longest way, over a spine.
    fn unloaded(&self, bytes: u32) -> Time {
        let Shape { hop, link, .. } = self.shape;
        link.time(bytes.into()) + hop + hop + hop + hop
    }

    fn peak_bytes(&self) -> Option<u64> {
        Some(self.peak)
    }
}
