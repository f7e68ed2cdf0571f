#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;
use zerocopy::{FromBytes, IntoBytes};

use super::*;
use crate::net::{ParseOptions, Parsed, parse};

/// Packets of scapy's regression tests (`test/contrib/roce.uts`): a UC SEND, and a congestion notification
/// captured on a ConnectX-4 Lx.
const UC_SEND_ONLY: &str = "248a07a8fa22 248a07a8fa22 0800 \
    4501004004784000 4011 b4d5 c0a80007 c0a80007 c00012b7 002c aca2 \
    24 60 ffff 000000d3 00cf1710 \
    4630818be28935d90e9a95505401be885e500000 78f353f3";
const CNP: &str = "e41d2dab2bc2 7cfe90643b32 0800 \
    45c2003c718c4000 4011 9161 0a001101 0a001201 0000 12b7 0028 0000 \
    81 00 ffff 40000118 00000000 00000000000000000000000000000000 82fd002a";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|d| (d[0] << 4 | d[1]) as u8).collect()
}

fn datagram(frame: &[u8]) -> &[u8] {
    let options = ParseOptions {
        udp_checksum: false,
        ..ParseOptions::default()
    };
    let Ok(Parsed::Udp(udp)) = parse(frame, frame.len(), &options) else {
        panic!("no UDP")
    };
    assert_eq!(udp.dst_port, UDP_PORT);
    udp.payload(frame)
}

#[test]
fn vectors_have_their_icrc() {
    for (hex, icrc) in [(UC_SEND_ONLY, 0x78f3_53f3_u32), (CNP, 0x82fd_002a)] {
        let mut frame = bytes(hex);
        assert!(icrc::is_valid(&frame[14..]));
        let len = frame.len();
        assert_eq!(frame[len - 4..], icrc.to_be_bytes());
        frame[len - 4..].fill(0);
        assert!(icrc::write(&mut frame[14..]));
        assert_eq!(frame[len - 4..], icrc.to_be_bytes());
        // What a router or a switch changes is not covered, all else is.
        let free = [15, 22, 24, 25, 40, 41, 46];
        for at in 14..len {
            let mut wrong = frame.clone();
            wrong[at] ^= 1;
            assert_eq!(icrc::is_valid(&wrong[14..]), free.contains(&at), "{at}");
        }
    }
}

#[test]
fn vectors_are_read() {
    let frame = bytes(UC_SEND_ONLY);
    let packet = Packet::parse(datagram(&frame)).unwrap();
    assert_eq!(packet.opcode, Opcode::UcSendOnly);
    assert_eq!((packet.bth.qp(), packet.bth.psn()), (211, 13_571_856));
    assert!(packet.bth.migrated() && !packet.bth.solicited() && !packet.bth.ack_request());
    assert_eq!((packet.bth.pad(), packet.bth.pkey.get()), (2, 0xffff));
    assert_eq!(packet.payload, &frame[54..72]);
    assert_eq!(packet.immediate(), None);
    assert!(packet.reth().is_none() && packet.aeth().is_none() && packet.deth().is_none());
    let written = Bth::new(Opcode::UcSendOnly, 211, 13_571_856).with_pad(2);
    assert_eq!(written.as_bytes(), packet.bth.as_bytes());

    let frame = bytes(CNP);
    let packet = Packet::parse(datagram(&frame)).unwrap();
    assert_eq!(packet.opcode, Opcode::Congestion);
    assert!(packet.bth.backward_congestion() && !packet.bth.forward_congestion());
    assert_eq!((packet.bth.qp(), packet.payload.len()), (0x118, 0));
}

#[test]
fn options_of_the_ip_header_are_covered() {
    let mut frame = bytes(UC_SEND_ONLY);
    frame[14] = 0x46;
    frame.splice(34..34, [1, 1, 1, 1]);
    assert!(icrc::write(&mut frame[14..]) && icrc::is_valid(&frame[14..]));
    frame[35] ^= 1;
    assert!(!icrc::is_valid(&frame[14..]));
}

#[test]
fn a_packet_that_ends_early_is_an_error() {
    let mut datagram = [0; 64];
    for code in 0..=u8::MAX {
        datagram[0] = code;
        let Some(opcode) = Opcode::from_code(code) else {
            let error = PacketError::Opcode(code);
            assert_eq!(Packet::parse(&datagram).unwrap_err(), error);
            assert_eq!(Packet::parse(&datagram[..12]).unwrap_err(), error);
            continue;
        };
        let needed = 12 + opcode.extended_len() + 4;
        for len in 0..needed {
            let error = PacketError::Truncated { len };
            assert_eq!(Packet::parse(&datagram[..len]).unwrap_err(), error);
        }
        assert!(
            Packet::parse(&datagram[..needed])
                .unwrap()
                .payload
                .is_empty()
        );
    }
    datagram = [0; 64];
    for pad in 1..4 {
        datagram[1] = pad << 4;
        // Padding without payload, then payload and padding that are no multiple of 4.
        assert!(matches!(
            Packet::parse(&datagram[..16]),
            Err(PacketError::Truncated { .. })
        ));
        assert_eq!(
            Packet::parse(&datagram[..20]).unwrap().payload.len(),
            4 - usize::from(pad)
        );
        assert_eq!(
            Packet::parse(&datagram[..21]).unwrap_err(),
            PacketError::Padding(5)
        );
    }
    datagram[1] = 1;
    assert_eq!(
        Packet::parse(&datagram).unwrap_err(),
        PacketError::Version(1)
    );
}

/// Headers of each opcode as in table 38 of the specification.
#[test]
fn opcodes_have_the_headers_of_the_table() {
    let reth = [0x06, 0x0a, 0x0b, 0x0c, 0x26, 0x2a, 0x2b];
    let aeth = [0x0d, 0x0f, 0x10, 0x11, 0x12];
    let immediate = [0x03, 0x05, 0x09, 0x0b, 0x23, 0x25, 0x29, 0x2b, 0x65];
    let deth = [0x64, 0x65];
    for &opcode in Opcode::ALL {
        let code = opcode.code();
        assert_eq!(Opcode::from_code(code), Some(opcode));
        assert_eq!(opcode.has_reth(), reth.contains(&code), "{opcode:?}");
        assert_eq!(opcode.has_aeth(), aeth.contains(&code), "{opcode:?}");
        assert_eq!(opcode.has_deth(), deth.contains(&code), "{opcode:?}");
        assert_eq!(
            opcode.has_immediate(),
            immediate.contains(&code),
            "{opcode:?}"
        );
        let made = Opcode::message(
            opcode.service(),
            opcode.operation(),
            opcode.part(),
            opcode.has_immediate(),
        );
        let is_message = matches!(code, 0..=0x0b | 0x20..=0x2b);
        assert_eq!(made, is_message.then_some(opcode));
        if opcode.operation() == Operation::ReadResponse {
            assert_eq!(Opcode::read_response(opcode.part()), opcode);
        }
    }
    assert_eq!(Opcode::RcWriteOnlyImmediate.extended_len(), 20);
    assert_eq!(Opcode::UdSendOnlyImmediate.extended_len(), 12);
    assert_eq!(Opcode::RcCompareSwap.extended_len(), 28);
}

#[test]
fn parts_of_messages() {
    let parts = |packets| {
        (0..packets)
            .map(|n| Part::of(n, packets))
            .collect::<Vec<_>>()
    };
    assert_eq!(parts(1), [Part::Only]);
    assert_eq!(parts(2), [Part::First, Part::Last]);
    assert_eq!(parts(3), [Part::First, Part::Middle, Part::Last]);
}

#[test]
fn syndromes() {
    assert_eq!(Syndrome::from_code(0x1f), Some(Syndrome::ACK));
    assert_eq!(
        Syndrome::from_code(0x60),
        Some(Syndrome::Nak(NakCode::Sequence))
    );
    assert_eq!(
        Syndrome::from_code(0x62),
        Some(Syndrome::Nak(NakCode::RemoteAccess))
    );
    for code in 0..=u8::MAX {
        let known = matches!(code, 0..=0x3f | 0x60..=0x63);
        assert_eq!(
            Syndrome::from_code(code).map(Syndrome::code),
            known.then_some(code)
        );
    }
    // InfiniBand, table 45, in microseconds.
    let times = [
        (0, 655_360),
        (1, 10),
        (5, 60),
        (12, 640),
        (13, 960),
        (31, 491_520),
    ];
    for (code, us) in times {
        assert_eq!(RnrTimer::new(code).time().0, us * 1000);
    }
}

proptest! {
    /// Any bytes are a packet or an error, and a packet lies inside of them.
    #[test]
    fn any_bytes(mut datagram in proptest::collection::vec(any::<u8>(), 0..80), pick: prop::sample::Index) {
        if let Some(code) = datagram.first_mut() {
            *code = pick.get(Opcode::ALL).code();
        }
        if let Some(flags) = datagram.get_mut(1) {
            *flags &= 0xf0;
        }
        if let Ok(packet) = Packet::parse(&datagram) {
            let payload = packet.payload.len();
            let headers = 12 + packet.opcode.extended_len();
            prop_assert_eq!(headers + payload + packet.bth.pad() + 4, datagram.len());
            prop_assert_eq!(packet.payload, &datagram[headers..headers + payload]);
            prop_assert_eq!(packet.reth().is_some(), packet.opcode.has_reth());
            prop_assert_eq!(packet.aeth().is_some(), packet.opcode.has_aeth());
            prop_assert_eq!(packet.deth().is_some(), packet.opcode.has_deth());
            prop_assert_eq!(packet.immediate().is_some(), packet.opcode.has_immediate());
        }
        let _ = icrc::is_valid(&datagram);
        let _ = icrc::write(&mut datagram);
    }

    #[test]
    fn fields_are_read_as_written(qp in 0u32..1 << 24, psn in 0u32..1 << 24, pad in 0usize..4, ack: bool) {
        let bth = Bth::new(Opcode::RcWriteOnly, qp, psn).with_pad(pad).with_ack_request(ack).with_solicited(ack);
        let bth = Bth::read_from_bytes(bth.as_bytes()).unwrap();
        prop_assert_eq!((bth.qp(), bth.psn(), bth.pad()), (qp, psn, pad));
        prop_assert_eq!((bth.ack_request(), bth.solicited(), bth.version()), (ack, ack, 0));
        let aeth = Aeth::new(0x62, psn);
        prop_assert_eq!((aeth.syndrome(), aeth.msn()), (0x62, psn));
        prop_assert_eq!(Deth::new(7, qp).source(), qp);
    }
}
