//! A link that goes down, comes back, or goes for good.

use pollux_pmd::RxState;

use crate::net::{Net, ip};
use crate::support::{Port, payload, udp_frame};

#[test]
fn traffic_resumes_when_the_link_is_back() {
    let Some(net) = Net::new(1500) else { return };
    let mut port = Port::open(&net, "af_packet:va,ring=4");
    let peer = net.peer(7000);
    peer.send(b"before").unwrap();
    assert_eq!(port.receive(1).len(), 1);
    assert!(port.started.port.link_is_up());

    ip(&format!("-n {} link set va down", net.a));
    port.wait_for(RxState::Down);
    assert!(!port.started.port.link_is_up());
    // the ring takes four, the rest stays with the caller, and nothing hangs
    let frames: Vec<_> = (0..6).map(|i| udp_frame(7000, &payload(20, i))).collect();
    assert_eq!(port.send(&frames), 4);
    assert_eq!(port.send(&frames[4..]), 0);
    assert_eq!(port.sent(), (0, 0));

    ip(&format!("-n {} link set va up", net.a));
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
    let Some(net) = Net::new(1500) else { return };
    let mut port = Port::open(&net, "af_packet:va");
    ip(&format!("-n {} link set vb down", net.b));
    port.wait_for(RxState::Down);
    ip(&format!("-n {} link set vb up", net.b));
    port.wait_for(RxState::Live);
    port.stop();
}

#[test]
fn a_port_starts_on_a_link_that_is_down() {
    let Some(net) = Net::new(1500) else { return };
    ip(&format!("-n {} link set va down", net.a));
    let mut port = Port::open(&net, "af_packet:va");
    assert_eq!(port.started.rx[0].state(), RxState::Down);
    ip(&format!("-n {} link set va up", net.a));
    port.wait_for(RxState::Live);
    net.peer(7000).send(b"x").unwrap();
    assert_eq!(port.receive(1).len(), 1);
    port.stop();
}

#[test]
fn an_interface_that_is_deleted_is_a_link_that_is_down() {
    let Some(net) = Net::new(1500) else { return };
    let mut port = Port::open(&net, "af_packet:va,ring=4");
    ip(&format!("-n {} link delete va", net.a));
    port.wait_for(RxState::Down);
    let frames: Vec<_> = (0..6).map(|i| udp_frame(7000, &payload(20, i))).collect();
    assert_eq!(port.send(&frames), 4);
    // another one of that name is not the same
    ip(&format!("-n {} link add va type veth peer name vc", net.a));
    ip(&format!("-n {} link set vc up", net.a));
    ip(&format!("-n {} link set va up", net.a));
    assert!(!port.started.port.link_is_up());
    let sent = port.started.tx[0].sent();
    assert_eq!(port.stop().from_wire, 0);
    assert_eq!(
        (sent.packets(), sent.errors()),
        (0, 4),
        "what was never sent is told"
    );
}
