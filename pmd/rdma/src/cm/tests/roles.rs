//! Each role, and what each end is told.

use super::*;

/// Both ends, and how the connection ends.
#[test]
fn both_ends_agree() {
    let mut network = Network::new(&[]);
    let id = network.connect();
    network.run(10);
    let [active, passive] = &network.hosts;
    assert!(active.is_established() && passive.is_established());
    let (ours, theirs) = (active.agreed.unwrap(), passive.agreed.unwrap());
    assert_eq!(ours.peer.number.get(), 0x22);
    assert_eq!(theirs.peer.number.get(), 0x11);
    assert_eq!((ours.peer.ip, theirs.peer.ip), (PASSIVE, ACTIVE));
    // Each sends first the number that the other expects.
    assert_eq!(ours.path.first_psn, Some(theirs.peer.psn));
    assert_eq!(theirs.path.first_psn, Some(ours.peer.psn));
    assert_eq!((ours.path.mtu, theirs.path.mtu), (Mtu::B4096, Mtu::B4096));
    assert_eq!((theirs.path.retry, theirs.path.rnr_retry), (5, 6));
    assert_eq!((ours.path.gets, theirs.path.gets), (8, 8));
    let private = passive.seen.iter().find_map(|event| match event {
        CmEvent::Requested { private, port, .. } => Some((private.clone(), *port)),
        _ => None,
    });
    let (private, port) = private.unwrap();
    assert_eq!(
        (&private[..6], private.len(), port),
        (&b"hello\0"[..], 56, PORT)
    );

    network.hosts[0].cm.disconnect(id, network.now).unwrap();
    network.run(10);
    assert!(network.hosts.iter().all(Host::is_over));
    let again = network.hosts[0].cm.disconnect(id, network.now);
    assert_eq!(again, Err(CmError::State(id)));
    // A second connection has other numbers.
    let psn = network.hosts[0].agreed.unwrap().peer.psn;
    network.hosts[0].qp = 0x33;
    network.connect();
    network.run(10);
    let agreed = network.hosts.each_ref().map(|host| host.agreed.unwrap());
    assert_eq!(agreed[1].peer.number.get(), 0x33);
    assert_ne!(agreed[0].peer.psn, psn);
}

#[test]
fn both_ends_may_disconnect_at_once() {
    let mut network = Network::new(&[]);
    let id = network.connect();
    network.run(10);
    let passive = &mut network.hosts[1];
    let Some(CmEvent::Established { id: theirs }) = passive.seen.last().cloned() else {
        panic!("{:?}", passive.seen);
    };
    passive.cm.disconnect(theirs, network.now).unwrap();
    network.hosts[0].cm.disconnect(id, network.now).unwrap();
    network.run(10);
    for host in &network.hosts {
        let ends = host
            .seen
            .iter()
            .filter(|event| matches!(event, CmEvent::Disconnected { .. }));
        assert_eq!(ends.count(), 1, "{:?}", host.seen);
    }
}

fn failure(host: &Host) -> Option<Failure> {
    host.seen.iter().find_map(|event| match event {
        CmEvent::Failed { why, .. } => Some(why.clone()),
        _ => None,
    })
}

fn rejected(host: &Host) -> Option<Reason> {
    match failure(host) {
        Some(Failure::Rejected { reason, .. }) => Some(reason),
        _ => None,
    }
}

#[test]
fn a_port_without_a_program_is_refused() {
    let mut network = Network::new(&[]);
    let offer = offer(0x11);
    let now = network.now;
    network.hosts[0]
        .cm
        .connect(PASSIVE, PORT + 1, &offer, &[], now)
        .unwrap();
    network.run(10);
    assert_eq!(rejected(&network.hosts[0]), Some(Reason::INVALID_SERVICE));
}

#[test]
fn a_host_that_does_not_answer_is_given_up() {
    let mut network = Network::new(&[]);
    let offer = offer(0x11);
    let now = network.now;
    let elsewhere = Ipv4Addr::new(192, 168, 77, 9);
    network.hosts[0]
        .cm
        .connect(elsewhere, PORT, &offer, &[], now)
        .unwrap();
    // 16 messages, each 1.07 s apart.
    network.run(17_000);
    assert!(!network.hosts[0].is_over());
    network.run(1000);
    assert_eq!(failure(&network.hosts[0]), Some(Failure::NoAnswer));
}

/// One end alone, and the messages that it sends.
fn alone(connections: usize) -> ConnectionManager {
    let mut options = CmOptions::new(PASSIVE);
    options.connections = connections;
    let mut cm = ConnectionManager::new(options).unwrap();
    cm.listen(PORT);
    cm
}

fn request(from: &mut ConnectionManager, qp: u32) -> [u8; MAD_BYTES] {
    from.connect(PASSIVE, PORT, &offer(qp), &[], Ns(0)).unwrap();
    from.transmit().unwrap().bytes
}

#[test]
fn a_full_table_refuses_and_has_room_again() {
    let (mut cm, mut peer) = (
        alone(2),
        ConnectionManager::new(CmOptions::new(ACTIVE)).unwrap(),
    );
    for qp in 0x11..0x14 {
        let req = request(&mut peer, qp);
        cm.receive(&from(ACTIVE, req), Ns(0));
    }
    let rej = cm.transmit().unwrap();
    peer.receive(&from(PASSIVE, rej.bytes), Ns(0));
    assert!(matches!(
        peer.event(),
        Some(CmEvent::Failed {
            why: Failure::Rejected {
                reason: Reason::NO_RESOURCES,
                ..
            },
            ..
        })
    ));
    let asked: Vec<_> = std::iter::from_fn(|| cm.event()).collect();
    let [CmEvent::Requested { id, .. }, CmEvent::Requested { .. }] = asked[..] else {
        panic!("{asked:?}");
    };
    cm.reject(id, b"busy", Ns(0)).unwrap();
    let rej = cm.transmit().unwrap();
    peer.receive(&from(PASSIVE, rej.bytes), Ns(0));
    let Some(CmEvent::Failed { why, .. }) = peer.event() else {
        panic!("no answer");
    };
    let Failure::Rejected { reason, private } = why else {
        panic!("{why:?}");
    };
    assert_eq!((reason, &private[..5]), (Reason::CONSUMER, &b"busy\0"[..]));
    let req = request(&mut peer, 0x15);
    cm.receive(&from(ACTIVE, req), Ns(0));
    assert!(matches!(cm.event(), Some(CmEvent::Requested { .. })));
}

#[test]
fn a_peer_that_started_anew_ends_its_old_connection() {
    let mut network = Network::new(&[]);
    network.connect();
    network.run(10);
    // The same queue pair asks again, as another connection.
    network.connect();
    network.run(10);
    assert!(matches!(
        network.hosts[1].seen.last(),
        Some(CmEvent::Disconnected { .. })
    ));
    assert_eq!(rejected(&network.hosts[0]), Some(Reason::STALE));
}

#[test]
fn options_have_limits() {
    for (connections, timeout, retries) in [(0, 18, 15), (257, 18, 15), (64, 32, 15), (64, 18, 16)]
    {
        let options = CmOptions {
            connections,
            timeout,
            retries,
            ..CmOptions::new(ACTIVE)
        };
        let refused = ConnectionManager::new(options).err();
        assert!(
            matches!(refused, Some(CmError::Option { .. })),
            "{options:?}"
        );
    }
}

#[test]
fn private_data_have_limits() {
    let mut cm = alone(1);
    let refused = cm.connect(ACTIVE, PORT, &offer(2), &[0; 57], Ns(0));
    assert_eq!(refused, Err(CmError::PrivateData { len: 57, most: 56 }));
    cm.connect(ACTIVE, PORT, &offer(2), &[0; 56], Ns(0))
        .unwrap();
    let refused = cm.connect(ACTIVE, PORT, &offer(2), &[], Ns(0));
    assert_eq!(refused, Err(CmError::TooMany(1)));
}
