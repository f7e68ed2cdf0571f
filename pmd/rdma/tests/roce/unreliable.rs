//! Unreliable connections, against packets made of bytes.

use pollux_rdma::{Access, Event, Mtu, QpKind, Receive, Status};

use crate::raw::{ADDRESS, KEY, PEER, Raw, Scene};
use crate::rig::path;

const FIRST: u32 = PEER.1;

fn scene() -> Scene {
    Scene::new(QpKind::Unreliable, Access::ALL, &path(Mtu::B256))
}

#[test]
fn an_unreliable_message_with_a_gap_is_discarded_and_counted() {
    let mut scene = scene();
    for cookie in [1, 2] {
        let to = scene.buffer.part(0, 600);
        scene.qp.post_receive(Receive { cookie, to }).unwrap();
    }
    scene.qp.doorbell();
    let packets = [
        Raw::new(0x20, FIRST).data(&[1; 256]),
        // One is missing; the rest of the message is discarded.
        Raw::new(0x21, FIRST + 2).data(&[1; 256]),
        Raw::new(0x22, FIRST + 3).data(&[1; 4]),
        // Two are missing in front of a message, which is whole.
        Raw::new(0x24, FIRST + 6).data(&[9; 5]),
        Raw::new(0x24, FIRST + 6).data(&[8; 5]),
        // A wrong key discards a message, and nothing fails.
        Raw::new(0x2a, FIRST + 7)
            .reth(ADDRESS, !KEY, 4)
            .data(&[7; 4]),
        Raw::new(0x24, FIRST + 8).data(&[6; 3]),
        // No receive is left.
        Raw::new(0x24, FIRST + 9).data(&[5; 3]),
    ];
    assert_eq!(scene.exchange(&packets), []);
    let missed: Vec<_> = scene
        .events()
        .into_iter()
        .map(|event| match event {
            Event::Received(received) => {
                assert_eq!(received.status, Status::Ok);
                (received.cookie, received.bytes, received.missed)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(missed, [(1, 5, 3), (2, 3, 0)]);
    assert_eq!(scene.bytes(0, 5), [6, 6, 6, 9, 9]);
    for (cause, packets) in [
        ("psn-gap", 2),
        ("duplicate", 1),
        ("access", 1),
        ("not-ready", 1),
    ] {
        assert_eq!(scene.host.dropped(cause), packets, "{cause}");
    }
    assert_eq!(scene.host.counts().missed, 3);
    scene.stop();
}

#[test]
fn marked_packets_are_notified_once_in_50_us() {
    let mut scene = scene();
    let mut notified = Vec::new();
    for n in 0..200 {
        let mut packet = Raw::new(0x2a, FIRST + n).reth(ADDRESS, KEY, 1).data(&[0]);
        packet.service = 3;
        let seen = scene.exchange(&[packet]);
        for seen in seen {
            assert_eq!(
                (seen.opcode, seen.backward, seen.rest),
                (0x81, true, vec![0; 16])
            );
            notified.push(n);
        }
    }
    // One microsecond a poll.
    assert_eq!(notified, [0, 50, 100, 150]);
    assert_eq!(scene.host.counts().marked, 200);
    scene.stop();
}
