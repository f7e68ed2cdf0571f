//! The wire format: what is written is read again, and nothing else is.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use pollux_farm::feeder::mockup::{Mockup, suspended};
use pollux_farm::feeder::store::{Store, StoreError};
use pollux_farm::fragments::{Fragments, FrameError, Outgoing};
use pollux_farm::message::{
    Ack, Alive, Assign, Decided, Decision, Feedback, Flow, Fragment, Member, Message, More,
    Request, Trigger, Withdraw,
};
use pollux_farm::topology::{Descriptor, Feeders};
use pollux_farm::wire::payload::{self, ABSENT, OVERSIZE, Writer};
use pollux_farm::wire::{self, WireError};
use proptest::prelude::*;

fn message() -> impl Strategy<Value = Message> {
    let numbers = any::<(u32, u64, u32, u64, u64, u16, u16)>();
    let small = (0_usize..10, 1_u16..=64, 0_u8..2, any::<(u8, bool)>());
    (numbers, small).prop_map(|(numbers, small)| {
        let (run, mep, generation, a, b, descriptor, attempt) = numbers;
        let (kind, count, part, (byte, flag)) = small;
        let descriptor = Descriptor(descriptor);
        let event = mep >> 1;
        let feeder = byte % 64;
        match kind {
            0 => Message::Flow(Flow {
                run,
                mep,
                event,
                count: count - 1,
                descriptor,
                generation,
                attempt,
                part,
                loops: byte,
                hold: flag,
                members: Feeders(a),
                pending: Feeders(a & b),
                decided: b,
            }),
            1 => Message::Fragment(Fragment {
                run,
                feeder,
                mep,
                event,
                count,
                descriptor,
                generation,
                attempt,
                part,
                members: Feeders(a).with(Feeders::only(feeder)),
                absent: attempt % (count + 1),
                bytes: b as u32,
                payload_crc: flag.then_some(a as u32),
            }),
            2 => Message::Feedback(Feedback {
                run,
                column: byte,
                descriptor,
                generation,
                mep,
            }),
            3 => Message::Alive(Alive {
                run,
                from: match byte % 3 {
                    0 => Member::Feeder(feeder),
                    1 => Member::Node(attempt),
                    _ => Member::Results,
                },
            }),
            4 => Message::More(More {
                run,
                descriptor,
                generation,
                mep,
            }),
            5 => Message::Decision(Decision {
                run,
                mep,
                event,
                count,
                descriptor,
                generation,
                absent: attempt,
                missing: Feeders(a),
                accepted: b & Feeders::first(count.into()).0,
            }),
            6 => Message::Ack(Ack { run, mep }),
            7 => Message::Decided(Decided {
                run,
                mep,
                bits: a | 1,
                before: b,
            }),
            8 => Message::Withdraw(Withdraw {
                run,
                descriptor,
                generation,
            }),
            _ => Message::Trigger(Trigger {
                run,
                first: a,
                count: attempt,
            }),
        }
    })
}

/// Messages of the policy `credits`.
fn asking() -> impl Strategy<Value = Message> {
    let numbers = any::<(u32, u64, u32, u64, u16, u16)>();
    let small = (1_u16..=64, 0_u8..2, 0_u8..64, any::<(u8, bool, bool)>());
    (numbers, small).prop_map(|(numbers, small)| {
        let (run, mep, generation, members, descriptor, attempt) = numbers;
        let (count, part, feeder, (loops, hold, is_request)) = small;
        let (event, descriptor) = (mep >> 1, Descriptor(descriptor));
        let members = Feeders(members).with(Feeders::only(feeder));
        if is_request {
            Message::Request(Request {
                run,
                feeder,
                mep,
                event,
                count,
                descriptor,
                generation,
                attempt,
                part,
                hold,
                members,
            })
        } else {
            Message::Assign(Assign {
                run,
                mep,
                event,
                count,
                descriptor,
                generation,
                attempt,
                part,
                loops,
                members,
            })
        }
    })
}

fn any_message() -> impl Strategy<Value = Message> {
    prop_oneof![5 => message(), 1 => asking()]
}

proptest! {
    #[test]
    fn messages_are_read_as_they_were_written(message in any_message()) {
        let bytes = wire::encode(&message);
        prop_assert_eq!(wire::decode(&bytes), Ok(message));
        prop_assert_eq!(wire::decode(&bytes[..63]), Err(WireError::Short(63)));
    }

    #[test]
    fn a_damaged_bit_is_found(message in any_message(), bit in 0_usize..512) {
        let mut bytes = wire::encode(&message);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(wire::decode(&bytes).is_err());
    }

    #[test]
    fn each_message_has_one_form(mut bytes in any::<[[u8; 32]; 2]>()) {
        let bytes = bytes.as_flattened_mut();
        (bytes[0], bytes[1], bytes[2]) = (1, 1 + bytes[1] % 13, bytes[2] % 4);
        repair(bytes);
        if let Ok(message) = wire::decode(bytes) {
            prop_assert_eq!(&wire::encode(&message)[..], bytes);
        }
    }

    #[test]
    fn payloads_are_read_as_they_were_written(
        events in prop::collection::vec(prop::option::of(0_u32..300), 1..64),
        crc in any::<bool>(),
        bit in any::<prop::sample::Index>(),
    ) {
        let mut store = Store::new(64, 300);
        for (event, length) in (0_u64..).zip(&events) {
            if let Some(length) = length {
                let data: Vec<u8> = (0..*length).map(|n| (u64::from(n) * 7 + event) as u8).collect();
                store.push(event, 0, &data).expect("room");
            }
        }
        let flow = Flow { count: events.len() as u16, ..flow() };
        let outgoing = Outgoing::new(2, &flow, &store, 1 << 20);
        let mut frame = vec![0xAA; outgoing.frame_len()];
        outgoing.write(crc, &mut frame).expect("room");
        let Ok(Message::Fragment(fragment)) = wire::decode(&frame) else {
            panic!("a fragment");
        };
        let payload = &mut frame[wire::HEADER..];
        prop_assert_eq!(payload::check(&fragment, payload), Ok(()));
        let absent = events.iter().filter(|event| event.is_none()).count();
        prop_assert_eq!(usize::from(fragment.absent), absent);
        let found: Vec<_> = payload::events(flow.count, payload).collect();
        prop_assert_eq!(found.len(), events.len());
        for ((found, length), event) in found.iter().zip(&events).zip(0_u64..) {
            prop_assert_eq!(found.map(|data| data.len() as u32), *length);
            let right = |(n, &byte): (usize, &u8)| byte == (n as u64 * 7 + event) as u8;
            prop_assert!(found.is_none_or(|data| data.iter().enumerate().all(right)));
        }
        if crc {
            let bit = bit.index(payload.len() * 8);
            payload[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(payload::check(&fragment, payload), Err(WireError::PayloadCrc));
        }
    }

    #[test]
    fn any_payload_is_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..400), count in 0_u16..70) {
        let read: usize = payload::events(count, &bytes).flatten().map(<[u8]>::len).sum();
        prop_assert!(read <= bytes.len());
    }
}

/// Sets the CRC of a header: CRC-32 of all bytes but its own, bit by bit (IEEE 802.3, 3.2.9).
fn repair(bytes: &mut [u8]) {
    let mut crc = u32::MAX;
    for byte in bytes[..4].iter().chain(&bytes[8..64]) {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
        }
    }
    bytes[4..8].copy_from_slice(&(!crc).to_le_bytes());
}

fn flow() -> Flow {
    Flow {
        run: 7,
        mep: 0,
        event: 0,
        count: 1,
        descriptor: Descriptor(0),
        generation: 1,
        attempt: 1,
        part: 0,
        loops: 0,
        hold: false,
        members: Feeders(0b1111),
        pending: Feeders(0b0100),
        decided: 0,
    }
}

/// The worked examples of the page.
#[test]
fn the_examples_of_the_page_are_messages() {
    let page = include_str!("../../../docs/formats/farm.md");
    let examples: Vec<Vec<u8>> = (page.split("```hex\n").skip(1))
        .map(|example| {
            let lines = example.split("```").next().unwrap_or("").lines();
            let words =
                lines.flat_map(|line| line.split('#').next().unwrap_or("").split_whitespace());
            words
                .map(|byte| u8::from_str_radix(byte, 16).expect("a byte"))
                .collect()
        })
        .collect();
    let [flow, fragment] = &examples[..] else {
        panic!("two examples");
    };
    let expected = Message::Flow(Flow {
        run: 7,
        mep: 1000,
        event: 2000,
        count: 2,
        descriptor: Descriptor(27),
        generation: 83,
        attempt: 1,
        part: 0,
        loops: 0,
        hold: true,
        members: Feeders(0xFF_FFFF),
        pending: Feeders(0xFF_FFFE),
        decided: 1960,
    });
    assert_eq!(wire::decode(flow), Ok(expected));
    let mut repaired = flow.clone();
    repair(&mut repaired);
    assert_eq!(&repaired, flow, "the CRC, bit by bit");

    let Ok(Message::Fragment(header)) = wire::decode(fragment) else {
        panic!("a fragment");
    };
    let payload = &fragment[wire::HEADER..];
    assert_eq!(payload::check(&header, payload), Ok(()));
    assert_eq!((header.feeder, header.absent, header.bytes), (3, 1, 24));
    let events: Vec<_> = payload::events(header.count, payload).collect();
    // Mock-up words 4000 and 4001 of event 2000.
    let word = [
        0xA0, 0x0F, 0xD0, 0x07, 0, 0, 0, 0, 0xA1, 0x0F, 0xD0, 0x07, 0, 0, 0, 0,
    ];
    assert_eq!(events, [Some(&word[..]), None]);
    assert!(Mockup::new(16, 0).check(2000, &word));
}

#[test]
fn data_larger_than_the_slot_are_left_out() {
    let store = Mockup::new(100, 0);
    let flow = Flow { count: 3, ..flow() };
    let outgoing = Outgoing::new(2, &flow, &store, 16 + 2 * 104);
    assert_eq!((outgoing.fragment().absent, outgoing.oversize()), (1, 1));
    let mut frame = vec![0; 1000];
    let length = outgoing.write(true, &mut frame).expect("room");
    assert_eq!(length, wire::HEADER + 16 + 2 * 104);
    let events = payload::events(3, &frame[wire::HEADER..length]);
    let lengths: Vec<_> = events.map(|data| data.map(<[u8]>::len)).collect();
    assert_eq!(lengths, [Some(100), Some(100), None]);
    let short = outgoing.write(true, &mut frame[..length - 1]);
    assert!(matches!(short, Err(FrameError::Room { .. })));
}

#[test]
fn a_writer_does_not_pass_its_end() {
    let mut bytes = [0xAA; 24];
    assert!(Writer::new(&mut bytes[..4], 2).is_none());
    let mut writer = Writer::new(&mut bytes, 2).expect("room");
    assert!(writer.is_empty());
    assert_eq!(writer.event(17).map(|_| ()), None);
    writer.event(16).expect("room").fill(1);
    assert_eq!(writer.event(OVERSIZE).expect("room").len(), 0);
    assert!(writer.event(ABSENT).is_none(), "both are written");
    assert_eq!(writer.len(), 24);
}

#[test]
fn mock_up_words_are_those_of_the_thesis() {
    // Table III-1: bursts of 128 bytes.
    let mut data = [0; 128];
    let store = Mockup::new(128, 0);
    store.write(1, 0, &mut data);
    let words: Vec<u64> = (data.as_chunks().0.iter())
        .map(|word| u64::from_le_bytes(*word))
        .collect();
    assert_eq!(words[0], 0x0001_0010);
    assert_eq!(words[2], 0x0001_0012);
    assert_eq!(words.len(), 16);
    assert_eq!(suspended(&data), None);
    // Figure IV-10: the node that stands still is in the upper half.
    let store = store.suspending(|event| if event == 5 { 8 } else { 0 });
    store.write(5, 0, &mut data);
    assert_eq!(suspended(&data), Some(7));
    assert!(store.check(5, &data) && !store.check(6, &data));
}

#[test]
fn a_store_keeps_what_is_not_decided() {
    let mut store = Store::new(4, 8);
    for event in 0..4 {
        assert_eq!(store.push(event, 0, &[event as u8; 8]), Ok(()));
    }
    let full = StoreError::Full {
        event: 4,
        oldest: 0,
    };
    assert_eq!(store.push(4, 0, &[]), Err(full));
    assert!(matches!(
        store.push(3, 0, &[]),
        Err(StoreError::Repeated { .. })
    ));
    assert!(matches!(
        store.push(3, 1, &[0; 9]),
        Err(StoreError::Oversize { .. })
    ));
    assert_eq!(store.push(3, 2, &[]), Err(StoreError::Part(2)));
    store.release(2);
    assert_eq!(store.length(1, 0), None);
    assert_eq!(store.length(2, 0), Some(8));
    assert_eq!(store.push(4, 1, &[9; 3]), Ok(()));
    assert_eq!((store.length(4, 0), store.length(4, 1)), (None, Some(3)));
    assert!(matches!(
        store.push(1, 0, &[]),
        Err(StoreError::Late { .. })
    ));
    let mut data = [0; 8];
    store.write(2, 0, &mut data);
    assert_eq!(data, [2; 8]);
    let counts = store.counters();
    assert_eq!((counts.stored, counts.full, counts.late), (5, 1, 1));
    assert_eq!((counts.repeated, counts.oversize, counts.part), (1, 1, 1));
}

#[test]
fn mock_up_payloads_are_compared_whole() {
    for bytes in [8, 24, 64, 100, 128, 192] {
        for count in [1, 2, 3, 31, 32, 64] {
            let store = Mockup::new(bytes, 0);
            // Numbers of words begin anew within it.
            let event = 65_520;
            let flow = Flow {
                event,
                count,
                ..flow()
            };
            let outgoing = Outgoing::new(2, &flow, &store, 1 << 20);
            let mut payload = vec![0xAA; outgoing.payload_len()];
            outgoing.write_payload(&mut payload).expect("room");
            assert_eq!(payload::check(&outgoing.fragment(), &payload), Ok(()));
            let right = store.compare(event, count, &payload);
            assert_eq!((right.checked, right.wrong), (count.into(), 0));
            // The first length, and the last word.
            for at in [0, payload.len() - 8] {
                payload[at] ^= 1;
                let compared = store.compare(event, count, &payload);
                assert_ne!(compared, right, "{bytes} B, {count} events, byte {at}");
                payload[at] ^= 1;
            }
        }
    }
}
