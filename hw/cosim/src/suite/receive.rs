//! From the wire to the lists: destination of a frame, and its outcome without one.

use std::collections::BTreeMap;

use pollux_card_model::registers::port;
use pollux_card_model::{FrameEnd, Register, SimulatedCard, WireFrame};

use super::support::{Make, count, end, rig, settle};
use crate::rig::{DEFAULT_LIST, Form, datagram};

/// Payloads of all lengths, to each stream of each port.
pub fn each_stream_has_its_own_list<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = rig(make);
    let mut wanted: BTreeMap<u16, Vec<Vec<u8>>> = BTreeMap::new();
    for port in 0..4 {
        for stream in 0..16 {
            rig.add_list(port as u16 * 32 + stream, 4096, 1000);
            rig.add_stream(port, stream.into(), 5000 + stream, Form::Payload);
        }
        rig.enable(port);
    }
    for number in 0..4_usize {
        for port in 0..4 {
            for stream in 0..16 {
                let len = [0, 1, 18 + usize::from(stream), 1472][number];
                let payload: Vec<u8> = (0..len).map(|i| (i * 3 + port) as u8).collect();
                rig.put(port, datagram(port, 77, 5000 + stream, &payload));
                let list = port as u16 * 32 + stream;
                wanted.entry(list).or_default().push(payload);
            }
        }
    }
    let mut found: BTreeMap<u16, Vec<Vec<u8>>> = BTreeMap::new();
    for payload in settle(&mut rig) {
        assert_eq!(payload.source_port, 77);
        let list = found.entry(payload.list).or_default();
        assert_eq!(payload.sequence as usize, list.len());
        list.push(payload.bytes);
    }
    assert!(found == wanted, "payloads are not those that were sent");
    end(rig);
}

/// Frames without a stream are placed whole, if enabled.
pub fn whole_frames_go_to_the_default_list<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = rig(make);
    let mut other = vec![0xff; 6];
    other.extend([2, 0, 0, 0, 0, 9, 0x88, 0xb5]);
    other.resize(100, 7);
    for port in 0..4 {
        let (default_list, stream) = (port as u16 * 32 + DEFAULT_LIST, port as u16 * 32 + 3);
        rig.add_list(default_list, 16 << 10, 1000);
        rig.add_list(stream, 16 << 10, 1000);
        rig.add_stream(port, 3, 5003, Form::Frame);
        rig.enable(port);
        // The default list accepts UDP and all others; the card answers nothing.
        rig.write(&port::THIS, port, port::NET_CTRL, 0, 0b11_0100);
        let frames = [
            datagram(port, 7, 9999, b"unwanted"),
            WireFrame::good(other.clone()),
            datagram(port, 7, 5003, &[5; 700]),
        ];
        for frame in &frames {
            rig.put(port, frame.clone());
        }
        let found = settle(&mut rig);
        let by = |list| -> Vec<_> {
            let of_it = found.iter().filter(|payload| payload.list == list);
            of_it.map(|payload| payload.bytes.clone()).collect()
        };
        let [first, second, third] = frames.map(|frame| frame.bytes);
        assert_eq!(by(default_list), [first, second], "port {port}");
        assert_eq!(by(stream), [third], "port {port}");
    }
    end(rig);
}

/// A frame for each cause, alone and then all of them: each is counted once, under its cause.
pub fn each_lost_frame_has_one_cause<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = rig(make);
    rig.add_list(0, 4096, 1000);
    rig.add_stream(0, 0, 5000, Form::Payload);
    rig.enable(0);
    rig.write(&port::THIS, 0, port::MAX_FRAME, 0, 1522);
    let good = datagram(0, 7, 5000, &[1; 40]);
    let with = |at: usize, bytes: &[u8]| {
        let mut frame = good.clone();
        frame.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        frame
    };
    let ending = |end| WireFrame {
        end,
        ..good.clone()
    };
    // A header with a correct sum and a changed field: the difference is taken from
    // the identification, which has no meaning.
    let header = |at: usize, value: u16| {
        let mut frame = good.clone();
        let before = u16::from_be_bytes([frame.bytes[at], frame.bytes[at + 1]]);
        frame.bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
        let id = u32::from(u16::from_be_bytes([frame.bytes[18], frame.bytes[19]]));
        let id = id + u32::from(before) + u32::from(!value);
        let id = (id & 0xffff) + (id >> 16);
        let id = ((id & 0xffff) + (id >> 16)) as u16;
        frame.bytes[18..20].copy_from_slice(&id.to_be_bytes());
        frame
    };
    let mut cut = good.clone();
    cut.bytes.truncate(70);
    let cases: &[(&str, WireFrame, Register)] = &[
        ("fcs", ending(FrameEnd::BadFcs), port::RX_FCS),
        ("symbol", ending(FrameEnd::Error), port::RX_SYMBOL),
        ("runt", WireFrame::good(&good.bytes[..59]), port::RX_RUNT),
        (
            "oversize",
            WireFrame::good(vec![2; 1519]),
            port::RX_OVERSIZE,
        ),
        ("another neighbour", with(5, &[0x77]), port::DROP_ADDRESS),
        ("another address", header(32, 0x4444), port::DROP_ADDRESS),
        ("version", header(14, 0x6500), port::DROP_MALFORMED),
        ("total length", header(16, 19), port::DROP_MALFORMED),
        ("header sum", with(24, &[0xde]), port::DROP_CHECKSUM),
        ("payload sum", with(50, &[0xde]), port::DROP_CHECKSUM),
        ("fragment", header(20, 0x2000), port::DROP_FRAGMENT),
        ("offset", header(20, 0x0001), port::DROP_FRAGMENT),
        ("udp length", with(38, &[0, 7]), port::DROP_MALFORMED),
        ("udp too long", with(38, &[0xff, 0]), port::DROP_MALFORMED),
        ("cut off", cut, port::DROP_MALFORMED),
        ("no stream", datagram(0, 7, 5001, &[1; 9]), port::DROP_MISS),
        ("protocol", header(22, 0x4006), port::DROP_UNSUPPORTED),
        ("type", with(12, &[0x88, 0xb5]), port::DROP_UNSUPPORTED),
    ];
    for (name, frame, register) in cases {
        let before = count(&rig, 0, *register);
        rig.put(0, frame.clone());
        let _ = settle(&mut rig);
        assert_eq!(count(&rig, 0, *register), before + 1, "{name}");
    }
    let taken = rig.outcomes(0).iter().sum::<u64>();
    assert_eq!(taken, 0, "something was placed");
    for (_, frame, _) in cases {
        rig.put(0, frame.clone());
        rig.put(0, good.clone());
    }
    let found = settle(&mut rig);
    assert_eq!(found.len(), cases.len(), "good frames between bad ones");
    for (name, _, register) in cases {
        let of_it = cases.iter().filter(|(_, _, other)| other.at == register.at);
        assert_eq!(
            count(&rig, 0, *register),
            2 * of_it.count() as u64,
            "{name}"
        );
    }
    assert_eq!(count(&rig, 0, port::RX_FRAMES), 3 * cases.len() as u64);
    end(rig);
}

/// A container of so many events.
fn container(events: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = b"PXRH\x01\0\0\0\0\0\0\0".to_vec();
    bytes.extend([events, 0, body.len() as u8, 0]);
    bytes.extend([0; 8]);
    bytes.extend(body);
    bytes
}

/// Each way in which events are more, fewer or other than the header states; others are good.
pub fn containers_that_contradict_themselves_are_refused<C: SimulatedCard>(make: Make<'_, C>) {
    let mut rig = rig(make);
    rig.add_list(2, 4096, 1000);
    rig.add_stream(0, 2, 5002, Form::Hits);
    rig.enable(0);
    // An event: slots since the previous one, hits, the gap before each index, times.
    let good = container(3, &[0, 0, 4, 2, 5, 0x85, 1, 7, 8, 0, 0]);
    let bad = [
        ("no first slot", container(1, &[1, 0])),
        (
            "a slot of three bytes",
            container(2, &[0, 0, 0x80, 0x80, 0]),
        ),
        (
            "an index of no photomultiplier",
            container(1, &[0, 1, 0xff, 0x7f, 9]),
        ),
        (
            "an index of three bytes",
            container(1, &[0, 1, 0x80, 0x80, 9]),
        ),
        ("bytes behind the last event", container(1, &[0, 0, 0])),
        ("an event less than it says", container(2, &[0, 0])),
        ("an end among indices", container(1, &[0, 2, 1])),
        ("an end among times", container(1, &[0, 2, 1, 1, 9])),
        ("a time that does not fit", {
            let mut late = container(2, &[0, 0, 0, 0]);
            late[16..24].fill(0xff);
            late
        }),
    ];
    for (_, payload) in &bad {
        rig.put(0, datagram(0, 7, 5002, &good));
        rig.put(0, datagram(0, 7, 5002, payload));
    }
    let found = settle(&mut rig);
    let (outcomes, n) = (rig.outcomes(2), bad.len() as u64);
    assert_eq!(outcomes, [n, 0, 0, 0, 0, 0, n, 0]);
    // Slots 0, 5 and 6; indices 5 and 139.
    let mut expanded = good[..24].to_vec();
    expanded[4] = 129;
    expanded.extend([0; 8]);
    expanded.extend([5, 0, 0, 0, 2, 0, 0, 0, 5, 0, 139, 0, 7, 8, 0, 0]);
    expanded.extend([6, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(found.len() as u64, n);
    for payload in found {
        assert_eq!(payload.bytes, expanded);
    }
    end(rig);
}

/// The worked example of the container's page, and the reader's refusals.
pub fn containers_are_expanded<C: SimulatedCard>(make: Make<'_, C>) {
    let page = include_str!("../../../../docs/formats/rich-hits.md");
    let blocks: Vec<Vec<u8>> = page
        .split("```hex\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .map(|block| {
            let words = block.lines().flat_map(|line| {
                let bytes = line.split('#').next().unwrap_or("");
                bytes.split_whitespace()
            });
            words
                .map(|word| u8::from_str_radix(word, 16).unwrap())
                .collect()
        })
        .collect();
    let [container, expanded] = &blocks[..] else {
        panic!("the page has another number of examples");
    };
    let mut rig = rig(make);
    rig.add_list(2, 4096, 1000);
    rig.add_stream(0, 2, 5002, Form::Hits);
    rig.enable(0);
    let mut version = container.clone();
    version[4] = 2;
    let mut cut = container.clone();
    cut.truncate(container.len() - 1);
    for payload in [container, &version, &cut, &b"short".to_vec(), container] {
        rig.put(0, datagram(0, 7, 5002, payload));
    }
    let found: Vec<_> = settle(&mut rig).into_iter().map(|p| p.bytes).collect();
    assert_eq!(found, [expanded.clone(), expanded.clone()]);
    let outcomes = rig.outcomes(2);
    assert_eq!((outcomes[0], outcomes[6], outcomes[7]), (2, 2, 1));
    end(rig);
}
