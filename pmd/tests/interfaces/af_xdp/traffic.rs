//! Sent frames arrive, byte for byte and once.

use std::net::UdpSocket;
use std::time::Instant;

use pollux_mempool::{Burst, Mempool, PoolConfig};
use pollux_pmd_testkit::netns::{Cable, Namespace, assert_udp, payload, udp_frame};

use crate::common::{PATIENCE, Port};
use crate::interface;

/// All modes that a veth pair supports.
const WAYS: [&str; 4] = [
    "af_xdp:va",
    "af_xdp:va,attach=skb",
    "af_xdp:va,mode=copy,attach=native,wakeup=off",
    "af_xdp:va,busy-poll=20",
];

fn both_ways(spec: &str, mtu: u32, frame_lens: &[usize]) {
    let Some(net) = Cable::new(mtu) else { return };
    let mut port = Port::open(&net, spec);
    let peer = net.peer(7000);
    for (i, &len) in frame_lens.iter().enumerate() {
        let data = payload(len - 42, i as u8);
        assert_eq!(peer.send(&data).unwrap(), data.len());
        let frames = port.receive(1);
        assert_eq!(frames.len(), 1, "{spec}: {len} B");
        assert_udp(&frames[0].bytes, 7000, &data);
        assert_eq!(frames[0].wire_ns, None);

        assert_eq!(port.send(&[udp_frame(7000, &data)]), 1);
        let mut got = vec![0; 65_536];
        let n = peer.recv(&mut got).unwrap();
        assert_eq!(got[..n], data, "{spec}: {len} B");
    }
    let n = frame_lens.len() as u64;
    let began = Instant::now();
    while port.sent() != (n, 0) && began.elapsed() < PATIENCE {
        port.send(&[]);
    }
    assert_eq!(port.sent(), (n, 0));
    let balance = port.stop();
    assert_eq!((balance.from_wire, balance.delivered), (n, n), "{spec}");
    assert_eq!(balance.bytes, frame_lens.iter().sum::<usize>() as u64);
}

#[test]
fn standard_frames_cross_both_ways() {
    let lens = [
        42, 43, 59, 60, 61, 64, 128, 511, 512, 1000, 1500, 1513, 1514,
    ];
    for spec in WAYS {
        both_ways(spec, 1500, &lens);
    }
}

#[test]
fn jumbo_frames_cross_both_ways_in_chains() {
    let lens = [
        60, 1514, 1792, 1793, 1919, 1920, 1921, 2048, 2049, 4096, 4097, 9013, 9014,
    ];
    both_ways("af_xdp:va", 9000, &lens);
    both_ways("af_xdp:va,attach=skb", 9000, &lens);
}

#[test]
fn rings_wrap_without_loss() {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, "af_xdp:va");
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
        let mut rest = &frames[..];
        while !rest.is_empty() {
            rest = &rest[port.send(rest)..];
        }
        for i in 0..50_u32 {
            let mut got = [0; 100];
            assert_eq!(peer.recv(&mut got).unwrap(), 4);
            assert_eq!(got[..4], (round * 50 + i).to_be_bytes());
        }
    }
    port.send(&[]);
    assert_eq!(port.sent(), (2000, 0));
    assert_eq!(port.stop().delivered, 2000);
}

#[test]
fn buffers_of_2048_bytes_and_of_4096_are_aligned_chunks() {
    for (data_room, headroom) in [(1920, 128), (3968, 128), (3000, 1096), (6000, 128)] {
        let Some(net) = Cable::new(1500) else { return };
        let pool = Mempool::new(PoolConfig {
            buffers: 512,
            data_room,
            headroom,
            ..PoolConfig::default()
        });
        let mut port = Port::with_pool(&net.a, "af_xdp:va", 1, pool.unwrap()).unwrap();
        let peer = net.peer(7000);
        for i in 0..200 {
            let data = payload(18 + 7 * i, i as u8);
            peer.send(&data).unwrap();
            let frames = port.receive(1);
            assert_udp(&frames[0].bytes, 7000, &data);
            assert_eq!(port.send(&[udp_frame(7000, &data)]), 1);
            let mut got = [0; 2000];
            assert_eq!(peer.recv(&mut got).unwrap(), data.len());
            assert_eq!(got[..data.len()], data);
        }
        assert_eq!(port.stop().delivered, 200);
    }
}

/// Frames in chains, frames of another pool, and invalid frames among them.
#[test]
fn whatever_can_be_sent_is_sent() {
    for mtu in [1500, 9000] {
        let Some(net) = Cable::new(mtu) else { return };
        let mut port = Port::open(&net, "af_xdp:va");
        let peer = net.peer(7000);
        let other = Mempool::new(PoolConfig {
            buffers: 64,
            ..PoolConfig::default()
        });
        let (other, mut cache) = (other.unwrap(), port.pool.cache(16).unwrap());
        let mut foreign = other.cache(16).unwrap();
        let data = payload(1400, 5);
        let frame = udp_frame(7000, &data);
        let mut burst = Burst::<8>::new();
        // in segments of 100 B, one of them empty, from both pools
        let mut chain = cache.alloc_from(&frame[..100]).unwrap();
        for (i, piece) in frame[100..].chunks(100).enumerate() {
            let from = if i % 2 == 0 { &mut foreign } else { &mut cache };
            chain.chain(from.alloc_from(piece).unwrap()).unwrap();
        }
        chain.chain(cache.alloc_from(&[]).unwrap()).unwrap();
        burst.push(chain).unwrap();
        burst.push(cache.alloc_from(&frame[..13]).unwrap()).unwrap();
        burst.push(foreign.alloc_from(&frame).unwrap()).unwrap();
        let (head, tail) = frame.split_at(42);
        let mut two = cache.alloc_from(head).unwrap();
        two.chain(cache.alloc_from(tail).unwrap()).unwrap();
        burst.push(two).unwrap();
        let long = udp_frame(7000, &payload(mtu as usize - 27, 0));
        burst.push(cache.alloc_from(&long).unwrap()).unwrap();
        // a buffer whose headroom is used
        let mut headed = cache.alloc_from(tail).unwrap();
        headed.prepend(42).unwrap().copy_from_slice(head);
        burst.push(headed).unwrap();
        assert_eq!(port.started.tx[0].tx(&mut cache, &mut burst), 6);
        for _ in 0..4 {
            let mut got = [0; 2000];
            assert_eq!(peer.recv(&mut got).unwrap(), 1400);
            assert_eq!(got[..1400], data);
        }
        while port.sent().0 < 4 {
            port.send(&[]);
        }
        assert_eq!(port.sent(), (4, 2));
        assert_eq!(port.started.tx[0].sent().bytes(), 4 * frame.len() as u64);
        drop((cache, foreign));
        port.stop();
        assert_eq!(other.available(), 64);
    }
}

/// A cable of two queues.
pub(super) fn two_queues() -> Option<Cable> {
    several_queues(2)
}

/// A cable of several queues each way, at both ends.
pub(super) fn several_queues(queues: u16) -> Option<Cable> {
    let cable = Cable {
        a: Namespace::new()?,
        b: Namespace::new()?,
    };
    cable.a.ip(&format!(
        "link add va address 02:00:00:00:00:0a numrxqueues {queues} numtxqueues {queues} type veth \
         peer name vb address 02:00:00:00:00:0b numrxqueues {queues} numtxqueues {queues} netns {}",
        cable.b.name()
    ));
    cable.a.ip("link set va up");
    cable.b.ip("link set vb up");
    cable.b.ip("address add 10.77.0.1/24 dev vb");
    cable
        .b
        .ip("neighbour add 10.77.0.2 lladdr 02:00:00:00:00:0a dev vb nud permanent");
    Some(cable)
}

#[test]
fn two_queues_share_flows_out_and_their_buffers() {
    let Some(net) = two_queues() else { return };
    let port = Port::try_open(&net.a, "af_xdp:va", 2, 1024).unwrap();
    interface::two_queues_share_flows_out(&net, port, |port, flow, peer| {
        assert_eq!(port.send(&[udp_frame(flow, &[1; 20])]), 1);
        assert_eq!(peer.recv(&mut [0; 100]).unwrap(), 20);
    });

    // The second queue alone: the first one's frames pass to the kernel.
    net.a.ip("address add 10.77.0.2/24 dev va");
    let kernel = net.a.within(|| UdpSocket::bind("10.77.0.2:9000").unwrap());
    kernel.set_nonblocking(true).unwrap();
    let mut port = Port::try_open(&net.a, "af_xdp:va,queue=1", 1, 1024).unwrap();
    for flow in 0..40_u16 {
        net.peer(7000 + flow).send(b"x").unwrap();
    }
    let (mut passed, mut received, began) = (0, 0, Instant::now());
    while passed + received < 40 && began.elapsed() < PATIENCE {
        received += port.poll().len();
        passed += usize::from(kernel.recv(&mut [0; 10]).is_ok());
    }
    assert!(passed > 0 && received > 0, "{passed} and {received}");
    assert_eq!(passed + received, 40);
    assert_eq!(port.stop().from_wire, received as u64);
}

#[test]
fn a_sender_that_does_not_wait_is_accounted_for() {
    for spec in ["af_xdp:va", "af_xdp:va,attach=skb"] {
        let Some(net) = Cable::new(1500) else { return };
        let port = Port::open(&net, spec);
        println!("{spec}");
        interface::a_flood_is_accounted_for(port, &net.peer(7000), Port::dropped_total);
    }
}
