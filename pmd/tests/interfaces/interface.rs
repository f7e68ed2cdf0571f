//! Tests that hold for every port on the near end of a cable, by its spec. The specs configure a
//! ring of four frames.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pollux_mempool::time::Ns;
use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::lcore::idle::{Idle, IdlePolicy};
use pollux_pmd::{PortConfig, PortError, Registry, RxState, TscClock};
use pollux_pmd_testkit::netns::{Cable, Namespace, assert_udp, payload, udp_frame};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use crate::common::{PATIENCE, Port};

/// The error of opening a port.
pub(crate) fn open_error(net: &Cable, spec: &str) -> String {
    match Port::try_open(&net.a, spec, 1, 64) {
        Ok(_) => panic!("{spec} opened"),
        Err(error) => error.to_string(),
    }
}

/// Whether an interface is promiscuous.
pub(crate) fn is_promiscuous(net: &Namespace) -> bool {
    net.ip("-d link show va").contains("promiscuity 1")
}

/// Waits until an interface is no longer promiscuous, once the port that requested it is stopped. A
/// program that another test is starting has a copy of the closed socket until it runs.
pub(crate) fn promiscuity_ends(net: &Namespace) {
    let began = Instant::now();
    while is_promiscuous(net) {
        assert!(began.elapsed() < PATIENCE, "still promiscuous");
    }
}

/// Datagrams that are not polled in time are either received or counted by `lost`.
pub(crate) fn a_flood_is_accounted_for(
    mut port: Port,
    peer: &UdpSocket,
    lost: impl Fn(&Port) -> u64,
) {
    const FRAMES: u32 = 20_000;
    let data = |i: u32| [&i.to_be_bytes()[..], &payload(i as usize % 1400, i as u8)].concat();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..FRAMES {
                peer.send(&data(i)).unwrap();
            }
        });
        let (mut delivered, mut next, began) = (0, 0, Instant::now());
        while delivered + lost(&port) < u64::from(FRAMES) && began.elapsed() < PATIENCE {
            let frames = port.poll();
            delivered += frames.len() as u64;
            for frame in &frames {
                let i = u32::from_be_bytes(frame.bytes[42..46].try_into().unwrap());
                assert!(i >= next, "in order, and once");
                assert_udp(&frame.bytes, 7000, &data(i));
                next = i + 1;
            }
            if frames.is_empty() {
                port.started.rx[0].sync_counters();
            }
        }
        assert!(delivered > 0);
    });
    assert_eq!(port.stop().from_wire, u64::from(FRAMES));
}

/// The two queues of a port share the flows; `then` is called for each flow, with its port and
/// peer.
pub(crate) fn two_queues_share_flows_out(
    net: &Cable,
    mut port: Port,
    mut then: impl FnMut(&mut Port, u16, &UdpSocket),
) {
    let mut queues: BTreeMap<Vec<u8>, u16> = BTreeMap::new();
    let mut per_queue = [0, 0];
    for flow in 0..40_u16 {
        let peer = net.peer(7000 + flow);
        for _ in 0..10 {
            peer.send(&[flow as u8; 30]).unwrap();
        }
        let frames = port.receive(10);
        assert_eq!(frames.len(), 10, "each frame once");
        for frame in frames {
            per_queue[usize::from(frame.queue)] += 1;
            let first = *queues
                .entry(frame.bytes[34..36].to_vec())
                .or_insert(frame.queue);
            assert_eq!(first, frame.queue, "a flow stays together");
        }
        then(&mut port, 7000 + flow, &peer);
    }
    assert!(per_queue[0] > 0 && per_queue[1] > 0, "{per_queue:?}");
    assert_eq!(per_queue[0] + per_queue[1], 400);
    assert_eq!(port.stop().from_wire, 400);
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

/// The frame arrives when the loop is about to sleep, or is asleep already: both must end the
/// sleep.
pub(crate) fn a_loop_that_sleeps_is_woken_by_a_frame(mut port: Port, peer: &UdpSocket) {
    const ROUNDS: u64 = 20;
    const LONGEST: Duration = Duration::from_mins(2);
    let (policy, longest) = (
        IdlePolicy::Sleep { after: 1 },
        Ns(LONGEST.as_nanos() as u64),
    );
    let mut idle = Idle::new(policy, longest, port.started.rx.iter()).unwrap();
    let (asked, began) = (AtomicU64::new(0), Instant::now());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                // Acquire pairs with the loop's release: it has received the frame of the previous
                // round.
                while asked.load(Ordering::Acquire) < round {
                    std::thread::yield_now();
                }
                if round % 2 == 0 {
                    std::thread::sleep(Duration::from_millis(2));
                }
                peer.send(b"wake up").unwrap();
            }
        });
        for round in 1..=ROUNDS {
            asked.store(round, Ordering::Release);
            while port.poll().is_empty() {
                idle.rest(&TscClock::get(), port.started.rx.iter_mut());
            }
            idle.worked(port.started.rx.iter_mut());
        }
    });
    assert!(began.elapsed() < LONGEST, "a frame did not wake it");
    assert!(idle.sleeps() > 0, "it has never slept");
    assert_eq!(port.stop().delivered, ROUNDS);
}

pub(crate) fn an_interface_that_is_deleted_is_gone(spec: &str) {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, spec);
    net.a.ip("link delete va");
    port.wait_for(RxState::Gone);
    let frames: Vec<_> = (0..6).map(|i| udp_frame(7000, &payload(20, i))).collect();
    assert_eq!(port.send(&frames), 4);
    // another interface of that name is not the same
    net.a.ip("link add va type veth peer name vc");
    net.a.ip("link set vc up");
    net.a.ip("link set va up");
    let link = port.started.port.link();
    assert!(!link.up && link.gone);
    for _ in 0..10 {
        assert!(port.poll().is_empty());
    }
    assert_eq!(port.started.rx[0].state(), RxState::Gone);
    let sent = port.started.tx[0].sent();
    assert_eq!(port.stop().from_wire, 0);
    assert_eq!(
        (sent.packets(), sent.errors()),
        (0, 4),
        "frames that were never sent are reported"
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
    let text = error.to_string();
    assert!(text.contains(named), "{text}");
}
