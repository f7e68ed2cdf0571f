//! Where datagrams go: the address, and the VLANs that their frames are in.

use std::fmt;
use std::net::IpAddr;
use std::sync::OnceLock;

use pollux_pmd::net::Udp;
use pollux_pmd::net::headers::{ETHERTYPE_QINQ, ETHERTYPE_VLAN};
use serde::Serialize;

/// Destinations of one stream that are kept; of more it is known that there are.
const KEPT: usize = 4;

/// Where the EtherType of an Ethernet frame lies (IEEE 802.3 section 3.1.1).
const ETHERTYPE: usize = 12;
/// Bytes of a tag with its EtherType (IEEE 802.1Q section 9.3).
const TAG: usize = 4;

/// VLAN identifiers of up to two tags, the outermost first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Vlans([Option<u16>; 2]);

impl Vlans {
    /// Those of a frame.
    fn of(frame: &[u8]) -> Self {
        let mut vlans = Self::default();
        let half = |at: usize| {
            let bytes = frame.get(at..)?.first_chunk()?;
            Some(u16::from_be_bytes(*bytes))
        };
        for (n, vlan) in vlans.0.iter_mut().enumerate() {
            let at = ETHERTYPE + n * TAG;
            if !matches!(half(at), Some(ETHERTYPE_VLAN | ETHERTYPE_QINQ)) {
                break;
            }
            // Priority and drop eligibility are in the upper bits.
            *vlan = half(at + 2).map(|control| control & 0xfff);
        }
        vlans
    }

    fn ids(self) -> impl Iterator<Item = u16> {
        self.0.into_iter().flatten()
    }
}

impl Serialize for Vlans {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.ids())
    }
}

/// Where a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Destination {
    dst_ip: IpAddr,
    vlans: Vlans,
}

impl Destination {
    /// Of a datagram, and the first bytes of the frame that it came in.
    pub(super) fn of(udp: &Udp, frame: &[u8]) -> Self {
        Self {
            dst_ip: udp.addresses.dst(),
            vlans: Vlans::of(frame),
        }
    }

    /// The identifiers with dots between, as the tags are nested; `-` without a tag.
    pub(super) fn vlans(&self) -> String {
        let ids: Vec<_> = self.vlans.ids().map(|id| id.to_string()).collect();
        if ids.is_empty() {
            "-".into()
        } else {
            ids.join(".")
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.dst_ip.fmt(f)
    }
}

/// The destinations of a stream in order of first appearance: one loop adds, any thread reads.
#[derive(Default)]
pub(super) struct Destinations {
    kept: [OnceLock<Destination>; KEPT],
    more: OnceLock<()>,
}

impl Destinations {
    /// Adds one, if it is new.
    pub(super) fn add(&self, destination: Destination) {
        for kept in &self.kept {
            if *kept.get_or_init(|| destination) == destination {
                return;
            }
        }
        self.more.get_or_init(|| ());
    }

    pub(super) fn kept(&self) -> Vec<Destination> {
        self.kept.iter().map_while(OnceLock::get).copied().collect()
    }

    /// Whether there are more than those that are kept.
    pub(super) fn has_more(&self) -> bool {
        self.more.get().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(tags: &[[u8; 4]]) -> Vlans {
        let end: &[u8] = &[8, 0, 0x45, 0];
        Vlans::of(&[&[0; 12][..], &tags.concat(), end].concat())
    }

    #[test]
    fn tags_are_read_from_the_outermost() {
        let ids = |tags: &[[u8; 4]]| tagged(tags).ids().collect::<Vec<_>>();
        assert!(ids(&[]).is_empty());
        assert_eq!(ids(&[[0x81, 0, 0xe0, 5]]), [5]);
        assert_eq!(ids(&[[0x88, 0xa8, 0x0f, 0xff], [0x81, 0, 0, 7]]), [4095, 7]);
        assert_eq!(Vlans::of(&[0; 13]), Vlans::default());
        let cut = [&[0; 12][..], &[0x81, 0, 0]].concat();
        assert_eq!(Vlans::of(&cut), Vlans::default());
    }

    #[test]
    fn a_few_destinations_are_kept_each_once() {
        let to = |n: u8| Destination {
            dst_ip: [10, 0, 0, n].into(),
            vlans: Vlans::default(),
        };
        let destinations = Destinations::default();
        for n in [1, 2, 1, 3, 2, 4] {
            destinations.add(to(n));
        }
        assert_eq!(destinations.kept(), [1, 2, 3, 4].map(to));
        assert!(!destinations.has_more());
        destinations.add(to(5));
        assert_eq!(destinations.kept(), [1, 2, 3, 4].map(to));
        assert!(destinations.has_more());
    }
}
