//! Peers that connect late, disconnect, and return.

use std::time::Instant;

use crate::support::{PATIENCE, Place, Port, frame, number, pass, spec};

const ENDS: [(&str, &str); 4] = [
    ("role=driver", "role=device,server"),
    ("role=driver,server", "role=device"),
    ("role=device", "role=driver,server"),
    ("role=device,server", "role=driver"),
];

#[test]
fn either_end_may_start_first() {
    for (first, second) in ENDS {
        let place = Place::new();
        let mut first = Port::open(&spec(&place.socket(), first), 1);
        assert!(!first.is_up());
        // Nothing is received or sent, and the frame stays with the caller.
        assert!(first.poll(0).is_empty());
        assert_eq!(first.send(0, &[frame(0, 60)]), 0);
        let mut second = Port::open(&spec(&place.socket(), second), 1);
        first.wait_up(true);
        second.wait_up(true);
        pass(&mut first, &mut second, 0, &[60; 200]);
        pass(&mut second, &mut first, 0, &[1514; 200]);
        first.stop();
        second.stop();
    }
}

#[test]
fn what_is_sent_at_once_arrives() {
    for round in 0..10 {
        let (front, back) = ENDS[round % ENDS.len()];
        let place = Place::new();
        let mut one = Port::open(&spec(&place.socket(), front), 1);
        let mut other = Port::open(&spec(&place.socket(), back), 1);
        // Each sends from the start, and polls only when all frames have been accepted.
        let frames: Vec<_> = (0..100).map(|i| frame(i, 100)).collect();
        let began = Instant::now();
        let mut sent = [0; 2];
        while sent != [100; 2] {
            assert!(began.elapsed() < PATIENCE, "{sent:?} of 100 frames taken");
            sent[0] += one.send(0, &frames[sent[0]..]);
            sent[1] += other.send(0, &frames[sent[1]..]);
        }
        for port in [&mut one, &mut other] {
            let mut got = 0;
            while got < 100 {
                assert!(began.elapsed() < PATIENCE, "{got} of 100 frames");
                for bytes in port.poll(0) {
                    assert_eq!(number(&bytes), got);
                    got += 1;
                }
            }
        }
        one.stop();
        other.stop();
    }
}

/// One end is dropped during traffic without a close of the session, and another replaces it;
/// twice.
#[test]
fn a_peer_that_goes_and_comes_back_is_served_again() {
    for (stays, goes) in ENDS {
        println!("{goes} goes");
        let place = Place::new();
        let mut port = Port::open(&spec(&place.socket(), stays), 1);
        let (mut offered, mut taken_by_peers, mut sent_by_peers) = (0, 0, 0);
        for round in 0..3 {
            let mut peer = Port::open(&spec(&place.socket(), goes), 1);
            peer.wait_up(true);
            port.wait_up(true);
            let mut peer_got = 0;
            let began = Instant::now();
            while peer_got < 500 {
                assert!(
                    began.elapsed() < PATIENCE,
                    "round {round}: {peer_got} frames"
                );
                let batch: Vec<_> = (0..32).map(|i| frame(offered + i, 64)).collect();
                offered += port.send(0, &batch) as u32;
                peer.send(0, &batch);
                for bytes in peer.poll(0) {
                    number(&bytes);
                    peer_got += 1;
                }
                for bytes in port.poll(0) {
                    number(&bytes);
                }
            }
            // With frames in both rings.
            let batch: Vec<_> = (0..32).map(|i| frame(offered + i, 64)).collect();
            offered += port.send(0, &batch) as u32;
            peer.send(0, &batch);
            drop(peer.started.port);
            drop((peer.started.rx, peer.started.tx));
            taken_by_peers += peer_got;
            sent_by_peers += 1;
            port.wait_up(false);
            assert_eq!(port.started.port.link().changes, 2 * (round + 1));
        }
        assert_eq!(sent_by_peers, 3);
        let (received, sent, errors) = port.stop();
        // A front end knows which of its frames were used; a back end has put all into the ring.
        assert_eq!(sent + errors, u64::from(offered));
        assert!(
            sent >= taken_by_peers,
            "{sent} sent, {taken_by_peers} taken"
        );
        assert!(received.from_wire > 0);
    }
}
