//! Neighbours of a rig's wires, and frames between them.

use pollux_card_model::WireFrame;
use pollux_pmd::net::{MacAddr, UDP_HEADERS, UdpEndpoint, UdpTemplate};
/// A port of the card, and a UDP port there.
#[must_use]
pub fn neighbour(which: usize, udp: u16) -> UdpEndpoint {
    let mac = MacAddr([2, 0, 0x4c, 0x4f, 0x4c, which as u8]);
    let socket = std::net::SocketAddrV4::new([10, 0, which as u8, 1].into(), udp);
    UdpEndpoint { mac, socket }
}

/// The peer of a port of the card.
#[must_use]
pub fn peer(which: usize, udp: u16) -> UdpEndpoint {
    let mac = MacAddr([2, 0, 0x4c, 0x4f, 0x4c, 0x80 | which as u8]);
    let socket = std::net::SocketAddrV4::new([10, 0, which as u8, 153].into(), udp);
    UdpEndpoint { mac, socket }
}

/// A datagram from the [`peer`] of a port to the port.
#[must_use]
pub fn datagram(which: usize, source: u16, destination: u16, payload: &[u8]) -> WireFrame {
    let mut bytes = vec![0; UDP_HEADERS];
    bytes.extend_from_slice(payload);
    let template = UdpTemplate::new(peer(which, source), neighbour(which, destination));
    let len = template.write(&mut bytes, payload.len()).unwrap_or(0);
    bytes.resize(len.max(60), 0);
    WireFrame::good(bytes)
}
