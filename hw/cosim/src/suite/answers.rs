//! The card's answers, and its ARP requests.

use pollux_card_model::registers::port;
use pollux_card_model::{FrameEnd, SimulatedCard, WireFrame};
use pollux_pmd::net::Checksum;

use super::support::{Make, count, end, rig, sent};
use crate::rig::{neighbour, peer};

/// The checksum of the bytes (RFC 1071).
pub(super) fn sum(pieces: &[&[u8]]) -> u16 {
    let mut sum = Checksum::new();
    for piece in pieces {
        sum.add(piece);
    }
    sum.finish()
}

/// An Ethernet header from the peer of port 0 to it, or to all.
fn ethernet(to_all: bool, kind: u16) -> Vec<u8> {
    let to = if to_all {
        [0xff; 6]
    } else {
        neighbour(0, 0).mac.0
    };
    [&to[..], &peer(0, 0).mac.0, &kind.to_be_bytes()].concat()
}

/// An ARP packet from the peer of port 0.
pub(super) fn arp(operation: u8, to_all: bool) -> Vec<u8> {
    let (us, them) = (neighbour(0, 0), peer(0, 0));
    let mut frame = ethernet(to_all, 0x0806);
    frame.extend([0, 1, 8, 0, 6, 4, 0, operation]);
    frame.extend(them.mac.0);
    frame.extend(them.socket.ip().octets());
    frame.extend(if operation == 1 { [0; 6] } else { us.mac.0 });
    frame.extend(us.socket.ip().octets());
    frame.resize(60, 0);
    frame
}

pub(super) fn ping(len: usize) -> Vec<u8> {
    let (us, them) = (neighbour(0, 0), peer(0, 0));
    let mut ip = vec![0x45, 0];
    ip.extend((28 + len as u16).to_be_bytes());
    ip.extend([0x12, 0x34, 0, 0, 55, 1, 0, 0]);
    ip.extend(them.socket.ip().octets());
    ip.extend(us.socket.ip().octets());
    let header = sum(&[&ip]);
    ip[10..12].copy_from_slice(&header.to_be_bytes());
    let mut icmp = vec![8, 0, 0, 0, 0xab, 0xcd, 0, 3];
    icmp.extend((0..len).map(|i| i as u8));
    let own = sum(&[&icmp]);
    icmp[2..4].copy_from_slice(&own.to_be_bytes());
    let mut frame = [ethernet(false, 0x0800), ip, icmp].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

/// The answer's required form: with its data, its addresses swapped.
pub fn pings_and_arp_are_answered<C: SimulatedCard>(make: Make<'_, C>) {
    let rig = rig(make);
    rig.enable(0);
    for len in [0, 1, 56, 1400] {
        rig.put(0, WireFrame::good(ping(len)));
        rig.advance(5_000_000);
        let [answer] = &sent(&rig, 0)[..] else {
            panic!("no answer to a ping of {len} bytes, or several");
        };
        assert_eq!(answer.end, FrameEnd::Good);
        let bytes = &answer.bytes;
        let asked = ping(len);
        assert_eq!((&bytes[..6], &bytes[6..12]), (&asked[6..12], &asked[..6]));
        assert_eq!(
            (&bytes[26..30], &bytes[30..34]),
            (&asked[30..34], &asked[26..30])
        );
        assert_eq!(sum(&[&bytes[14..34]]), 0, "header");
        assert_eq!(bytes[34..36], [0, 0]);
        assert_eq!(sum(&[&bytes[34..42 + len]]), 0, "message");
        assert_eq!(bytes[38..42 + len], asked[38..42 + len]);
    }
    rig.put(0, WireFrame::good(arp(1, true)));
    rig.advance(5_000_000);
    let answers = sent(&rig, 0);
    assert_eq!(answers.len(), 1);
    let bytes = &answers[0].bytes;
    assert_eq!(bytes[..6], peer(0, 0).mac.0);
    assert_eq!(bytes[20..22], [0, 2]);
    assert_eq!(bytes[22..28], neighbour(0, 0).mac.0);
    assert_eq!(bytes[28..32], neighbour(0, 0).socket.ip().octets());
    assert_eq!(bytes.len(), 60, "padded");
    assert_eq!(count(&rig, 0, port::ECHO_FRAMES), 4);
    assert_eq!(count(&rig, 0, port::ARP_FRAMES), 1);
    // Bad ones are not answered.
    let mut bad = ping(20);
    bad[45] ^= 1;
    rig.put(0, WireFrame::good(bad));
    rig.advance(5_000_000);
    assert!(sent(&rig, 0).is_empty());
    assert_eq!(count(&rig, 0, port::DROP_CHECKSUM), 1);
    end(rig);
}
