//! Members that the scheduler has not heard yet: events are triggered when all have been heard.

use pollux_farm::message::{Alive, Member, Message};
use pollux_farm::topology::Topology;

/// Members that have not been heard.
#[derive(Clone, Debug)]
pub struct Awaited {
    feeders: Box<[bool]>,
    nodes: Box<[bool]>,
    results: bool,
    left: usize,
}

impl Awaited {
    /// All members but the scheduler.
    pub fn all(topology: &Topology) -> Self {
        let (feeders, nodes) = (topology.feeders(), topology.nodes());
        Self {
            feeders: vec![true; feeders].into(),
            nodes: vec![true; nodes].into(),
            results: true,
            left: feeders + nodes + 1,
        }
    }

    /// Takes note of a sign of life.
    pub fn hear(&mut self, message: &Message) {
        let Message::Alive(Alive { from, .. }) = message else {
            return;
        };
        let member = match *from {
            Member::Feeder(feeder) => self.feeders.get_mut(usize::from(feeder)),
            Member::Node(node) => self.nodes.get_mut(usize::from(node)),
            Member::Results => Some(&mut self.results),
        };
        if let Some(awaited) = member {
            self.left -= usize::from(std::mem::take(awaited));
        }
    }

    /// Those that have not been heard.
    pub fn members(&self) -> impl Iterator<Item = Member> {
        let feeders = (0..).zip(&self.feeders).filter(|&(_, &awaited)| awaited);
        let feeders = feeders.map(|(feeder, _)| Member::Feeder(feeder));
        let nodes = (0..).zip(&self.nodes).filter(|&(_, &awaited)| awaited);
        let nodes = nodes.map(|(node, _)| Member::Node(node));
        let results = self.results.then_some(Member::Results);
        feeders.chain(nodes).chain(results)
    }

    /// How many have not been heard.
    pub fn left(&self) -> usize {
        self.left
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_member_is_heard_once() {
        let mut awaited = Awaited::all(&Topology::regular(2, 1, 3, 1).unwrap());
        let members = [
            (Member::Feeder(1), 5),
            (Member::Feeder(1), 5),
            (Member::Feeder(2), 5),
            (Member::Node(2), 4),
            (Member::Node(3), 4),
            (Member::Results, 3),
            (Member::Results, 3),
            (Member::Node(0), 2),
            (Member::Node(1), 1),
            (Member::Feeder(0), 0),
        ];
        assert_eq!(awaited.left(), 6);
        for (from, left) in members {
            awaited.hear(&Message::Alive(Alive { run: 1, from }));
            assert_eq!(awaited.left(), left, "{from:?}");
            assert_eq!(awaited.members().count(), left);
            assert!(awaited.members().all(|member| member != from));
        }
    }
}
