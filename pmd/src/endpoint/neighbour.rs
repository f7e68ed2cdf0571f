//! MAC address and port of the host that answers are sent to.

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};

use super::port_endpoint::PortEndpoint;
use crate::net::{ArpTable, MacAddr, UdpEndpoint, UdpTemplate};

/// How answers reach a [`Neighbour`].
#[derive(Clone, Debug)]
pub struct Route {
    /// Ethernet, IP and UDP headers of the answers.
    pub headers: UdpTemplate,
    /// Index of the port to send them on.
    pub port: usize,
}

/// The host that answers are sent to. Its MAC address and its port are learned from its ARP packets
/// and its datagrams, and follow it: the last frame counts, as the host may change its network card or
/// its cable.
pub struct Neighbour {
    arp: ArpTable,
    to: SocketAddrV4,
    from: SocketAddrV4,
    mac: Option<MacAddr>,
    /// Index of the port on which it was heard last.
    port: usize,
    /// The MAC address was configured and is never replaced.
    is_static: bool,
    /// The route has changed since it was last taken.
    is_changed: bool,
}

impl Neighbour {
    /// The neighbour with the address `to`, for answers from the address `from`. With a configured MAC
    /// address nothing is learned, and answers leave by the port with the index `port`.
    #[must_use]
    pub fn new(to: SocketAddrV4, from: SocketAddrV4, mac: Option<MacAddr>, port: usize) -> Self {
        Self {
            arp: ArpTable::new(&[*to.ip()]),
            to,
            from,
            mac,
            port,
            is_static: mac.is_some(),
            is_changed: mac.is_some(),
        }
    }

    /// Its IP address, while its MAC address is unknown.
    #[must_use]
    pub fn unresolved(&self) -> Option<Ipv4Addr> {
        self.mac.is_none().then_some(*self.to.ip())
    }

    #[inline]
    fn learn(&mut self, mac: MacAddr, port: usize) {
        let known = self.mac == Some(mac) && self.port == port;
        if !known && !self.is_static && mac.is_unicast() {
            (self.mac, self.port, self.is_changed) = (Some(mac), port, true);
        }
    }

    /// Learns from a datagram that came from the address `source` on the port with this index.
    #[inline]
    pub fn observe_datagram(&mut self, source: IpAddr, frame: &[u8], port: usize) {
        if source == IpAddr::V4(*self.to.ip())
            && let Some(&[.., a, b, c, d, e, f]) = frame.first_chunk::<12>()
        {
            self.learn(MacAddr([a, b, c, d, e, f]), port);
        }
    }

    /// Learns from an ARP packet; returns whether it was sent by the neighbour.
    pub fn observe_arp(&mut self, frame: &[u8], port: usize) -> bool {
        let learned = self.arp.observe(frame);
        if learned && let Some(mac) = self.arp.lookup(*self.to.ip()) {
            self.learn(mac, port);
        }
        learned
    }

    /// The route, once after each change.
    #[inline]
    pub fn take_route(&mut self, endpoints: &[PortEndpoint]) -> Option<Route> {
        if !self.is_changed {
            return None;
        }
        self.is_changed = false;
        let sends = PortEndpoint::can_send;
        // A recording cannot send: a neighbour heard there is answered by the first port that can.
        let port = if endpoints.get(self.port).is_some_and(sends) {
            self.port
        } else {
            endpoints.iter().position(sends)?
        };
        let from = UdpEndpoint {
            mac: endpoints.get(port)?.mac(),
            socket: self.from,
        };
        let to = UdpEndpoint {
            mac: self.mac?,
            socket: self.to,
        };
        Some(Route {
            headers: UdpTemplate::new(from, to),
            port,
        })
    }
}
