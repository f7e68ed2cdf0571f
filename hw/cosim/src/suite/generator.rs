//! Packets without a host, and looped ports.

use pollux_card_model::registers::port;
use pollux_card_model::{FrameEnd, SimulatedCard, WireFrame};

use super::answers::arp;
use super::support::{Make, US, count, end, rig, sent, settle};
use crate::rig::{Form, Rig, datagram, neighbour, peer};

/// Settings of a port's generator.
struct Settings {
    size: u32,
    count: u32,
    gap: u32,
}

/// UDP ports: from 3000 to 5000.
const PORTS: u32 = 0x0bb8_1388;

const START: u32 = 1;
const STOP: u32 = 2;

fn generate<C: SimulatedCard>(rig: &Rig<C>, which: usize, ip: u32, settings: &Settings) {
    let settings = [
        (port::DESTINATION_IP, ip),
        (port::GEN_SIZE, settings.size),
        (port::GEN_COUNT, settings.count),
        (port::GEN_GAP, settings.gap),
        (port::GEN_PORTS, PORTS),
        (port::GEN_CTRL, START),
    ];
    for (register, value) in settings {
        rig.write(&port::THIS, which, register, 0, value);
    }
}

fn runs<C: SimulatedCard>(rig: &Rig<C>, which: usize) -> bool {
    rig.read(&port::THIS, which, port::GEN_STATUS, 0) & 1 == 1
}

/// The payload of packet `number`.
fn payload(number: u32, size: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..size).map(|i| (number as usize + i) as u8).collect();
    let head = number.to_le_bytes();
    for (byte, of) in bytes.iter_mut().zip(head) {
        *byte = of;
    }
    bytes
}

/// Sizes, counts, a gap; until stopped.
pub fn the_generator_sends_what_it_is_told<C: SimulatedCard>(make: Make<'_, C>) {
    let rig = rig(make);
    rig.enable(0);
    rig.put(0, WireFrame::good(arp(1, true)));
    rig.advance(5 * US);
    assert_eq!(sent(&rig, 0).len(), 1);
    let ip = u32::from(*peer(0, 0).socket.ip());
    let mut generated = 0;
    let check = |frames: &[WireFrame], size: usize| {
        for (frame, number) in frames.iter().zip(0..) {
            assert_eq!(frame.end, FrameEnd::Good);
            let bytes = &frame.bytes;
            assert_eq!(bytes[..6], peer(0, 0).mac.0);
            assert_eq!(bytes[34..38], [0x0b, 0xb8, 0x13, 0x88], "ports");
            assert_eq!(bytes[40..42], [0, 0], "no checksum");
            assert!(bytes[42..].starts_with(&payload(number, size)), "{number}");
            assert_eq!(bytes.len(), (42 + size).max(60));
        }
    };
    // Five gaps of 6.4 us.
    for (size, count, gap) in [(18, 300, 0), (0, 3, 0), (1001, 6, 1000), (9000, 2, 0)] {
        generate(&rig, 0, ip, &Settings { size, count, gap });
        rig.advance(20 * US);
        assert!(gap == 0 || runs(&rig, 0), "gaps are too short");
        rig.advance(30 * US);
        assert!(!runs(&rig, 0));
        let frames = sent(&rig, 0);
        assert_eq!(frames.len(), count as usize, "{size} B");
        check(&frames, size as usize);
        generated += u64::from(count);
    }
    let (size, count_up, gap) = (100, 0, 0);
    let settings = Settings {
        size,
        count: count_up,
        gap,
    };
    generate(&rig, 0, ip, &settings);
    rig.advance(10 * US);
    assert!(runs(&rig, 0));
    rig.write(&port::THIS, 0, port::GEN_CTRL, 0, STOP);
    rig.advance(5 * US);
    assert!(!runs(&rig, 0));
    let frames = sent(&rig, 0);
    assert!(frames.len() > 50, "{} at line rate", frames.len());
    check(&frames, 100);
    generated += frames.len() as u64;
    assert_eq!(count(&rig, 0, port::GEN_PACKETS), generated);
    end(rig);
}

/// One receives the other's frames, ARP too; their wires are neither received nor driven.
pub fn ports_of_a_pair_hear_each_other<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = rig(make);
    for (from, to) in [(0, 1), (3, 2)] {
        let list = to as u16 * 32;
        rig.add_list(list, 4096, 1000);
        rig.add_stream(to, 0, 5000, Form::Payload);
        for which in [from, to] {
            rig.enable(which);
            rig.write(&port::THIS, which, port::MAC_CTRL, 0, 0b111);
        }
        let ip = u32::from(*neighbour(to, 0).socket.ip());
        let (size, packets, gap) = (300, 20, 0);
        let settings = Settings {
            size,
            count: packets,
            gap,
        };
        generate(&rig, from, ip, &settings);
        rig.put(to, datagram(to, 7, 5000, b"by the wire"));
        rig.advance(20 * US);
        let found = settle(&mut rig);
        assert_eq!(found.len(), packets as usize);
        for (got, number) in found.iter().zip(0..) {
            assert_eq!((got.list, got.source_port), (list, 3000));
            assert_eq!(got.bytes, payload(number, 300));
        }
        assert!(sent(&rig, from).is_empty() && sent(&rig, to).is_empty());
        // An ARP request and its answer.
        assert_eq!(count(&rig, from, port::RX_FRAMES), 1);
        assert_eq!(count(&rig, to, port::RX_FRAMES), u64::from(packets) + 1);
        for which in [from, to] {
            rig.write(&port::THIS, which, port::MAC_CTRL, 0, 0b011);
        }
        rig.put(to, datagram(to, 7, 5000, b"by the wire"));
        assert_eq!(settle(&mut rig).len(), 1);
    }
    end(rig);
}
