//! DPDK's packet sockets on a veth pair, against sockets of the kernel.

use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::{Cause, RxState};
use pollux_pmd_testkit::netns::{Cable, Namespace, payload};

use crate::common::Port;
use crate::start_eal;

#[test]
fn frames_cross_both_ways_byte_for_byte() {
    start_eal();
    let Some(cable) = Cable::new(1500) else {
        return;
    };
    let mut port = Port::open(&cable, "dpdk:net_af_packet_a;iface=va");
    let peer = cable.peer(7000);
    let lens = [60, 61, 64, 128, 511, 512, 1000, 1500, 1514];
    let n = port.exchange(&peer, &lens);
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
    start_eal();
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
    assert!(error.contains("an MTU of 9000 requested"), "{error}");
    let mut port = Port::with_pool(&cable.a, JUMBO, 1, pool).unwrap();
    let peer = cable.peer(7000);
    assert_eq!(port.exchange(&peer, &[60, 1514, 4097, 9013, 9014]), 5);
    let balance = port.stop();
    assert_eq!((balance.from_wire, balance.delivered), (5, 5));
}

#[test]
fn flows_are_shared_out_over_two_queues() {
    start_eal();
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

#[test]
fn changes_of_the_link_are_counted() {
    start_eal();
    let Some(namespace) = Namespace::new() else {
        return;
    };
    let mut port = Port::try_open(&namespace, "dpdk:net_tap_l;iface=plxl", 1, 1024).unwrap();
    let start = port.started.port.link();
    assert!(start.up);
    for change in 1..=4 {
        let up = change % 2 == 0;
        namespace.ip(if up {
            "link set plxl up"
        } else {
            "link set plxl down"
        });
        // The first look counts the change, later ones do not.
        port.started.rx[0].sync_counters();
        let state = if up { RxState::Live } else { RxState::Down };
        assert_eq!(port.started.rx[0].state(), state);
        for _ in 0..2 {
            let link = port.started.port.link();
            assert_eq!((link.up, link.changes), (up, start.changes + change));
        }
    }
    port.stop();
}

#[test]
fn frames_that_wait_for_a_buffer_are_not_lost_ones() {
    start_eal();
    let Some(cable) = Cable::new(1500) else {
        return;
    };
    let mut port = Port::try_open(&cable.a, "dpdk:net_af_packet_e;iface=va", 1, 256).unwrap();
    let mut held = Vec::new();
    while let Some(mbuf) = port.cache.alloc() {
        held.push(mbuf);
    }
    let peer = cable.peer(7000);
    for i in 0..20 {
        peer.send(&payload(100, i)).unwrap();
    }
    for _ in 0..100 {
        assert!(port.poll().is_empty());
        port.started.rx[0].sync_counters();
    }
    drop(held);
    assert_eq!(port.receive(20).len(), 20);
    port.started.rx[0].sync_counters();
    assert_eq!(port.dropped(Cause::NoMbuf), 0);
    let balance = port.stop();
    assert_eq!((balance.from_wire, balance.delivered), (20, 20));
}
