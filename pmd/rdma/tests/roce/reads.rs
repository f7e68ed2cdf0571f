//! READs, against packets made of bytes.

use pollux_rdma::{Access, Mtu, QpKind};

use crate::raw::{ADDRESS, BYTES, KEY, PEER, Raw, Scene, Seen};
use crate::rig::{address, path};

const FIRST: u32 = PEER.1;

#[test]
fn a_read_is_answered_again_from_where_it_is_asked() {
    let mut scene = Scene::new(QpKind::Reliable, Access::READ, &path(Mtu::B256));
    let data: Vec<u8> = (0..1000_u32).map(|n| n as u8).collect();
    scene.memory.write(10, &data).unwrap();
    let read = |psn, skip: u32| {
        let at = ADDRESS + 10 + u64::from(skip);
        Raw::new(0x0c, psn).reth(at, KEY, 1000 - skip)
    };
    let responses = |seen: Vec<Seen>| -> Vec<(u8, u32, Vec<u8>)> {
        let strip = |seen: Seen| {
            let aeth = if seen.opcode == 0x0e { 0 } else { 4 };
            (seen.opcode, seen.psn, seen.rest[aeth..].to_vec())
        };
        seen.into_iter().map(strip).collect()
    };
    let all = |from: u32| -> Vec<(u8, u32, Vec<u8>)> {
        let part = |n: u32| match (n == from, n == 3) {
            (true, true) => 0x10,
            (true, false) => 0x0d,
            (false, false) => 0x0e,
            (false, true) => 0x0f,
        };
        let chunks = data.chunks(256).enumerate().skip(from as usize);
        chunks
            .map(|(n, chunk)| (part(n as u32), FIRST + n as u32, chunk.to_vec()))
            .collect()
    };
    assert_eq!(responses(scene.exchange(&[read(FIRST, 0)])), all(0));
    for skip in [0, 1, 3] {
        assert_eq!(
            responses(scene.exchange(&[read(FIRST + skip, skip * 256)])),
            all(skip)
        );
    }
    // It took the numbers of its responses.
    let seen = scene.exchange(&[Raw::new(0x0c, FIRST + 4).reth(ADDRESS, KEY, 1)]);
    assert_eq!((seen.len(), seen[0].psn), (1, FIRST + 4));
    // A duplicate that reaches beyond what was asked is none.
    assert_eq!(
        scene.exchange(&[Raw::new(0x0c, FIRST + 4).reth(ADDRESS, KEY, 257)]),
        []
    );
    assert_eq!(scene.host.dropped("invalid-request"), 1);
    scene.stop();
}

/// Also one whose answer has not begun: the numbers before are those that the peer has.
#[test]
fn a_read_that_waits_is_answered_from_where_it_is_asked_again() {
    let mut scene = Scene::new(QpKind::Reliable, Access::READ, &path(Mtu::B256));
    let all = BYTES as u32;
    let read = |psn, skip: u32| {
        let at = ADDRESS + u64::from(skip) * 256;
        Raw::new(0x0c, psn).reth(at, KEY, all - skip * 256)
    };
    // Each is a portion.
    let seen = scene.exchange(&[read(FIRST, 0), read(FIRST + 32, 0)]);
    assert_eq!((seen.len(), seen[31].psn), (32, FIRST + 31));
    let seen = scene.exchange(&[read(FIRST + 32 + 5, 5)]);
    let psns: Vec<u32> = seen.iter().map(|seen| seen.psn).collect();
    assert_eq!(psns, (FIRST + 37..FIRST + 64).collect::<Vec<_>>());
    scene.stop();
}

#[test]
fn responses_leave_in_portions_and_acknowledgements_wait_for_them() {
    let options = path(Mtu::B256);
    let mut scene = Scene::new(QpKind::Reliable, Access::ALL, &options);
    let packets = [
        Raw::new(0x0c, FIRST).reth(ADDRESS, KEY, BYTES as u32),
        Raw::new(0x0a, FIRST + 32)
            .reth(ADDRESS, KEY, 5)
            .data(b"after"),
    ];
    let mut seen = scene.exchange(&packets);
    while seen.len() < 33 {
        let more = scene.poll();
        assert!(!more.is_empty());
        seen.extend(more);
    }
    let psns: Vec<u32> = seen.iter().map(|seen| seen.psn).collect();
    assert_eq!(psns, (FIRST..=FIRST + 32).collect::<Vec<_>>());
    assert_eq!((seen[31].opcode, seen[32].opcode), (0x0f, 0x11));
    scene.stop();
}

/// A long GET is answered in portions: an acknowledgement of another queue pair leaves in the next poll.
#[test]
fn a_long_get_delays_no_acknowledgement_of_a_neighbour() {
    let options = path(Mtu::B256);
    let mut scene = Scene::new(QpKind::Reliable, Access::ALL, &options);
    let neighbour = scene.host.queue_pair(QpKind::Reliable, 0x12, 0);
    let peer = address(1, PEER.0, 7000);
    let connected = scene.host.endpoint.connect(&neighbour, &peer, &options);
    connected.unwrap();
    let reads = (0..100).map(|n| Raw::new(0x0c, FIRST + 32 * n).reth(ADDRESS, KEY, BYTES as u32));
    let reads: Vec<_> = reads.collect();
    let mut seen = 0;
    for chunk in reads.chunks(25) {
        seen += scene.exchange(chunk).len();
    }
    for n in 0..20 {
        let mut write = Raw::new(0x0a, 7000 + n).reth(ADDRESS, KEY, 1).data(&[1]);
        write.qp = 0x12;
        let sent = scene.exchange(&[write]);
        let acks = sent.iter().filter(|seen| Seen::ack(7000 + n, 0x1f)(seen));
        assert_eq!(acks.count(), 1, "{n}");
        seen += sent.len() - 1;
    }
    // The answers have not all left by then, and do so.
    assert!(seen < 3200, "{seen}");
    while seen < 3200 {
        let more = scene.poll().len();
        assert!(more > 0, "{seen}");
        seen += more;
    }
    drop(neighbour);
    scene.stop();
}

/// A peer that asks for too much is told to wait, with a cause of its own; what it asks for again is answered.
#[test]
fn a_read_beyond_those_that_are_kept_has_to_wait() {
    const KEPT: usize = 128;
    let mut scene = Scene::new(QpKind::Reliable, Access::READ, &path(Mtu::B256));
    // Each has 32 responses, as many as leave in a poll.
    let read = |n: usize| Raw::new(0x0c, FIRST + 32 * n as u32).reth(ADDRESS, KEY, BYTES as u32);
    let (mut asked, mut seen) = (0, Vec::new());
    while scene.host.dropped("too-many-reads") == 0 {
        let reads: Vec<_> = (asked..asked + 32).map(read).collect();
        seen.extend(scene.exchange(&reads));
        asked += 32;
        assert!(asked <= 2 * KEPT);
    }
    // Two of before are asked for again: there is room for one.
    seen.extend(scene.exchange(&[read(0), read(1)]));
    assert_eq!(scene.host.dropped("too-many-reads"), 2);
    let is_refusal = |seen: &Seen| seen.opcode == 0x11;
    while !seen.last().is_some_and(is_refusal) {
        let more = scene.poll();
        assert!(!more.is_empty());
        seen.extend(more);
    }
    let refusal = seen.pop().unwrap();
    let mut answered: Vec<_> = seen.iter().map(|seen| seen.psn).collect();
    answered.sort_unstable();
    answered.dedup();
    let taken = answered.len() / 32;
    assert_eq!(seen.len(), (taken + 1) * 32);
    assert!(taken > KEPT, "{taken}");
    let (psn, wait) = (FIRST + 32 * taken as u32, 0x2c);
    assert!(Seen::ack(psn, wait)(&refusal), "{refusal:?}");
    assert_eq!(scene.host.dropped("not-ready"), 0);
    assert_eq!(scene.exchange(&[read(taken)]).len(), 32);
    scene.stop();
}
