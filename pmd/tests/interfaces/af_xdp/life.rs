//! Start, stop, and resources after the end.

use std::time::Instant;

use pollux_mempool::Burst;
use pollux_pmd::{RxState, StartedPort};
use pollux_pmd_testkit::netns::{Cable, payload, udp_frame};

use crate::common::{PATIENCE, Port};
use crate::interface;

fn program_is_attached(net: &Cable) -> bool {
    net.a.ip("link show va").contains("xdp")
}

#[test]
fn a_port_is_started_again_at_once() {
    let Some(net) = Cable::new(1500) else { return };
    let peer = net.peer(7000);
    for i in 0..20 {
        let mut port = Port::open(&net, "af_xdp:va");
        peer.send(&[i; 20]).unwrap();
        let frames = port.receive(1);
        assert_eq!(frames[0].bytes[42..], [i; 20]);
        assert_eq!(port.send(&[udp_frame(7000, &[i; 30])]), 1);
        let balance = port.stop();
        assert_eq!((balance.from_wire, balance.delivered), (1, 1));
        let mut got = [0; 100];
        assert_eq!(peer.recv(&mut got).unwrap(), 30);
    }
    assert!(!program_is_attached(&net));
}

#[test]
fn a_port_that_is_just_dropped_leaves_no_program_and_no_buffer() {
    let Some(net) = Cable::new(1500) else { return };
    for ports_first in [true, false, true] {
        let port = Port::open(&net, "af_xdp:va");
        assert!(program_is_attached(&net));
        net.peer(7000).send(b"not polled").unwrap();
        let StartedPort {
            port: handle,
            rx,
            tx,
        } = port.started;
        if ports_first {
            drop(handle);
            drop((rx, tx));
        } else {
            drop((tx, rx));
            drop(handle);
        }
        assert!(!program_is_attached(&net));
        drop(port.cache);
        assert_eq!(port.pool.available(), port.pool.buffers());
    }
}

#[test]
fn a_port_moves_to_another_thread() {
    let Some(net) = Cable::new(1500) else { return };
    let peer = net.peer(7000);
    let mut port = Port::open(&net, "af_xdp:va");
    for i in 0..3 {
        port = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                peer.send(&payload(50, i)).unwrap();
                assert_eq!(port.receive(1)[0].bytes[42..], payload(50, i));
                assert_eq!(port.send(&[udp_frame(7000, &payload(60, i))]), 1);
                port
            });
            thread.join().unwrap()
        });
        let mut got = [0; 100];
        assert_eq!(peer.recv(&mut got).unwrap(), 60);
        assert_eq!(got[..60], payload(60, i));
    }
    assert_eq!(port.stop().delivered, 3);
}

#[test]
fn traffic_resumes_when_the_link_is_back() {
    interface::traffic_resumes_when_the_link_is_back("af_xdp:va,ring=4");
}

#[test]
fn an_interface_that_is_deleted_is_gone() {
    interface::an_interface_that_is_deleted_is_gone("af_xdp:va,ring=4");
}

#[test]
fn a_loop_that_sleeps_is_woken_by_a_frame() {
    let Some(net) = Cable::new(1500) else { return };
    let port = Port::open(&net, "af_xdp:va");
    interface::a_loop_that_sleeps_is_woken_by_a_frame(port, &net.peer(7000));
}

#[test]
fn a_started_port_allocates_nothing() {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, "af_xdp:va");
    let peer = net.peer(7000);
    let StartedPort { rx, tx, .. } = &mut port.started;
    let (mut burst, mut echoed, began) = (Burst::<32>::new(), 0, Instant::now());
    let before = pollux_pmd_testkit::guard::allocator_calls();
    while echoed < 2000 && began.elapsed() < PATIENCE {
        for _ in 0..8 {
            let _ = peer.send(b"to be sent back");
        }
        rx[0].rx(&mut port.cache, &mut burst);
        rx[0].sync_counters();
        echoed += tx[0].tx(&mut port.cache, &mut burst);
    }
    assert_eq!(pollux_pmd_testkit::guard::allocator_calls(), before);
    assert!(echoed >= 2000, "{echoed}");
    port.count_delivered(echoed as u64);
    drop(burst);
    port.stop();
}

#[test]
fn what_a_link_without_a_far_end_drops_is_an_error() {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, "af_xdp:va");
    net.b.ip("link set vb down");
    port.wait_for(RxState::Down);
    let frames: Vec<_> = (0..20).map(|i| udp_frame(7000, &payload(20, i))).collect();
    assert_eq!(port.send(&frames), 20);
    net.b.ip("link set vb up");
    port.wait_for(RxState::Live);
    let peer = net.peer(7000);
    assert_eq!(port.send(&frames[..1]), 1);
    assert_eq!(peer.recv(&mut [0; 100]).unwrap(), 20);
    let began = Instant::now();
    while port.sent() != (1, 20) && began.elapsed() < PATIENCE {
        port.send(&[]);
    }
    assert_eq!(port.sent(), (1, 20));
    port.stop();
}
