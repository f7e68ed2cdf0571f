//! Lost frames have a cause; refused configurations report the reason.

use std::time::Instant;

use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::Cause;
use pollux_pmd_testkit::netns::{Cable, payload, udp_frame};

use crate::common::{PATIENCE, Port};
use crate::interface::{self, open_error};

#[test]
fn a_ring_that_is_full_and_a_pool_that_is_empty_are_told_apart() {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, "af_xdp:va,ring=16");
    let peer = net.peer(7000);
    for _ in 0..100 {
        peer.send(b"one of a flood").unwrap();
    }
    port.started.rx[0].sync_counters();
    assert_eq!(port.dropped(Cause::RingFull), 84);
    assert_eq!(port.receive(16).len(), 16);
    port.started.rx[0].sync_counters();
    assert_eq!(port.dropped(Cause::RingFull), 84, "each is counted once");

    // All buffers that the kernel does not hold are held here.
    let mut held = Vec::new();
    while let Some(mbuf) = port.cache.alloc() {
        held.push(mbuf);
    }
    let (mut sent, mut received) = (0, 0);
    let began = Instant::now();
    while port.dropped(Cause::NoMbuf) < 10 && began.elapsed() < PATIENCE {
        peer.send(b"another").unwrap();
        sent += 1;
        for frame in port.poll_and_hold(&mut held) {
            assert_eq!(frame.len(), 49);
            received += 1;
        }
        port.started.rx[0].sync_counters();
    }
    assert_eq!(received + 10, sent);
    drop(held);
    assert_eq!(port.poll().len(), 0, "buffers are posted");
    peer.send(b"again").unwrap();
    assert_eq!(port.receive(1).len(), 1);
    let balance = port.stop();
    assert_eq!(balance.from_wire, 100 + sent + 1);
    assert_eq!(balance.dropped_for(Cause::NoMbuf), 10);
    assert_eq!(balance.dropped_for(Cause::RingFull), 84);
}

#[test]
fn what_is_in_the_ring_at_the_end_is_aborted() {
    let Some(net) = Cable::new(1500) else { return };
    let port = Port::open(&net, "af_xdp:va,ring=8");
    let peer = net.peer(7000);
    for _ in 0..20 {
        peer.send(b"not polled").unwrap();
    }
    let balance = port.stop();
    assert_eq!(balance.from_wire, 20);
    assert_eq!(balance.dropped_for(Cause::Aborted), 8);
    assert_eq!(balance.dropped_for(Cause::RingFull), 12);
}

#[test]
fn frames_that_the_link_cannot_carry_are_errors() {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, "af_xdp:va");
    let peer = net.peer(7000);
    let short = vec![0; 13];
    let long = udp_frame(7000, &payload(1473, 0));
    assert_eq!(port.send(&[short, long, udp_frame(7000, b"good")]), 3);
    let mut got = [0; 2000];
    assert_eq!(peer.recv(&mut got).unwrap(), 4);
    port.send(&[]);
    assert_eq!(port.sent(), (1, 2));
    port.stop();
}

#[test]
fn a_spec_that_cannot_work_says_what_to_do() {
    let Some(net) = Cable::new(1500) else { return };
    let missing = open_error(&net, "af_xdp:eth7");
    assert!(missing.contains("no network interface `eth7`"), "{missing}");
    assert!(open_error(&net, "af_xdp").contains("needs an interface"));
    assert!(open_error(&net, "af_xdp:va,queues=2").contains("no option `queues`"));
    let zero_copy = open_error(&net, "af_xdp:va,mode=zerocopy");
    assert!(zero_copy.contains("set another data_room"), "{zero_copy}");
    let queue = open_error(&net, "af_xdp:va,queue=64");
    assert!(queue.contains("so none from 64 on"), "{queue}");
    let steer = open_error(&net, "af_xdp:va,steer=5000:0");
    assert!(steer.contains("no classifier for UDP ports"), "{steer}");
    let steer = open_error(&net, "af_xdp:va,steer=5000:1");
    assert!(steer.contains("steering to queue 1"), "{steer}");

    let pool = |data_room, headroom| {
        let config = PoolConfig {
            buffers: 64,
            data_room,
            headroom,
            ..PoolConfig::default()
        };
        Mempool::new(config).unwrap()
    };
    let refused = |spec, pool| match Port::with_pool(&net.a, spec, 1, pool) {
        Ok(_) => panic!("{spec} opened"),
        Err(error) => error.to_string(),
    };
    let small = refused("af_xdp:va", pool(1024, 128));
    assert!(small.contains("set a larger data_room"), "{small}");
    let headroom = refused("af_xdp:va", pool(64, 4096));
    assert!(headroom.contains("set a smaller headroom"), "{headroom}");
    let veth = refused("af_xdp:va,mode=zerocopy", pool(1920, 128));
    assert!(veth.contains("the NIC's driver has no zero copy"), "{veth}");
}

#[test]
fn an_interface_that_is_taken_says_by_what() {
    let Some(net) = Cable::new(1500) else { return };
    let port = Port::open(&net, "af_xdp:va");
    let began = Instant::now();
    let error = open_error(&net, "af_xdp:va");
    assert!(
        error.contains("this program itself has it: stop that, or take another queue="),
        "{error}"
    );
    assert!(began.elapsed() < PATIENCE);
    port.stop();
}

#[test]
fn without_permission_the_message_names_the_capabilities() {
    interface::without_permission_the_message_names_the_capabilities(
        "af_xdp:lo",
        "setcap cap_net_raw,cap_net_admin,cap_bpf",
    );
}
