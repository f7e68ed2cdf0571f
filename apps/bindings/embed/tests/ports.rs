//! An embedded port on captures and on the loopback.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use pollux_embed::{Datagram, EmbedError, EmbeddedPort, Frames, Options};
use pollux_pmd::{ClockChoice, TscClock};
use pollux_pmd_testkit::frames::Frame;
use pollux_pmd_testkit::guard::listen;
use proptest::prelude::*;

fn options(buffers: usize) -> Options {
    Options {
        buffers: Some(buffers),
        data_room: Some(2048),
        ..Options::default()
    }
}

/// A UDP datagram to port 2000, of the testkit.
fn udp(payload: &[u8]) -> Vec<u8> {
    Frame::udp(payload).bytes()
}

/// An unknown protocol.
fn other() -> Vec<u8> {
    Frame::ip(6, vec![0; 40]).bytes()
}

/// A datagram with 4000 B of payload as three fragments (RFC 791: offsets in units of 8 B).
fn fragments() -> Vec<Vec<u8>> {
    let whole = Frame::udp(&[9; 4000]);
    let pieces = whole.body.chunks(1480).enumerate();
    let last = whole.body.len().div_ceil(1480) - 1;
    let frame = |(n, body): (usize, &[u8])| {
        let more = if n == last { 0 } else { 0x2000 };
        let fragment = Frame {
            flags_offset: more | (n * 1480 / 8) as u16,
            body: body.to_vec(),
            ..whole.clone()
        };
        fragment.bytes()
    };
    pieces.map(frame).collect()
}

/// A classic capture of Ethernet frames, 1 ms apart, from 1970 on.
fn capture(path: &Path, frames: &[Vec<u8>]) -> String {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 0x4_0000, 1_u32] {
        file.extend(word.to_le_bytes());
    }
    for (n, frame) in frames.iter().enumerate() {
        let len = frame.len() as u32;
        for word in [n as u32 / 1000, n as u32 % 1000 * 1000, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    std::fs::write(path, file).unwrap();
    format!("pcap:rx={}", path.display())
}

/// Receives until the recording has ended.
fn all(port: &mut EmbeddedPort, burst: usize) -> Vec<Datagram> {
    let mut datagrams = Vec::new();
    while !port.has_ended() {
        port.rx(burst, |datagram| datagrams.push(datagram));
    }
    datagrams
}

#[test]
fn a_recording_is_delivered_in_order_and_accounted_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut frames: Vec<_> = (0..300_u32).map(|n| udp(&n.to_le_bytes())).collect();
    frames.push(other());
    let spec = capture(&folder.path().join("a.pcap"), &frames);
    for burst in [1, 32, 64, 65, 1000] {
        let mut port = EmbeddedPort::open(&spec, &options(1024)).unwrap();
        let datagrams = all(&mut port, burst);
        let found = datagrams.iter().enumerate().all(|(n, datagram)| {
            datagram.payload() == (n as u32).to_le_bytes()
                && datagram.frame() == frames[n]
                && datagram.wire_time().unwrap().0 == n as u64 * 1_000_000
                && (datagram.src_port(), datagram.dst_port()) == (1000, 2000)
        });
        assert!(found && datagrams.len() == 300, "{burst}");
        assert_eq!(port.free_buffers(), 1024 - 300);
        port.close().unwrap();
        let account = port.ledger().account();
        assert_eq!((account.from_wire, account.delivered), (301, 300));
        assert_eq!(
            account.dropped.into_iter().collect::<Vec<_>>(),
            [("not-for-us", 1)]
        );
        assert!(account.balanced && port.has_ended());
        // Datagrams outlive the port, and their buffers return.
        assert_eq!(datagrams[299].payload(), 299_u32.to_le_bytes());
        drop(datagrams);
        assert_eq!(port.free_buffers(), 1024);
    }
}

#[test]
fn streams_select_and_buffers_bound() {
    let folder = tempfile::tempdir().unwrap();
    let frames = [udp(&[1; 100]), udp(&[2; 300]), other()];
    let spec = capture(&folder.path().join("a.pcap"), &frames);
    for (streams, delivered, dropped) in [
        (None, 1, vec![("not-for-us", 1), ("oversize", 1)]),
        (
            Some(vec![2000, 7]),
            1,
            vec![("not-for-us", 1), ("oversize", 1)],
        ),
        (Some(vec![7]), 0, vec![("demux-miss", 2), ("not-for-us", 1)]),
        (Some(vec![]), 0, vec![("demux-miss", 2), ("not-for-us", 1)]),
    ] {
        let options = Options {
            streams,
            data_room: Some(256),
            ..options(64)
        };
        let mut port = EmbeddedPort::open(&spec, &options).unwrap();
        assert_eq!(all(&mut port, 32).len(), delivered);
        port.close().unwrap();
        let account = port.ledger().account();
        let mut found: Vec<_> = account.dropped.into_iter().collect();
        found.sort_unstable();
        assert_eq!(found, dropped);
        assert!(account.balanced);
    }
}

#[test]
fn fragments_become_one_datagram_in_one_buffer() {
    let folder = tempfile::tempdir().unwrap();
    let mut frames = fragments();
    assert_eq!(frames.len(), 3);
    // Of another datagram the last fragment is lacking.
    frames.extend(fragments()[..2].iter().map(|frame| {
        let mut frame = frame.clone();
        // Another identification (RFC 791), and the checksum that compensates for it.
        let id = u16::from_be_bytes([frame[18], frame[19]]);
        let sum = u16::from_be_bytes([frame[24], frame[25]]);
        frame[18..20].copy_from_slice(&(id + 1).to_be_bytes());
        frame[24..26].copy_from_slice(&(sum - 1).to_be_bytes());
        frame
    }));
    let spec = capture(&folder.path().join("a.pcap"), &frames);
    for (reassemble, data_room, delivered, dropped) in [
        (true, 8192, 1, vec![("reassembly-timeout", 2)]),
        (
            true,
            2048,
            0,
            vec![("oversize", 1), ("reassembly-timeout", 2)],
        ),
        (false, 8192, 0, vec![("ip-fragment", 5)]),
    ] {
        let options = Options {
            reassemble,
            data_room: Some(data_room),
            ..options(64)
        };
        let mut port = EmbeddedPort::open(&spec, &options).unwrap();
        let datagrams = all(&mut port, 32);
        assert_eq!(datagrams.len(), delivered);
        assert!(
            datagrams
                .iter()
                .all(|datagram| datagram.payload() == [9; 4000])
        );
        port.close().unwrap();
        let account = port.ledger().account();
        assert_eq!(account.dropped.into_iter().collect::<Vec<_>>(), dropped);
        assert!(account.balanced);
        drop(datagrams);
        assert_eq!(port.free_buffers(), 64);
    }
}

#[test]
fn frames_that_find_no_room_stay_with_the_caller() {
    let mut port = EmbeddedPort::open("loopback", &options(4096)).unwrap();
    let frame = udp(&[3; 64]);
    let sent = port.send(std::iter::repeat_n(frame.as_slice(), 3000));
    assert!(sent > 0 && sent < 3000 && port.free_buffers() == 4096 - sent);
    let mut frames = Frames::new();
    let mut mbuf = port.alloc(frame.len()).unwrap();
    mbuf.data_mut().copy_from_slice(&frame);
    frames.push(mbuf).unwrap();
    assert_eq!((port.tx(&mut frames), frames.len()), (0, 1));
    let mut received = Frames::new();
    assert_eq!(
        port.rx(1, |datagram| received.push(datagram.into_mbuf()).unwrap()),
        1
    );
    assert_eq!((port.tx(&mut frames), frames.len()), (1, 0));
    received.take_all(|mbuf| port.free(mbuf));
    assert_eq!(port.ledger().account().sent.packets, sent as u64 + 1);
    assert!(port.alloc(port.most() + 1).is_none());
    assert!(port.check_len(0, 13).is_err() && port.check_len(0, 14).is_ok());
    port.close().unwrap();
    assert!(port.alloc(60).is_none() && port.has_ended() && port.tx(&mut frames) == 0);
    let account = port.ledger().account();
    assert!(
        account.balanced && account.dropped["aborted"] == sent as u64,
        "{account:?}"
    );
}

#[test]
fn a_poll_neither_allocates_nor_enters_the_kernel() {
    if TscClock::select(ClockChoice::Tsc).is_err() {
        println!(
            "skipped: the kernel's clock is in use, as neither CPU nor kernel trusts the other"
        );
        return;
    }
    let ((), noise) = listen(|ear| {
        let options = Options {
            streams: Some(vec![2000]),
            data_room: Some(8192),
            ..options(1024)
        };
        let mut port = EmbeddedPort::open("loopback", &options).unwrap();
        let mut mixed = vec![udp(&[1; 64]), other(), vec![0; 14]];
        mixed.extend(fragments());
        let mut kept = Vec::with_capacity(4);
        let mut datagrams = 0;
        ear.during(|| {
            for round in 0..2000 {
                port.send(mixed.iter().map(Vec::as_slice));
                let mut freed = Frames::new();
                datagrams += port.rx(32, |datagram| match round % 20 {
                    0 => {
                        kept.clear();
                        kept.push(datagram.share());
                    }
                    _ => drop(freed.push(datagram.into_mbuf())),
                });
                freed.take_all(|mbuf| port.free(mbuf));
            }
        });
        // Of each round a datagram, and one of the fragments.
        assert_eq!(datagrams, 4000);
        port.close().unwrap();
        assert!(port.ledger().account().balanced);
    });
    noise.assert_none();
}

/// A recording is read through the kernel.
#[test]
fn a_poll_of_a_recording_does_not_allocate() {
    let folder = tempfile::tempdir().unwrap();
    let recording: Vec<_> = (0..2000_u32).map(|n| udp(&n.to_le_bytes())).collect();
    let spec = capture(&folder.path().join("a.pcap"), &recording);
    let (datagrams, noise) = listen(|ear| {
        let mut port = EmbeddedPort::open(&spec, &options(512)).unwrap();
        let mut datagrams = 0;
        ear.during(|| {
            while !port.has_ended() {
                datagrams += port.rx(32, drop);
            }
        });
        datagrams
    });
    assert_eq!((datagrams, noise.allocator_calls), (2000, 0));
}

#[test]
fn a_wrong_request_is_told_from_a_failure() {
    let open = |spec, options: Options| EmbeddedPort::open(spec, &options).err().unwrap();
    for (error, said) in [
        (open("nul", options(64)), "no driver `nul`"),
        (open("null:x=1", options(64)), "has no option `x`"),
        (open("null", options(0)), "a pool of 0 buffers"),
        (
            open(
                "null",
                Options {
                    streams: Some(vec![5, 5]),
                    ..options(64)
                },
            ),
            "streams: UDP port 5 leads to stream 0 and to stream 1",
        ),
    ] {
        assert!(
            error.is_usage() && error.to_string().contains(said),
            "{error}"
        );
    }
    let error = open("pcap:rx=/nowhere/a.pcap", options(64));
    assert!(
        matches!(&error, EmbedError::Port(_)) && !error.is_usage(),
        "{error}"
    );
}

#[test]
fn the_buffers_of_a_recording_hold_any_datagram() {
    let folder = tempfile::tempdir().unwrap();
    let frames = [udp(&vec![5; 65_507]), udp(&[6; 9000])];
    let spec = capture(&folder.path().join("a.pcap"), &frames);
    let mut port = EmbeddedPort::open(&spec, &Options::default()).unwrap();
    let lengths: Vec<_> = all(&mut port, 32)
        .iter()
        .map(|datagram| datagram.payload().len())
        .collect();
    assert_eq!((lengths, port.buffers()), (vec![65_507, 9000], 1024));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever is done with datagrams, each buffer comes back and each frame is accounted for.
    #[test]
    fn buffers_come_back(
        frames in prop::collection::vec((0..4_u8, 0..1500_usize), 1..200),
        burst in 1..80_usize,
    ) {
        let mut port = EmbeddedPort::open("loopback", &options(512)).unwrap();
        let (mut sent, mut kept) = (0, Vec::new());
        for (kind, len) in frames {
            let payload = vec![kind; len];
            let frame = match kind {
                0 => other(),
                1 => payload.into_iter().chain([0; 14]).collect(),
                _ => udp(&payload),
            };
            sent += port.send([frame.as_slice()]) as u64;
            let (mut freed, mut shared) = (Frames::new(), Vec::new());
            port.rx(burst, |datagram| match kind {
                2 => drop(freed.push(datagram.into_mbuf())),
                _ => shared.push(datagram.share()),
            });
            freed.take_all(|mbuf| port.free(mbuf));
            if let Some(datagram) = shared.pop() {
                prop_assert!(datagram.clone().try_into_mbuf().is_err());
                kept.push(datagram);
            }
        }
        port.close().unwrap();
        let account = port.ledger().account();
        prop_assert!(account.balanced && account.from_wire == sent);
        prop_assert_eq!(port.free_buffers(), 512 - kept.len());
        drop(kept);
        prop_assert_eq!(port.free_buffers(), 512);
    }
}
