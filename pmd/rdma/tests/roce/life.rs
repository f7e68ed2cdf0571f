//! Life of queue pairs: addresses, ends, and what comes after them.

use pollux_pmd::net::MacAddr;
use pollux_rdma::roce::{QpIdentity, RoceError, RoceOptions};
use pollux_rdma::{
    Access, ConnectError, Event, Get, Key, MAD_BYTES, Mad, Message, Mtu, PathOptions, Payload, Psn,
    Put, QpAddress, QpError, QpKind, QpNumber, QpOptions, Receive, RemoteBuffer, Status, Wait,
};

use crate::raw::{ADDRESS, KEY, PEER, Raw, Scene, Seen};
use crate::rig::{Host, IPS, MACS, Pair, address, link, memory, path};

fn send(cookie: u64) -> Message<'static> {
    Message {
        cookie,
        payload: Payload::Immediate(b"hello"),
        immediate: None,
    }
}

#[test]
fn the_mac_address_of_the_peer_is_looked_up() {
    let mut pair = Pair::new();
    let options = QpOptions::default();
    let mut qps = [0, 1].map(|n| {
        let endpoint = &mut pair.hosts[n].endpoint;
        endpoint.create_queue_pair(&options).unwrap()
    });
    for n in [0, 1] {
        let peer = QpAddress {
            mac: None,
            ..qps[1 - n].address()
        };
        let endpoint = &mut pair.hosts[n].endpoint;
        endpoint.connect(&qps[n], &peer, &path(Mtu::B1024)).unwrap();
    }
    let memory = memory(4096);
    let buffer = pair.hosts[1].register(&memory, Access::LOCAL);
    let [a, b] = &mut qps;
    b.post_receive(Receive {
        cookie: 0,
        to: buffer.part(0, 5),
    })
    .unwrap();
    b.doorbell();
    a.send(send(1)).unwrap();
    a.doorbell();
    assert!(matches!(pair.event(a), Event::Done(done) if done.status == Status::Ok));
    drop(qps);
    pair.stop();
}

#[test]
fn a_peer_that_is_not_there_is_given_up() {
    let mut pair = Pair::new();
    let mut qp = {
        let endpoint = &mut pair.hosts[0].endpoint;
        endpoint.create_queue_pair(&QpOptions::default()).unwrap()
    };
    let peer = QpAddress {
        ip: [10, 0, 0, 99].into(),
        mac: None,
        ..qp.address()
    };
    let options = PathOptions {
        timeout: 8,
        ..path(Mtu::B256)
    };
    pair.hosts[0]
        .endpoint
        .connect(&qp, &peer, &options)
        .unwrap();
    qp.send(send(1)).unwrap();
    qp.doorbell();
    let done = pair.event(&mut qp);
    assert!(matches!(done, Event::Done(done) if done.status == Status::RetryExceeded));
    assert!(matches!(pair.event(&mut qp), Event::Failed(_)));
    drop(qp);
    pair.stop();
}

#[test]
fn a_queue_pair_is_destroyed_under_its_timers_and_its_neighbour_goes_on() {
    let mut pair = Pair::new();
    let options = PathOptions {
        timeout: 1,
        ..path(Mtu::B256)
    };
    let memories = [memory(1 << 20), memory(1 << 20)];
    let buffers = [0, 1].map(|n| pair.hosts[n].register(&memories[n], Access::ALL));
    let [mut a, mut b] = pair.connect(QpKind::Reliable, &options);
    for round in 0..200_u64 {
        let [mut c, d] = pair.connect(QpKind::Reliable, &options);
        let from = buffers[1].remote();
        let to = buffers[0].part(0, 1 << 20);
        c.get(Get {
            cookie: 0,
            from,
            to,
        })
        .unwrap();
        let payload = Payload::Indirect(buffers[0].part(0, 1 << 20));
        let (to, immediate) = (buffers[1].remote(), None);
        c.put(Put {
            cookie: 1,
            payload,
            to,
            immediate,
        })
        .unwrap();
        c.doorbell();
        for _ in 0..round % 23 {
            pair.step();
        }
        // One end goes first, then its peer, which times out against nothing meanwhile.
        if round % 2 == 0 {
            drop(d);
            for _ in 0..round % 40 {
                pair.step();
            }
            drop(c);
        } else {
            drop((c, d));
        }
        b.post_receive(Receive {
            cookie: round,
            to: buffers[1].part(0, 8),
        })
        .unwrap();
        b.doorbell();
        a.send(send(round)).unwrap();
        a.doorbell();
        let (sent, received) = (pair.event(&mut a), pair.event(&mut b));
        assert!(
            matches!(sent, Event::Done(done) if done.cookie == round),
            "{sent:?}"
        );
        assert!(matches!(received, Event::Received(received) if received.bytes == 5));
    }
    drop((a, b, buffers));
    pair.stop();
}

#[test]
fn a_second_connection_takes_nothing_of_the_first() {
    let mut pair = Pair::new();
    let options = path(Mtu::B256);
    let first = pair.connect(QpKind::Reliable, &options);
    let addresses = [0, 1].map(|n| first[n].address());
    drop(first);
    let second = pair.connect(QpKind::Reliable, &options);
    for n in [0, 1] {
        assert_ne!(second[n].address().number, addresses[n].number);
        assert_ne!(second[n].address().psn, addresses[n].psn);
    }
    drop(second);
    pair.stop();
}

/// Even with the same number: packets of the connection before are duplicates, or behind a gap.
#[test]
fn packets_of_an_earlier_connection_are_not_executed() {
    let mut scene = Scene::new(QpKind::Reliable, Access::ALL, &path(Mtu::B256));
    let connect = |scene: &mut Scene, first| {
        let qp = scene.host.queue_pair(QpKind::Reliable, 0x12, 0);
        let peer = address(1, PEER.0, first);
        let path = path(Mtu::B256);
        scene.host.endpoint.connect(&qp, &peer, &path).unwrap();
        qp
    };
    let write = |psn, byte| {
        let raw = Raw::new(0x0a, psn).reth(ADDRESS, KEY, 4).data(&[byte; 4]);
        Raw { qp: 0x12, ..raw }
    };
    let old: Vec<_> = (1000..1010).map(|psn| write(psn, 1)).collect();
    let qp = connect(&mut scene, 1000);
    assert_eq!(scene.exchange(&old).len(), 1);
    assert_eq!(scene.bytes(0, 4), [1; 4]);
    drop(qp);
    // Of none at all, while there is no queue pair.
    assert_eq!(scene.exchange(&old), []);
    assert_eq!(scene.host.dropped("unknown-qp"), 10);
    for first in [1, 0xff_0000, 5000] {
        let qp = connect(&mut scene, first);
        scene.exchange(&[write(first, 7)]);
        scene.exchange(&old);
        assert_eq!(scene.bytes(0, 4), [7; 4], "{first}");
        let seen = scene.exchange(&[write(first + 1, 8)]);
        assert!(
            seen.iter().any(|seen| Seen::ack(first + 1, 0x1f)(seen)),
            "{seen:?}"
        );
        assert_eq!(scene.bytes(0, 4), [8; 4], "{first}");
        drop(qp);
    }
    let counts = ["duplicate", "psn-gap"].map(|cause| scene.host.dropped(cause));
    assert_eq!(counts, [10, 20]);
    scene.stop();
}

#[test]
fn a_taken_away_range_is_refused() {
    let mut pair = Pair::new();
    let memories = [memory(4096), memory(4096)];
    let ours = pair.hosts[0].register(&memories[0], Access::LOCAL);
    let theirs = pair.hosts[1].register(&memories[1], Access::ALL);
    let [mut a, b] = pair.connect(QpKind::Reliable, &path(Mtu::B1024));
    let to = theirs.remote();
    pair.hosts[1].endpoint.unregister_buffer(theirs);
    let payload = Payload::Indirect(ours.part(0, 100));
    a.put(Put {
        cookie: 0,
        payload,
        to,
        immediate: None,
    })
    .unwrap();
    a.doorbell();
    let done = pair.event(&mut a);
    assert!(matches!(done, Event::Done(done) if done.status == Status::RemoteAccess));
    drop((a, b, ours));
    pair.stop();
}

#[test]
fn a_program_that_sleeps_is_woken() {
    let mut pair = Pair::new();
    let [mut a, mut b] = pair.connect(QpKind::Reliable, &path(Mtu::B1024));
    let memory = memory(4096);
    let buffer = pair.hosts[1].register(&memory, Access::LOCAL);
    let to = buffer.part(0, 5);
    b.post_receive(Receive { cookie: 4, to }).unwrap();
    b.doorbell();
    let long = std::time::Duration::from_mins(1);
    assert_eq!(b.wait_event(Wait::Poll(std::time::Duration::ZERO)), None);
    assert_eq!(
        b.wait_event(Wait::Sleep(std::time::Duration::from_millis(1))),
        None
    );
    let b = std::thread::scope(|scope| {
        let sleeper = scope.spawn(move || {
            let event = b.wait_event(Wait::Sleep(long));
            assert!(matches!(event, Some(Event::Received(received)) if received.cookie == 4));
            b
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        a.send(send(1)).unwrap();
        a.doorbell();
        pair.settle();
        sleeper.join().unwrap()
    });
    drop((a, b, buffer));
    pair.stop();
}

#[test]
fn the_end_of_the_loop_wakes_a_program_that_sleeps() {
    let mut pair = Pair::new();
    let [mut a, b] = pair.connect(QpKind::Reliable, &path(Mtu::B1024));
    let options = QpOptions::default();
    let created = pair.hosts[0].endpoint.create_queue_pair(&options);
    let mut unconnected = created.unwrap();
    // The peer has no receive for it.
    a.send(send(2)).unwrap();
    a.doorbell();
    pair.settle();
    let long = Wait::Sleep(std::time::Duration::from_mins(1));
    std::thread::scope(|scope| {
        let sleepers = [
            scope.spawn(move || {
                let failed = a.wait_event(long);
                let flushed = a.wait_event(long);
                assert!(matches!(failed, Some(Event::Failed(failed)) if failed.status == Status::Flushed));
                assert!(matches!(flushed, Some(Event::Done(done)) if done.cookie == 2 && done.status == Status::Flushed));
            }),
            scope.spawn(move || {
                let event = unconnected.wait_event(long);
                assert!(matches!(event, Some(Event::Failed(failed)) if failed.status == Status::Flushed));
            }),
        ];
        std::thread::sleep(std::time::Duration::from_millis(20));
        pair.stop();
        for sleeper in sleepers {
            sleeper.join().unwrap();
        }
    });
    drop(b);
}

#[test]
fn management_datagrams_pass_by_queue_pair_1() {
    let mut pair = Pair::new();
    let bytes: [u8; MAD_BYTES] = std::array::from_fn(|n| n as u8);
    let mad = |host| Mad { host, bytes };
    assert!(pair.hosts[0].control.send_mad(&mad(IPS[1])));
    pair.settle();
    assert_eq!(pair.hosts[1].control.receive_mad(), Some(mad(IPS[0])));
    assert_eq!(pair.hosts[1].control.receive_mad(), None);
    // The answer needs no ARP. Both directions are bounded.
    let answers = (0..100).filter(|_| pair.hosts[1].control.send_mad(&mad(IPS[0])));
    assert_eq!(answers.count(), 64);
    pair.settle();
    assert!(pair.hosts[1].control.send_mad(&mad(IPS[0])));
    pair.settle();
    assert_eq!(pair.hosts[0].dropped("not-ready"), 1);
    for _ in 0..64 {
        assert_eq!(pair.hosts[0].control.receive_mad(), Some(mad(IPS[1])));
    }
    // One that cannot be delivered is given up, and no other waits for it.
    assert!(pair.hosts[0].control.send_mad(&mad([10, 0, 0, 99].into())));
    assert!(pair.hosts[0].control.send_mad(&mad(IPS[1])));
    pair.settle();
    assert!(pair.hosts[1].control.receive_mad().is_some());
    pair.now.0 += 2_000_000_000;
    pair.settle();
    pair.stop();
}

#[test]
fn what_is_wrong_is_refused_with_what_is_allowed() {
    let (wire, [a, b]) = link(1024);
    let cache = || wire.pool.cache(16).unwrap();
    let mut host = Host::new(0, &wire, a);
    let make = |options: &RoceOptions, queues| {
        let made =
            pollux_rdma::roce::RoceEndpoint::new(options, &wire.capabilities, queues, cache());
        made.map(drop)
    };
    let none = RoceOptions {
        queue_pairs: 0,
        ..RoceOptions::new(IPS[1])
    };
    assert!(matches!(make(&none, b), Err(RoceError::QueuePairs(0))));
    let (_other, [a, b]) = link(64);
    let no_host = RoceOptions::new([224, 0, 0, 1].into());
    assert!(matches!(make(&no_host, a), Err(RoceError::Ip(ip)) if ip == no_host.ip));
    let group = RoceOptions {
        mac: Some(MacAddr([1; 6])),
        ..RoceOptions::new(IPS[1])
    };
    assert!(matches!(make(&group, b), Err(RoceError::Mac(mac)) if Some(mac) == group.mac));
    let qp = host.queue_pair(QpKind::Reliable, 8, 0);
    for ip in ["0.0.0.0", "224.0.0.1", "255.255.255.255"] {
        let ip = ip.parse().unwrap();
        let peer = QpAddress { ip, ..qp.address() };
        let refused = host.endpoint.connect(&qp, &peer, &path(Mtu::B256));
        assert!(matches!(refused, Err(ConnectError::Ip(of)) if of == ip));
    }
    for mac in [MacAddr([0; 6]), MacAddr([0xff; 6])] {
        let mac = Some(mac);
        let peer = QpAddress {
            mac,
            ..qp.address()
        };
        let refused = host.endpoint.connect(&qp, &peer, &path(Mtu::B256));
        assert!(matches!(refused, Err(ConnectError::Mac(of)) if Some(of) == mac));
    }
    drop(qp);
    let taken = host.queue_pair(QpKind::Reliable, 7, 0);
    for number in [1, 7] {
        let number = QpNumber::new(number).unwrap();
        let psn = Psn::new(0);
        let identity = QpIdentity { number, psn };
        let made = host
            .control
            .create_queue_pair_as(&QpOptions::default(), identity);
        assert!(made.unwrap_err().to_string().contains("2 to 2^24 - 1"));
    }
    let many: Vec<_> = (1..64)
        .map(|_| {
            host.endpoint
                .create_queue_pair(&QpOptions::default())
                .unwrap()
        })
        .collect();
    let more = host.endpoint.create_queue_pair(&QpOptions::default());
    assert!(matches!(more, Err(QpError::TooMany(64))));
    drop(many);
    // Nothing of them waits for the loop, which has not polled.
    for _ in 0..5000 {
        drop(
            host.endpoint
                .create_queue_pair(&QpOptions::default())
                .unwrap(),
        );
    }
    assert!(
        host.endpoint
            .create_queue_pair(&QpOptions::default())
            .is_ok()
    );

    let peer = QpAddress {
        mac: Some(MACS[1]),
        ..taken.address()
    };
    host.endpoint
        .connect(&taken, &peer, &path(Mtu::B4096))
        .unwrap();
    let again = host.endpoint.connect(&taken, &peer, &path(Mtu::B4096));
    assert!(matches!(again, Err(ConnectError::State(_))));

    let wrong = PathOptions {
        rnr_timer: 32,
        ..path(Mtu::B256)
    };
    let refused = host.endpoint.connect(&taken, &peer, &wrong).unwrap_err();
    assert_eq!(refused.to_string(), "rnr_timer = 32: 0 to 31 are allowed");

    let memory = memory(8192);
    let register = |address, key, range| {
        let at = RemoteBuffer { address, key };
        host.control
            .register_buffer_at(&memory, range, Access::ALL, at)
    };
    let first = register(0, Key(5), 0..8192).unwrap();
    let error = register(0, Key(5), 0..1).unwrap_err().to_string();
    assert!(error.contains("in use"), "{error}");
    let error = register(u64::MAX, Key(6), 0..2).unwrap_err().to_string();
    assert!(error.contains("2^64"), "{error}");
    assert!(register(0, Key(7), 0..8193).is_err());
    drop((first, taken));
}
