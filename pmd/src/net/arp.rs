//! Neighbour table: MAC addresses of the peers that a loop sends to, learned by ARP.

use std::net::Ipv4Addr;

use super::headers::{ArpPacket, ETHERTYPE_ARP};
use super::parse::{link_layer, view};
use super::{MacAddr, Reject};

/// MAC addresses of a fixed set of peers, learned from the ARP packets they send.
///
/// The table has entries for the peers named at the start only, so a flood of requests from other
/// hosts cannot evict one. The set is small (destinations of answers), and the search is linear.
#[derive(Debug, Clone)]
pub struct ArpTable {
    peers: Box<[(Ipv4Addr, Option<MacAddr>)]>,
}

impl ArpTable {
    /// A table for `peers`, all of them unresolved.
    #[must_use]
    pub fn new(peers: &[Ipv4Addr]) -> Self {
        Self {
            peers: peers.iter().map(|&ip| (ip, None)).collect(),
        }
    }

    /// The MAC address of a peer, if it is resolved.
    #[must_use]
    pub fn lookup(&self, ip: Ipv4Addr) -> Option<MacAddr> {
        self.peers.iter().find(|(peer, _)| *peer == ip)?.1
    }

    /// Stores the MAC address of `ip`. False if `ip` is not a peer, or `mac` not a unicast address.
    pub fn learn(&mut self, ip: Ipv4Addr, mac: MacAddr) -> bool {
        if !mac.is_unicast() {
            return false;
        }
        match self.peers.iter_mut().find(|(peer, _)| *peer == ip) {
            Some((_, known)) => {
                *known = Some(mac);
                true
            }
            None => false,
        }
    }

    /// Learns the sender of an ARP packet, request or reply (RFC 826, "merge"). Ignores other
    /// frames, malformed ones and probes. True if a peer was learned.
    pub fn observe(&mut self, frame: &[u8]) -> bool {
        arp_packet(frame).is_ok_and(|(arp, _)| self.learn(arp.sender_ip.into(), arp.sender_mac))
    }

    /// Unresolved peers, for which an ARP request is due.
    pub fn unresolved(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.peers
            .iter()
            .filter(|(_, mac)| mac.is_none())
            .map(|(ip, _)| *ip)
    }
}

/// The ARP packet of IPv4 over Ethernet in a frame, and its offset.
pub(super) fn arp_packet(frame: &[u8]) -> Result<(&ArpPacket, usize), Reject> {
    let (ethertype, at) = link_layer(frame)?;
    if ethertype != ETHERTYPE_ARP {
        return Err(Reject::Unsupported);
    }
    let arp: &ArpPacket = view(frame, at)?;
    if !arp.is_ipv4_over_ethernet() {
        return Err(Reject::Unsupported);
    }
    Ok((arp, at))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::net::Responder;

    const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
    const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 9]);

    #[test]
    fn only_peers_are_learned() {
        let mut table = ArpTable::new(&[PEER]);
        assert_eq!(table.unresolved().collect::<Vec<_>>(), [PEER]);
        assert_eq!(table.lookup(PEER), None);
        assert!(!table.learn(Ipv4Addr::new(10, 0, 0, 8), MAC));
        assert!(!table.learn(PEER, MacAddr::BROADCAST));
        assert!(!table.learn(PEER, MacAddr::ZERO));
        assert!(table.learn(PEER, MAC));
        assert_eq!(table.lookup(PEER), Some(MAC));
        assert_eq!(table.unresolved().count(), 0);
    }

    #[test]
    fn a_request_from_the_peer_teaches() {
        let mut table = ArpTable::new(&[PEER]);
        let mut frame = [0; 60];
        let len = Responder::new(MAC, PEER)
            .request(Ipv4Addr::new(10, 0, 0, 1), &mut frame)
            .unwrap();
        assert!(!table.observe(&frame[..41]), "truncated");
        assert!(table.observe(&frame[..len]));
        assert_eq!(table.lookup(PEER), Some(MAC));
        frame[12] = 0x86;
        assert!(!ArpTable::new(&[PEER]).observe(&frame), "not ARP");
    }
}
