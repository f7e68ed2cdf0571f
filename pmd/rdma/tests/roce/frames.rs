//! Frames before a queue pair sees them: whose they are, and what is in front of their packets.

use pollux_rdma::{Access, Message, Mtu, Payload, QpKind};

use crate::raw::{ADDRESS, KEY, OWN, PEER, Raw, Scene, Seen, icrc_behind};
use crate::rig::{IPS, MACS, path};

const FIRST: u32 = PEER.1;

fn scene(kind: QpKind, access: Access) -> Scene {
    Scene::new(kind, access, &path(Mtu::B256))
}

fn write_only(psn: u32, data: &[u8]) -> Raw {
    Raw::new(0x0a, psn)
        .reth(ADDRESS, KEY, data.len() as u32)
        .data(data)
}

#[test]
fn packets_of_others_are_dropped_by_cause_and_disturb_nothing() {
    let good = write_only(FIRST, b"good");
    let mut scene = scene(QpKind::Reliable, Access::ALL);
    let cases: [(&str, Raw); 7] = [
        (
            "unknown-qp",
            Raw {
                qp: 0x12,
                ..good.clone()
            },
        ),
        (
            "wrong-partition",
            Raw {
                pkey: 0xfffe,
                ..good.clone()
            },
        ),
        (
            "malformed",
            Raw {
                flags: 1,
                ..good.clone()
            },
        ),
        (
            "wrong-transport",
            Raw {
                opcode: 0x2a,
                ..good.clone()
            },
        ),
        (
            "wrong-source",
            Raw {
                source: [10, 0, 0, 3],
                ..good.clone()
            },
        ),
        (
            "malformed",
            Raw {
                opcode: 0xff,
                ..good.clone()
            },
        ),
        ("unexpected-response", Raw::new(0x11, OWN.1).aeth(0x1f)),
    ];
    for (cause, packet) in cases {
        let before = scene.host.dropped(cause);
        assert_eq!(scene.exchange(&[packet]), [], "{cause}");
        assert_eq!(scene.host.dropped(cause), before + 1, "{cause}");
    }
    // To a group, and to another host: the ICRC is right.
    for address in [[224, 0, 0, 9], [255; 4], [10, 0, 0, 77]] {
        let mut frame = good.frame();
        frame[30..34].copy_from_slice(&address);
        frame[24..26].fill(0);
        let sum = pollux_pmd_testkit::frames::naive_checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        let covered = frame.len() - 4;
        let crc = icrc_behind(&frame[..covered], 20);
        frame[covered..].copy_from_slice(&crc);
        scene.send_frame(&frame);
        assert_eq!(scene.poll(), []);
    }
    assert_eq!(scene.host.dropped("not-for-us"), 3);
    // Padding that is none: three bytes without padding.
    let mut odd = good.clone();
    odd.rest.pop();
    assert_eq!(scene.exchange(&[odd]), []);
    assert_eq!(scene.host.dropped("malformed"), 3);
    let frame = good.frame();
    for at in 14..frame.len() {
        let mut damaged = frame.clone();
        damaged[at] ^= 0x10;
        scene.send_frame(&damaged);
        scene.poll();
    }
    // All behind the IP header, but for the port, the length, and three bytes that the ICRC does not cover.
    assert_eq!(
        scene.host.dropped("bad-icrc"),
        frame.len() as u64 - 34 - 2 - 2 - 3
    );
    let seen = scene.exchange(&[write_only(FIRST + 1, b"next")]);
    assert!(
        matches!(&seen[..], [one] if Seen::ack(FIRST + 1, 0x1f)(one)),
        "{seen:?}"
    );
    assert_eq!(scene.bytes(0, 4), b"next");
    assert_eq!(scene.events(), []);
    scene.stop();
}

/// What is in front of the UDP header may be longer: a VLAN tag, two of them, options of IPv4.
#[test]
fn tags_and_options_are_taken() {
    let mut scene = scene(QpKind::Reliable, Access::ALL);
    let frame = |psn: u32| write_only(psn, &psn.to_be_bytes()).frame();
    let mut tagged = frame(FIRST);
    tagged.splice(12..12, [0x81, 0, 0, 7]);
    let mut twice = frame(FIRST + 1);
    twice.splice(12..12, [0x88, 0xa8, 0, 7, 0x81, 0, 0, 8]);
    // "No operation" and "end of the list", with the lengths, the checksum and the ICRC that follow.
    let mut options = frame(FIRST + 2);
    options.truncate(options.len() - 4);
    options.splice(34..34, [1, 1, 1, 0]);
    options[14] = 0x46;
    let len = options.len() as u16 - 14 + 4;
    options[16..18].copy_from_slice(&len.to_be_bytes());
    options[24..26].fill(0);
    let sum = pollux_pmd_testkit::frames::naive_checksum(&options[14..38]);
    options[24..26].copy_from_slice(&sum.to_be_bytes());
    let crc = icrc_behind(&options, 24);
    options.extend(crc);
    for (n, frame) in [tagged, twice, options].iter().enumerate() {
        let psn = FIRST + n as u32;
        scene.send_frame(frame);
        let seen = scene.poll();
        assert!(
            matches!(&seen[..], [one] if Seen::ack(psn, 0x1f)(one)),
            "{n}: {seen:?}"
        );
        assert_eq!(scene.bytes(0, 4), psn.to_be_bytes());
    }
    // IPv6 is not offered, and is no damage.
    let mut v6 = frame(FIRST + 3);
    let datagram = v6.split_off(34);
    v6.truncate(12);
    v6.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
    v6.extend((datagram.len() as u16).to_be_bytes());
    v6.extend([17, 64]);
    v6.extend([0xfd; 32]);
    v6.extend(datagram);
    scene.send_frame(&v6);
    assert_eq!(scene.poll(), []);
    assert_eq!(
        (
            scene.host.dropped("not-for-us"),
            scene.host.dropped("bad-icrc")
        ),
        (1, 0)
    );
    scene.stop();
}

#[test]
fn migration_state_and_partial_membership_are_taken() {
    let mut scene = scene(QpKind::Reliable, Access::ALL);
    let mut packet = write_only(FIRST, b"abcd");
    packet.flags |= 0x40;
    packet.pkey = 0x7fff;
    let seen = scene.exchange(&[packet]);
    assert!(matches!(&seen[..], [one] if Seen::ack(FIRST, 0x1f)(one)));
    scene.stop();
}

/// A host that says by ARP that it has another MAC address has its packets there from then on.
#[test]
fn a_peer_may_move() {
    let mut scene = scene(QpKind::Reliable, Access::ALL);
    let moved = [2, 0, 0, 0, 9, 9];
    let send = |scene: &mut Scene| {
        let (cookie, payload, immediate) = (0, Payload::Immediate(b"where"), None);
        scene
            .qp
            .send(Message {
                cookie,
                payload,
                immediate,
            })
            .unwrap();
        scene.qp.doorbell();
        scene.now.0 += 1000;
        scene.host.poll.poll(scene.now);
        let frames = scene.frames();
        <[u8; 6]>::try_from(&frames[0][..6]).unwrap()
    };
    assert_eq!(send(&mut scene), MACS[1].0);
    let mut arp = [0xff; 6].to_vec();
    arp.extend(moved);
    arp.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
    arp.extend(moved);
    arp.extend(IPS[1].octets());
    arp.extend(MACS[0].0);
    arp.extend(IPS[0].octets());
    scene.send_frame(&arp);
    scene.now.0 += 1000;
    scene.host.poll.poll(scene.now);
    assert_eq!(send(&mut scene), moved);
    // Of another host it is no news.
    arp[31] ^= 1;
    arp[27] ^= 1;
    scene.send_frame(&arp);
    scene.now.0 += 1000;
    scene.host.poll.poll(scene.now);
    assert_eq!(send(&mut scene), moved);
    scene.stop_unread();
}
