//! Packets that are in the ring, and packets that no neighbour is found for.

use pollux_card_model::layouts::{
    TX_DESCRIPTOR_CHECKSUM_CARD, TX_DESCRIPTOR_FIRST, TX_DESCRIPTOR_INLINE, TX_DESCRIPTOR_LAST,
    TX_DESCRIPTOR_RAW,
};
use pollux_card_model::registers::{host, port, tx};
use pollux_card_model::{SimulatedCard, WireFrame};

use super::answers::arp;
use super::support::{Make, US, count, end, sent};
use super::transmit::{Piece, Sending, WHOLE, bytes};
use crate::rig::peer;

/// Status of an event about packets without a neighbour.
const UNRESOLVED: u32 = 4;

/// Its first doorbell stops it, and nothing is read.
pub fn a_ring_at_an_impossible_place_stops<C: SimulatedCard>(make: Make<'_, C>) {
    let mut sending = Sending::new(make);
    let base = sending.rig.read64(&tx::THIS, 0, tx::RING_BASE, 0);
    let control = sending.rig.read(&tx::THIS, 0, tx::RING_CTRL, 0);
    let reads = sending.rig.read64(&host::THIS, 0, host::READS, 0);
    for (shift, log2) in [(1, 4), (32, 4), (0, 2), (0, 17), (0, 31)] {
        sending
            .rig
            .write64(&tx::THIS, 0, tx::RING_BASE, 0, base + shift);
        let wrong = control & !(31 << 8 | 1) | log2 << 8;
        sending.rig.write(&tx::THIS, 0, tx::RING_CTRL, 0, wrong);
        sending.rig.write(&tx::THIS, 0, tx::RING_CTRL, 0, wrong | 1);
        sending.posted = 0;
        sending.packet(b"never", 0, 0);
        sending.doorbell();
        assert_eq!(sending.events(), [(0, 0, 3)], "{shift} {log2}");
        let status = sending.rig.read(&tx::THIS, 0, tx::RING_STATUS, 0);
        assert_eq!(status & 3, 3, "it has stopped, and is at rest");
    }
    assert_eq!(sending.rig.read64(&host::THIS, 0, host::READS, 0), reads);
    sending.rig.write64(&tx::THIS, 0, tx::RING_BASE, 0, base);
    sending.begin();
    sending.packet(b"again", 0, 0);
    sending.doorbell();
    assert_eq!(sending.payloads(), [b"again"]);
    end(sending.rig);
}

/// Of all lengths, among packets in memory; each is one packet of an event, and its slots count as
/// descriptors. Contradictions cost one packet.
pub fn short_packets_are_in_the_ring<C: SimulatedCard>(make: Make<'_, C>) {
    let mut sending = Sending::new(make);
    for len in [1, 17, 31, 32, 33, 48, 63, 64] {
        sending.inline(&bytes(len), TX_DESCRIPTOR_CHECKSUM_CARD);
        sending.doorbell();
        assert_eq!(sending.payloads(), [bytes(len)]);
        assert_eq!(sending.events(), [(sending.posted, 1, 0)]);
        sending.inline(&bytes(len), 0);
        sending.packet(&bytes(100), 0, 0);
        sending.inline(&bytes(65 - len), 0);
        sending.doorbell();
        let wanted = [bytes(len), bytes(100), bytes(65 - len)];
        assert_eq!(sending.payloads(), wanted);
        assert_eq!(sending.events().len(), 3);
    }
    sending.inline(&[0xee; 60], TX_DESCRIPTOR_RAW);
    sending.doorbell();
    let frames = sent(&sending.rig, 0);
    assert_eq!(frames, [WireFrame::good(vec![0xee; 60])]);
    let _ = sending.events();
    let piece = |len, flags, total| Piece {
        at: 0,
        len,
        flags: flags | TX_DESCRIPTOR_INLINE,
        total,
        checksum: 0,
    };
    let first = TX_DESCRIPTOR_FIRST;
    let last = TX_DESCRIPTOR_LAST;
    let bad = [
        ("no bytes", piece(0, WHOLE, 0), 0),
        ("too many bytes", piece(65, WHOLE, 65), 0),
        ("far too many bytes", piece(1 << 31 | 8, WHOLE, 8), 0),
        ("shorter than it says", piece(20, WHOLE, 21), 1),
        ("longer than it says", piece(40, WHOLE, 32), 2),
        ("no beginning", piece(64, last, 64), 2),
        ("no end", piece(32, first, 32), 1),
        (
            "shorter than a header",
            piece(13, WHOLE | TX_DESCRIPTOR_RAW, 13),
            1,
        ),
    ];
    for (n, (name, descriptor, slots)) in bad.into_iter().enumerate() {
        sending.packet(b"before", 0, 0);
        sending.post(descriptor);
        for _ in 0..slots {
            // As a descriptor it would be one.
            sending.slot(&[0xff; 32]);
        }
        sending.inline(b"behind", 0);
        sending.doorbell();
        let statuses: Vec<_> = sending.events().iter().map(|event| event.2).collect();
        assert_eq!(statuses, [0, 1, 0], "{name}");
        assert_eq!(sending.payloads(), [b"before", b"behind"], "{name}");
        let counted = sending.rig.read64(&tx::THIS, 0, tx::BAD, 0);
        assert_eq!(counted, n as u64 + 1, "{name}");
    }
    // Its data come with a later doorbell.
    sending.post(piece(40, WHOLE, 40));
    sending.doorbell();
    assert!(sending.events().is_empty() && sending.payloads().is_empty());
    sending.slot(&[7; 32]);
    sending.slot(&[7; 8]);
    sending.doorbell();
    assert_eq!(sending.payloads(), [[7; 40]]);
    assert_eq!(sending.events(), [(sending.posted, 1, 0)]);
    // Or never.
    sending.post(piece(40, WHOLE, 40));
    sending.doorbell();
    let done = sending.posted;
    sending.begin();
    assert_eq!(sending.events(), [(done, 1, 1)]);
    sending.inline(b"again", 0);
    sending.doorbell();
    assert_eq!(sending.payloads(), [b"again"]);
    end(sending.rig);
}

/// A packet waits until its neighbour has answered. If it does not, this packet and later ones to its
/// address are lost, and reported; others are sent.
pub fn a_neighbour_is_asked_for<C: SimulatedCard>(make: Make<'_, C>) {
    let mut sending = Sending::new(make);
    let flush = |sending: &Sending<C>| {
        let rig = &sending.rig;
        rig.write(&port::THIS, 0, port::ARP_CTRL, 0, 1 << 8);
        rig.advance(10 * US);
    };
    flush(&sending);
    sending.packet(b"waits", 0, 0);
    sending.doorbell();
    let requests = sent(&sending.rig, 0);
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].bytes[..6], [0xff; 6]);
    assert_eq!(requests[0].bytes[12..14], [8, 6]);
    let asked = peer(0, 0).socket.ip().octets();
    assert_eq!(requests[0].bytes[38..42], asked);
    sending.rig.put(0, WireFrame::good(arp(2, false)));
    sending.rig.advance(5 * US);
    assert_eq!(sending.payloads(), [b"waits"]);
    assert_eq!(sending.events(), [(1, 1, 0)]);
    // Now it does not answer: 160 us.
    flush(&sending);
    sending.rig.write(&port::THIS, 0, port::ARP_WAIT, 0, 25000);
    sending.packet(b"lost", 0, 0);
    sending.doorbell();
    assert_eq!(sent(&sending.rig, 0).len(), 1);
    assert_eq!(count(&sending.rig, 0, port::TX_UNRESOLVED), 0);
    assert_eq!(sending.events(), [(2, 1, 0)]);
    sending.rig.advance(150 * US);
    assert_eq!(count(&sending.rig, 0, port::TX_UNRESOLVED), 1);
    assert_eq!(sending.events(), [(2, 1, UNRESOLVED)]);
    // At once, without a request; what follows is not delayed.
    sending.packet(b"lost", 0, 0);
    sending.packet(b"lost", 0, 0);
    let at = sending.data(&[0xee; 60]);
    sending.post(Piece {
        at,
        len: 60,
        flags: WHOLE | TX_DESCRIPTOR_RAW,
        total: 60,
        checksum: 0,
    });
    sending.doorbell();
    let frames = sent(&sending.rig, 0);
    assert_eq!(frames, [WireFrame::good(vec![0xee; 60])]);
    assert_eq!(count(&sending.rig, 0, port::TX_UNRESOLVED), 3);
    let events = sending.events();
    let of = |unresolved| {
        events
            .iter()
            .filter(move |event| (event.2 == UNRESOLVED) == unresolved)
    };
    assert_eq!(of(true).map(|event| event.1).sum::<u32>(), 2, "{events:?}");
    let others: Vec<_> = of(false).copied().collect();
    assert_eq!(others, [(3, 1, 0), (4, 1, 0), (5, 1, 0)]);
    // An answer at any time makes it known.
    sending.rig.put(0, WireFrame::good(arp(2, false)));
    sending.rig.advance(5 * US);
    sending.packet(b"sent", 0, 0);
    sending.doorbell();
    assert_eq!(sending.payloads(), [b"sent"]);
    assert_eq!(sending.events(), [(6, 1, 0)]);
    end(sending.rig);
}
