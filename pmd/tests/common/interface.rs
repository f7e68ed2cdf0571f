//! What holds for every port on the near end of a cable, by its spec. The specs give a ring of four
//! frames.

use std::time::Instant;

use pollux_mempool::{Mempool, PoolConfig};
use pollux_netns::{Cable, payload, udp_frame};
use pollux_pmd::{PortConfig, PortError, Registry, RxState};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use super::{PATIENCE, Port};

/// Why a port does not open.
pub(crate) fn open_error(net: &Cable, spec: &str) -> String {
    match Port::try_open(&net.a, spec, 1, 64) {
        Ok(_) => panic!("{spec} opened"),
        Err(error) => error.to_string(),
    }
}

pub(crate) fn traffic_resumes_when_the_link_is_back(spec: &str) {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, spec);
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
    let began = Instant::now();
    while !rest.is_empty() && began.elapsed() < PATIENCE {
        rest = &rest[port.send(rest)..];
    }
    for i in 0..6 {
        let mut got = [0; 100];
        assert_eq!(peer.recv(&mut got).unwrap(), 20);
        assert_eq!(got[..20], payload(20, i));
    }
    port.send(&[]);
    assert_eq!(port.sent(), (6, 0));
    peer.send(b"after").unwrap();
    assert_eq!(port.receive(1).len(), 1);
    assert_eq!(port.stop().delivered, 2);
}

pub(crate) fn an_interface_that_is_deleted_is_a_link_that_is_down(spec: &str) {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, spec);
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

pub(crate) fn without_permission_the_message_names_the_capabilities(spec: &str, named: &str) {
    let spec = spec.to_owned();
    let refused = std::thread::spawn(move || {
        let none = CapabilitySet::empty();
        let sets = CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        };
        // for this thread alone
        set_capabilities(None, sets).unwrap();
        let pool = Mempool::new(PoolConfig {
            buffers: 64,
            ..PoolConfig::default()
        });
        let config = PortConfig::new(pool.unwrap());
        let started = Registry::builtin()
            .open(&spec)
            .and_then(|port| port.configure(config)?.start());
        started.map(drop).unwrap_err()
    });
    let error = refused.join().unwrap();
    assert!(matches!(error, PortError::System { .. }));
    let told = error.to_string();
    assert!(told.contains(named), "{told}");
}
