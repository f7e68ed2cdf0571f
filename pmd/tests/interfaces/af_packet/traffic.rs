//! Sent frames arrive, byte for byte and once.

use std::net::UdpSocket;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pollux_pmd::mempool::time::Ns;
use pollux_pmd::{ArrivalTime, Cause, Clock, TscClock};
use pollux_pmd_testkit::netns::{Cable, assert_udp, payload, udp_frame};

use crate::common::Port;
use crate::interface;

fn unix_ns() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos() as u64
}

fn both_ways(mtu: u32, frame_lens: &[usize]) {
    let Some(net) = Cable::new(mtu) else { return };
    let mut port = Port::open(&net, "af_packet:va");
    let peer = net.peer(7000);
    let before = unix_ns();
    for (i, &len) in frame_lens.iter().enumerate() {
        let data = payload(len - 42, i as u8);
        assert_eq!(peer.send(&data).unwrap(), data.len());
        let frames = port.receive(1);
        assert_eq!(frames.len(), 1, "{len} B");
        assert_udp(&frames[0].bytes, 7000, &data);
        assert!(frames[0].trusted, "the kernel left the checksum to a NIC");
        let stamp = frames[0].wire_ns.unwrap();
        assert!((before..=unix_ns()).contains(&stamp), "{before} {stamp}");

        assert_eq!(port.send(&[udp_frame(7000, &data)]), 1);
        let mut got = vec![0; 65_536];
        let n = peer.recv(&mut got).unwrap();
        assert_eq!(got[..n], data, "{len} B");
    }
    let n = frame_lens.len() as u64;
    assert_eq!(port.sent(), (n, 0));
    let balance = port.stop();
    assert_eq!((balance.from_wire, balance.delivered), (n, n));
    assert_eq!(balance.bytes, frame_lens.iter().sum::<usize>() as u64);
}

#[test]
fn standard_frames_cross_both_ways() {
    both_ways(
        1500,
        &[
            42, 43, 59, 60, 61, 64, 128, 511, 512, 1000, 1500, 1513, 1514,
        ],
    );
}

#[test]
fn jumbo_frames_cross_both_ways_in_chains() {
    both_ways(
        9000,
        &[60, 1514, 2048, 2049, 4096, 4097, 6144, 6145, 9013, 9014],
    );
}

/// The arrival time of a frame that waits for a poll is when the kernel took it, not when it was
/// polled.
#[test]
fn arrival_is_the_kernel_s_time() {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, "af_packet:va");
    assert_eq!(port.started.rx[0].arrival_time(), ArrivalTime::Kernel);
    let (peer, clock) = (net.peer(7000), TscClock::get());
    let (before, _) = (clock.now(), peer.send(&payload(60, 1)).unwrap());
    let sent = clock.now();
    std::thread::sleep(Duration::from_millis(20));
    let (mut held, mut rounds) = (Vec::new(), 0);
    while held.is_empty() && rounds < 1000 {
        port.poll_and_hold(&mut held);
        rounds += 1;
    }
    // The kernel's clock is read next to the counter: they may be some microseconds apart, more if
    // the test is preempted in between, and that only makes the arrival earlier.
    let slack = clock.to_cycles(Ns(1_000_000));
    let arrival = held[0].arrival();
    assert!(
        arrival.0 <= sent.0 + slack,
        "{}",
        clock.to_ns(arrival.since(sent)).0
    );
    assert!(arrival.0 + 20 * slack >= before.0);
    drop(held);
    port.stop();
}

#[test]
fn rings_wrap_without_loss() {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, "af_packet:va,qdisc=off");
    let peer = net.peer(7000);
    for round in 0..40_u32 {
        for i in 0..50_u32 {
            peer.send(&(round * 50 + i).to_be_bytes()).unwrap();
        }
        let frames = port.receive(50);
        assert_eq!(frames.len(), 50);
        let frames: Vec<_> = frames
            .iter()
            .map(|frame| udp_frame(7000, &frame.bytes[42..46]))
            .collect();
        assert_eq!(port.send(&frames), 50);
        for i in 0..50_u32 {
            let mut got = [0; 100];
            assert_eq!(peer.recv(&mut got).unwrap(), 4);
            assert_eq!(got[..4], (round * 50 + i).to_be_bytes());
        }
    }
    assert_eq!(port.sent(), (2000, 0));
    assert_eq!(port.stop().delivered, 2000);
}

#[test]
fn a_sender_that_does_not_wait_is_accounted_for() {
    let Some(net) = Cable::new(1500) else { return };
    let port = Port::open(&net, "af_packet:va");
    interface::a_flood_is_accounted_for(port, &net.peer(7000), |port| {
        port.dropped(Cause::KernelDrop)
    });
}

#[test]
fn queues_share_flows_out() {
    let Some(net) = Cable::new(1500) else { return };
    let port = Port::try_open(&net.a, "af_packet:va", 2, 1024).unwrap();
    interface::two_queues_share_flows_out(&net, port, |_, _, _| {});
    for mode in ["cpu", "queue"] {
        let spec = format!("af_packet:va,fanout={mode}");
        let mut port = Port::try_open(&net.a, &spec, 2, 1024).unwrap();
        net.peer(7000).send(b"x").unwrap();
        assert_eq!(port.receive(1).len(), 1);
    }
}

#[test]
fn a_vlan_tag_is_where_it_was() {
    let Some(net) = Cable::new(1500) else { return };
    let mut near = Port::open(&net, "af_packet:va");
    let mut far = Port::try_open(&net.b, "af_packet:vb,promisc=on", 1, 64).unwrap();
    let tagged = |tags: &[u8], len| {
        let plain = udp_frame(7000, &payload(len, 3));
        [&plain[..12], tags, &plain[12..]].concat()
    };
    // a customer tag around a full MTU, a service tag, both, none
    let frames = vec![
        tagged(&[0x81, 0x00, 0xe0, 0x05], 1472),
        tagged(&[0x88, 0xa8, 0x0f, 0xff], 1468),
        tagged(&[0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x00, 0x09], 20),
        tagged(&[], 1472),
    ];
    assert_eq!(near.send(&frames), 4);
    let got: Vec<_> = far
        .receive(4)
        .into_iter()
        .map(|frame| frame.bytes)
        .collect();
    assert!(
        got == frames,
        "{:?}",
        got.iter().map(|frame| &frame[..30]).collect::<Vec<_>>()
    );
    assert_eq!(near.sent(), (4, 0));
    assert_eq!(far.stop().delivered, 4);
}

#[test]
fn frames_on_loopback_are_seen_once() {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, "af_packet:lo,ring=4");
    let socket = net.a.within(|| UdpSocket::bind("127.0.0.1:0").unwrap());
    let to = socket.local_addr().unwrap();
    for _ in 0..3 {
        socket.send_to(&payload(60_000, 1), to).unwrap();
    }
    let frames = port.receive(3);
    assert_eq!(
        frames
            .iter()
            .map(|frame| frame.bytes.len())
            .collect::<Vec<_>>(),
        [60_042; 3]
    );
    assert!(
        frames
            .iter()
            .all(|frame| frame.bytes[42..] == payload(60_000, 1))
    );
    let balance = port.stop();
    assert_eq!((balance.from_wire, balance.delivered), (3, 3));
}
