//! DPDK's packet sockets on a veth pair, against sockets of the kernel.

use pollux_mempool::{Mempool, PoolConfig};
use pollux_netns::{Cable, assert_udp, payload, udp_frame};

use crate::common::Port;

#[test]
fn frames_cross_both_ways_byte_for_byte() {
    let Some(cable) = Cable::new(1500) else {
        return;
    };
    let mut port = Port::open(&cable, "dpdk:net_af_packet_a;iface=va");
    let peer = cable.peer(7000);
    let lens = [60, 61, 64, 128, 511, 512, 1000, 1500, 1514];
    for (i, &len) in lens.iter().enumerate() {
        let data = payload(len - 42, i as u8);
        assert_eq!(peer.send(&data).unwrap(), data.len());
        let frames = port.receive(1);
        assert_eq!(frames.len(), 1, "{len} B");
        assert_udp(&frames[0].bytes, 7000, &data);

        assert_eq!(port.send(&[udp_frame(7000, &data)]), 1);
        let mut got = vec![0; 65_536];
        let n = peer.recv(&mut got).unwrap();
        assert_eq!(got[..n], data, "{len} B");
    }
    let n = lens.len() as u64;
    assert_eq!(port.sent(), (n, 0));
    let counters = port.started.port.statistics();
    assert!(
        counters.contains(&("rx_good_packets".into(), n)),
        "{counters:?}"
    );
    let balance = port.stop();
    assert_eq!((balance.from_wire, balance.delivered), (n, n));
    assert_eq!(balance.bytes, lens.iter().sum::<usize>() as u64);
}

/// Slots that hold jumbo frames. The driver of packet sockets takes no MTU above 1500.
const JUMBO: &str = "dpdk:net_af_packet_j;iface=va;blocksz=65536;framesz=16384;framecnt=64";

#[test]
fn jumbo_frames_cross_both_ways_in_large_buffers() {
    let Some(cable) = Cable::new(9000) else {
        return;
    };
    let pool = PoolConfig {
        buffers: 512,
        data_room: 16384,
        ..PoolConfig::default()
    };
    let pool = Mempool::new(pool).unwrap();
    let refused = Port::with_pool(&cable.a, &format!("{JUMBO},mtu=9000"), 1, pool.clone());
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("an MTU of 9000 asked for"), "{error}");
    let mut port = Port::with_pool(&cable.a, JUMBO, 1, pool).unwrap();
    let peer = cable.peer(7000);
    for (i, len) in [60, 1514, 4097, 9013, 9014].into_iter().enumerate() {
        let data = payload(len - 42, i as u8);
        peer.send(&data).unwrap();
        let frames = port.receive(1);
        assert_eq!(frames.len(), 1, "{len} B");
        assert_udp(&frames[0].bytes, 7000, &data);
        assert_eq!(port.send(&[udp_frame(7000, &data)]), 1);
        let mut got = vec![0; 65_536];
        let n = peer.recv(&mut got).unwrap();
        assert_eq!(got[..n], data, "{len} B");
    }
    let balance = port.stop();
    assert_eq!((balance.from_wire, balance.delivered), (5, 5));
}

#[test]
fn flows_are_shared_out_over_two_queues() {
    let Some(cable) = Cable::new(1500) else {
        return;
    };
    let spec = "dpdk:net_af_packet_q;iface=va;qpairs=2,promisc";
    let mut port = Port::try_open(&cable.a, spec, 2, 2048).unwrap();
    let mut expected = 0;
    for flow in 0..64_u16 {
        let peer = cable.peer(10_000 + flow);
        peer.send(&payload(100, flow as u8)).unwrap();
        expected += 1;
    }
    let frames = port.receive(expected);
    assert_eq!(frames.len(), expected);
    let second = frames.iter().filter(|frame| frame.queue == 1).count();
    assert!(
        (1..expected).contains(&second),
        "{second} of {expected} on the second queue"
    );
    port.stop();
}
