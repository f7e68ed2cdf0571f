//! A link that goes down, comes back, or goes for good.

use pollux_netns::{Cable, payload, udp_frame};
use pollux_pmd::RxState;

use crate::common::Port;

#[test]
fn traffic_resumes_when_the_link_is_back() {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, "af_packet:va,ring=4");
    let peer = net.peer(7000);
    peer.send(b"before").unwrap();
    assert_eq!(port.receive(1).len(), 1);
    assert!(port.started.port.link().up);

    net.a.ip("link set va down");
    port.wait_for(RxState::Down);
    assert!(!port.started.port.link().up);
    // the ring takes four, the rest stays with the caller, and nothing hangs
    let frames: Vec<_> = (0..6).map(|i| udp_frame(7000, &payload(20, i))).collect();
    assert_eq!(port.send(&frames), 4);
    assert_eq!(port.send(&frames[4..]), 0);
    assert_eq!(port.sent(), (0, 0));

    net.a.ip("link set va up");
    port.wait_for(RxState::Live);
    let mut rest = &frames[4..];
    let began = std::time::Instant::now();
    while !rest.is_empty() && began.elapsed().as_secs() < 10 {
        rest = &rest[port.send(rest)..];
    }
    for i in 0..6 {
        let mut got = [0; 100];
        assert_eq!(peer.recv(&mut got).unwrap(), 20);
        assert_eq!(got[..20], payload(20, i));
    }
    assert_eq!(port.sent(), (6, 0));
    peer.send(b"after").unwrap();
    assert_eq!(port.receive(1).len(), 1);
    assert_eq!(port.stop().delivered, 2);
}

#[test]
fn a_far_end_that_goes_down_is_a_link_that_is_down() {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, "af_packet:va");
    net.b.ip("link set vb down");
    port.wait_for(RxState::Down);
    net.b.ip("link set vb up");
    port.wait_for(RxState::Live);
    port.stop();
}

#[test]
fn a_port_starts_on_a_link_that_is_down() {
    let Some(net) = Cable::new(1500) else { return };
    net.a.ip("link set va down");
    let mut port = Port::open(&net, "af_packet:va");
    assert_eq!(port.started.rx[0].state(), RxState::Down);
    net.a.ip("link set va up");
    port.wait_for(RxState::Live);
    net.peer(7000).send(b"x").unwrap();
    assert_eq!(port.receive(1).len(), 1);
    port.stop();
}

#[test]
fn an_interface_that_is_deleted_is_a_link_that_is_down() {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, "af_packet:va,ring=4");
    net.a.ip("link delete va");
    port.wait_for(RxState::Down);
    let frames: Vec<_> = (0..6).map(|i| udp_frame(7000, &payload(20, i))).collect();
    assert_eq!(port.send(&frames), 4);
    // another one of that name is not the same
    net.a.ip("link add va type veth peer name vc");
    net.a.ip("link set vc up");
    net.a.ip("link set va up");
    assert!(!port.started.port.link().up);
    let sent = port.started.tx[0].sent();
    assert_eq!(port.stop().from_wire, 0);
    assert_eq!(
        (sent.packets(), sent.errors()),
        (0, 4),
        "what was never sent is told"
    );
}

#[test]
fn housekeeping_sees_speed_and_each_change_of_the_link() {
    let Some(net) = Cable::new(1500) else { return };
    let port = Port::open(&net, "af_packet:va");
    let link = || port.started.port.link();
    let before = link();
    // what a veth pair says of itself
    assert_eq!(before.to_string(), "up, 10 Gb/s");
    net.b.ip("link set vb down");
    assert!(!link().up);
    net.b.ip("link set vb up");
    let after = link();
    assert!(after.up, "the kernel sets a veth pair's carrier at once");
    assert_eq!(after.changes, before.changes + 2);
    net.a.ip("link delete va");
    assert!(!link().up && port.started.port.statistics().len() == 2);
    port.stop();
}
