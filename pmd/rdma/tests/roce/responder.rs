//! The responder, against packets made of bytes.

use pollux_pmd::net::roce::RnrTimer;
use pollux_rdma::{Access, Event, Failed, Mtu, Psn, QpKind, Receive, Received, Status};

use crate::raw::{ADDRESS, BYTES, KEY, OWN, PEER, Raw, Scene, Seen};
use crate::rig::path;

const FIRST: u32 = PEER.1;

fn scene(kind: QpKind, access: Access) -> Scene {
    Scene::new(kind, access, &path(Mtu::B256))
}

fn write_only(psn: u32, data: &[u8]) -> Raw {
    Raw::new(0x0a, psn)
        .reth(ADDRESS, KEY, data.len() as u32)
        .data(data)
}

fn failed(scene: &mut Scene, status: Status) {
    scene.poll();
    let (qp, psn) = (scene.qp.number(), Psn::new(FIRST));
    let failed = Event::Failed(Failed { qp, status, psn });
    assert_eq!(scene.events().first(), Some(&failed));
    // What comes then is that of no queue pair, and no further answer leaves.
    assert_eq!(scene.exchange(&[write_only(FIRST, b"late")]), []);
    assert_eq!(scene.host.dropped("unknown-qp"), 1);
}

#[test]
fn access_is_refused_byte_by_byte() {
    let len = BYTES as u64;
    let cases = [
        ("wrong key", Access::ALL, ADDRESS, KEY ^ 1, 4),
        ("one byte before", Access::ALL, ADDRESS - 1, KEY, 4),
        ("one byte behind", Access::ALL, ADDRESS + len - 3, KEY, 4),
        ("at the end", Access::ALL, ADDRESS + len, KEY, 1),
        ("beyond 2^64", Access::ALL, u64::MAX - 1, KEY, 4),
        ("address 0", Access::ALL, 0, KEY, 4),
        ("no right", Access::READ, ADDRESS, KEY, 4),
    ];
    for (what, access, address, key, bytes) in cases {
        let mut scene = scene(QpKind::Reliable, access);
        let packet = Raw::new(0x0a, FIRST).reth(address, key, bytes);
        let seen = scene.exchange(&[packet.data(&vec![1; bytes as usize])]);
        assert!(
            matches!(&seen[..], [one] if Seen::ack(FIRST, 0x62)(one)),
            "{what}: {seen:?}"
        );
        assert!(scene.is_untouched(), "{what}");
        assert_eq!(scene.host.dropped("access"), 1);
        failed(&mut scene, Status::RemoteAccess);
        scene.stop();
    }
    for (what, access, address, key, bytes) in cases {
        let access = match access {
            Access::READ => Access::WRITE,
            access => access,
        };
        let mut scene = scene(QpKind::Reliable, access);
        let seen = scene.exchange(&[Raw::new(0x0c, FIRST).reth(address, key, bytes)]);
        assert!(
            matches!(&seen[..], [one] if Seen::ack(FIRST, 0x62)(one)),
            "{what}: {seen:?}"
        );
        failed(&mut scene, Status::RemoteAccess);
        scene.stop();
    }
}

#[test]
fn the_first_and_the_last_byte_are_inside() {
    let mut scene = scene(QpKind::Reliable, Access::ALL);
    let last = ADDRESS + BYTES as u64 - 1;
    let packets = [
        Raw::new(0x0a, FIRST).reth(ADDRESS, KEY, 1).data(&[1]),
        Raw::new(0x0a, FIRST + 1).reth(last, KEY, 1).data(&[2]),
        // Without bytes any key and address will do.
        Raw::new(0x0a, FIRST + 2).reth(7, !KEY, 0),
        Raw::new(0x0c, FIRST + 3).reth(7, !KEY, 0),
    ];
    let seen = scene.exchange(&packets);
    let [response] = &seen[..] else {
        panic!("{seen:?}")
    };
    assert_eq!(
        (response.opcode, response.psn, response.rest.len()),
        (0x10, FIRST + 3, 4)
    );
    assert_eq!(
        (scene.bytes(0, 2), scene.bytes(BYTES - 2, 2)),
        (vec![1, 0x55], vec![0x55, 2])
    );
    scene.stop();
}

#[test]
fn requests_that_contradict_themselves_are_invalid() {
    let mtu = [3; 256];
    let reth = |opcode, len| Raw::new(opcode, FIRST).reth(ADDRESS, KEY, len);
    let second = |opcode| Raw::new(opcode, FIRST + 1);
    let cases: Vec<(&str, Vec<Raw>)> = vec![
        (
            "MIDDLE without FIRST",
            vec![Raw::new(0x07, FIRST).data(&mtu)],
        ),
        ("LAST without FIRST", vec![Raw::new(0x08, FIRST).data(&mtu)]),
        (
            "FIRST then ONLY",
            vec![
                reth(0x06, 512).data(&mtu),
                second(0x0a).reth(ADDRESS, KEY, 4).data(&[0; 4]),
            ],
        ),
        (
            "FIRST then READ",
            vec![
                reth(0x06, 512).data(&mtu),
                second(0x0c).reth(ADDRESS, KEY, 4),
            ],
        ),
        (
            "WRITE FIRST then SEND LAST",
            vec![reth(0x06, 512).data(&mtu), second(0x02).data(&mtu)],
        ),
        (
            "FIRST below the MTU",
            vec![reth(0x06, 512).data(&mtu[..252])],
        ),
        ("FIRST above the MTU", vec![reth(0x06, 512).data(&[0; 260])]),
        ("FIRST of one packet", vec![reth(0x06, 256).data(&mtu)]),
        ("ONLY above the MTU", vec![reth(0x0a, 260).data(&[0; 260])]),
        (
            "ONLY shorter than its length",
            vec![reth(0x0a, 8).data(&[0; 4])],
        ),
        (
            "ONLY longer than its length",
            vec![reth(0x0a, 4).data(&[0; 8])],
        ),
        (
            "LAST shorter than its length",
            vec![reth(0x06, 512).data(&mtu), second(0x08).data(&mtu[..255])],
        ),
        (
            "LAST longer than its length",
            vec![reth(0x06, 300).data(&mtu), second(0x08).data(&mtu[..45])],
        ),
        (
            "MIDDLE beyond its length",
            vec![reth(0x06, 300).data(&mtu), second(0x07).data(&mtu)],
        ),
        (
            "LAST without data",
            vec![reth(0x06, 512).data(&mtu), second(0x08)],
        ),
        ("more than 2^31", vec![reth(0x06, (1 << 31) + 1).data(&mtu)]),
        ("READ of more than 2^31", vec![reth(0x0c, (1 << 31) + 1)]),
        (
            "compare and swap",
            vec![Raw::new(0x13, FIRST).data(&[0; 28])],
        ),
        ("fetch and add", vec![Raw::new(0x14, FIRST).data(&[0; 28])]),
        (
            "SEND LAST without data",
            vec![Raw::new(0x00, FIRST).data(&mtu), Raw::new(0x02, FIRST + 1)],
        ),
        (
            "SEND with invalidate",
            vec![Raw::new(0x17, FIRST).data(&[0; 8])],
        ),
    ];
    for (what, packets) in cases {
        let mut scene = scene(QpKind::Reliable, Access::ALL);
        let (to, cookie) = (scene.buffer.part(0, 1000), 1);
        scene.qp.post_receive(Receive { cookie, to }).unwrap();
        scene.qp.doorbell();
        let seen = scene.exchange(&packets);
        let psn = FIRST + packets.len() as u32 - 1;
        assert!(
            matches!(&seen[..], [one] if Seen::ack(psn, 0x61)(one)),
            "{what}: {seen:?}"
        );
        scene.poll();
        let failed = Event::Failed(Failed {
            qp: scene.qp.number(),
            status: Status::RemoteInvalidRequest,
            psn: Psn::new(psn),
        });
        let events = scene.events();
        assert_eq!((events.len(), events[0]), (2, failed), "{what}");
        assert_eq!(scene.host.dropped("invalid-request"), 1, "{what}");
        scene.stop();
    }
}

#[test]
fn a_send_beyond_its_receive_fails_both() {
    let mut scene = scene(QpKind::Reliable, Access::LOCAL);
    for cookie in [1, 2] {
        let to = scene.buffer.part(0, 300);
        scene.qp.post_receive(Receive { cookie, to }).unwrap();
    }
    scene.qp.doorbell();
    let packets = [
        Raw::new(0x00, FIRST).data(&[7; 256]),
        Raw::new(0x02, FIRST + 1).data(&[8; 45]),
    ];
    let seen = scene.exchange(&packets);
    assert!(
        matches!(&seen[..], [one] if Seen::ack(FIRST + 1, 0x61)(one)),
        "{seen:?}"
    );
    scene.poll();
    let qp = scene.qp.number();
    let received = |cookie, status| {
        Event::Received(Received {
            qp,
            cookie,
            bytes: 0,
            immediate: None,
            is_put: false,
            missed: 0,
            status,
        })
    };
    let psn = Psn::new(FIRST + 1);
    let status = Status::LocalLength;
    let expected = [
        received(1, status),
        Event::Failed(Failed { qp, status, psn }),
        received(2, Status::Flushed),
    ];
    assert_eq!(scene.events(), expected);
    assert_eq!(scene.bytes(256, 100), [0x55; 100]);
    scene.stop();
}

#[test]
fn a_gap_is_refused_once_and_duplicates_are_not_executed() {
    let mut scene = scene(QpKind::Reliable, Access::ALL);
    let seen = scene.exchange(&[
        write_only(FIRST + 1, b"11111"),
        write_only(FIRST + 2, b"2222"),
    ]);
    assert!(
        matches!(&seen[..], [one] if Seen::ack(FIRST, 0x60)(one)),
        "{seen:?}"
    );
    assert_eq!(scene.exchange(&[write_only(FIRST + 3, b"3333")]), []);
    assert!(scene.is_untouched());
    assert_eq!(scene.host.dropped("psn-gap"), 3);

    let seen = scene.exchange(&[write_only(FIRST, b"0000"), write_only(FIRST + 1, b"1111")]);
    assert!(
        matches!(&seen[..], [one] if Seen::ack(FIRST + 1, 0x1f)(one)),
        "{seen:?}"
    );
    assert_eq!(scene.bytes(0, 4), b"1111");
    // A duplicate is acknowledged up to what is expected, and not written again.
    let seen = scene.exchange(&[write_only(FIRST, b"0000")]);
    assert!(
        matches!(&seen[..], [one] if Seen::ack(FIRST + 1, 0x1f)(one)),
        "{seen:?}"
    );
    assert_eq!(scene.bytes(0, 4), b"1111");
    assert_eq!(scene.host.dropped("duplicate"), 1);
    // The next gap is another.
    let seen = scene.exchange(&[write_only(FIRST + 3, b"3333")]);
    assert!(
        matches!(&seen[..], [one] if Seen::ack(FIRST + 2, 0x60)(one)),
        "{seen:?}"
    );
    scene.stop();
}

#[test]
fn without_a_receive_the_peer_is_told_to_wait() {
    let rnr_timer = 14;
    let options = pollux_rdma::PathOptions {
        rnr_timer,
        ..path(Mtu::B256)
    };
    let mut scene = Scene::new(QpKind::Reliable, Access::LOCAL, &options);
    let send = |psn| Raw::new(0x04, psn).data(b"hello");
    let not_ready = 0x20 | RnrTimer::new(rnr_timer).code();
    let seen = scene.exchange(&[send(FIRST), send(FIRST + 1)]);
    assert!(
        matches!(&seen[..], [one] if Seen::ack(FIRST, not_ready)(one)),
        "{seen:?}"
    );
    assert_eq!(
        (
            scene.host.dropped("not-ready"),
            scene.host.dropped("psn-gap")
        ),
        (1, 1)
    );
    let to = scene.buffer.part(8, 5);
    scene.qp.post_receive(Receive { cookie: 3, to }).unwrap();
    scene.qp.doorbell();
    let seen = scene.exchange(&[send(FIRST)]);
    assert!(
        matches!(&seen[..], [one] if Seen::ack(FIRST, 0x1f)(one)),
        "{seen:?}"
    );
    assert_eq!(scene.bytes(8, 5), b"hello");
    assert_eq!(scene.events().len(), 1);
    scene.stop();
}

#[test]
fn without_room_for_events_receiving_stops() {
    let mut scene = scene(QpKind::Reliable, Access::ALL);
    // 256 events.
    let immediate = |psn| {
        let mut packet = Raw::new(0x0b, psn).reth(ADDRESS, KEY, 0);
        packet.rest.extend(psn.to_be_bytes());
        packet
    };
    let mut psn = FIRST;
    let mut refused = false;
    for _ in 0..300 {
        let to = scene.buffer.part(0, 0);
        let _ = scene.qp.post_receive(Receive { cookie: 0, to });
        scene.qp.doorbell();
        let seen = scene.exchange(&[immediate(psn)]);
        refused = Seen::ack(psn, 0x2c)(&seen[0]);
        if refused {
            break;
        }
        psn += 1;
    }
    assert!(refused);
    assert_eq!(psn, FIRST + 256);
    let numbers: Vec<_> = scene
        .events()
        .into_iter()
        .map(|event| match event {
            Event::Received(received) => received.immediate.unwrap(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(numbers, (FIRST..psn).collect::<Vec<_>>());
    let seen = scene.exchange(&[immediate(psn)]);
    assert!(Seen::ack(psn, 0x1f)(&seen[0]), "{seen:?}");
    assert_eq!(OWN.0, scene.qp.number().get());
    scene.stop();
}
