//! By which transmit queue each member is reached.

use super::error::CarrierError;
use crate::role::Address;
use crate::topology::Topology;

/// By which transmit queue each member is reached, or sends.
#[derive(Clone, Debug)]
pub struct Routes {
    feeders: usize,
    nodes: usize,
    pub(super) ways: Box<[u16]>,
    pub(super) by_sender: bool,
    /// The way that leads back to the loop itself, where the others lead to a switch.
    own: Option<u16>,
}

impl Routes {
    /// All members are reached by the first queue.
    #[must_use]
    pub fn new(topology: &Topology) -> Self {
        let (feeders, nodes) = (topology.feeders(), topology.nodes());
        Self {
            feeders,
            nodes,
            ways: vec![0; 2 + feeders + nodes].into(),
            by_sender: false,
            own: None,
        }
    }

    /// All members are reached by the first queue, over a switch, but those of the loop itself, which
    /// are to be set to the way `own`: a switch returns no frame to where it came from. Of the frames
    /// that arrive, those for members of the loop alone are taken. Messages of several senders share
    /// frames; each sender begins one after a sign of life, from which the switch learns where it is.
    #[must_use]
    pub fn over_switch(topology: &Topology, own: u16) -> Self {
        Self {
            own: Some(own),
            ..Self::new(topology)
        }
    }

    /// Each member of the loop has a queue of its own, by which it reaches all others: the routes
    /// are those of the senders.
    #[must_use]
    pub fn by_sender(topology: &Topology) -> Self {
        Self {
            by_sender: true,
            ..Self::new(topology)
        }
    }

    /// A member is reached by another queue, or sends by it.
    ///
    /// # Errors
    /// A member that the farm does not have.
    pub fn set(&mut self, member: Address, way: u16) -> Result<(), CarrierError> {
        let place = self.place(member).ok_or(CarrierError::NoMember(member))?;
        self.ways[place] = way;
        Ok(())
    }

    /// Whether the member at a place is reached over a switch that others of the loop use too.
    #[inline]
    pub(super) fn is_over_switch(&self, place: usize) -> bool {
        self.own.is_some_and(|own| self.ways[place] != own)
    }

    /// Whether the member at a place is of the loop, and reached by others over a switch.
    pub(super) fn is_own(&self, place: usize) -> bool {
        self.own.is_some_and(|own| self.ways[place] == own)
    }

    /// The member at a place.
    pub(super) fn member(&self, place: usize) -> Option<Address> {
        let member = match place.checked_sub(2) {
            None if place == 0 => Address::Scheduler,
            None => Address::Results,
            Some(feeder) if feeder < self.feeders => Address::Feeder(feeder as u8),
            Some(other) => Address::Node((other - self.feeders) as u16),
        };
        (self.place(member) == Some(place)).then_some(member)
    }

    /// Whether frames for a member are for the loop.
    pub(super) fn is_here(&self, member: Address) -> bool {
        let way = || self.place(member).map(|place| self.ways[place]);
        self.own.is_none_or(|own| way() == Some(own))
    }

    /// The place of a member in a list of all.
    #[inline]
    pub(super) fn place(&self, member: Address) -> Option<usize> {
        match member {
            Address::Scheduler => Some(0),
            Address::Results => Some(1),
            Address::Feeder(feeder) => {
                let feeder = usize::from(feeder);
                (feeder < self.feeders).then_some(2 + feeder)
            }
            Address::Node(node) => {
                let node = usize::from(node);
                (node < self.nodes).then_some(2 + self.feeders + node)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_member_has_a_place_of_its_own() {
        let topology = Topology::regular(3, 2, 4, 2).unwrap();
        let routes = Routes::over_switch(&topology, 1);
        let members = (0..9).map(|place| routes.member(place));
        let feeders = (0..3).map(Address::Feeder);
        let nodes = (0..4).map(Address::Node);
        let all = [Address::Scheduler, Address::Results].into_iter();
        assert!(members.eq(all.chain(feeders).chain(nodes).map(Some)));
        assert_eq!(routes.member(9), None);
    }
}
