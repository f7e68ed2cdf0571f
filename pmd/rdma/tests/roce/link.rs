//! A link that goes down, a peer that goes, and what comes after them.

use std::os::unix::net::UnixDatagram;

use pollux_rdma::{Event, Mtu, QpOptions, QueuePair, Status};

use crate::rig::{Host, path, port_link};
use crate::wire::{End, Medium, Sockets, Veth, Wire};

/// All requests end: the oldest with `status`, the others flushed. The queue pair says so once.
fn expect_failure(qp: &mut QueuePair, status: Status) {
    let (mut failed, mut done) = (0, Vec::new());
    while let Some(event) = qp.poll_event() {
        match event {
            Event::Failed(event) => {
                assert_eq!(event.status, status);
                failed += 1;
            }
            Event::Done(event) => done.push(event.status),
            Event::Received(event) => panic!("{event:?}"),
        }
    }
    assert_eq!(failed, 1, "{done:?}");
    let first = done.iter().position(|&of| of != Status::Ok).unwrap();
    assert_eq!(done.len(), 2, "{done:?}");
    assert_eq!(done[first], status);
    assert!(done[first + 1..].iter().all(|&of| of == Status::Flushed));
}

/// Goes down during traffic, at another moment each time and for up to four time-outs, as often as told.
fn a_link_comes_up_in_time(medium: impl Medium, rounds: u8) {
    let mut wire = Wire::new(medium);
    let mut qps = wire.connect();
    for round in 1..=rounds {
        wire.post(&mut qps, round * 3);
        wire.run(u64::from(round), &[0, 1]);
        let ends = [0, 1].map(|n| (n + usize::from(round)) % 2);
        wire.set_up(ends, false);
        wire.run(4000 * u64::from(round) / u64::from(rounds), &[0, 1]);
        wire.set_up(ends, true);
        wire.finish(&mut qps, round * 3);
    }
    for end in &wire.ends {
        let counts = end.host.counts();
        assert!(
            counts.timeouts > 0 && counts.retransmitted > 0,
            "{counts:?}"
        );
    }
    drop(qps);
    wire.stop();
}

#[test]
fn a_link_that_comes_up_in_time_is_recovered_from() {
    a_link_comes_up_in_time(Sockets::new(), 40);
}

#[test]
fn an_interface_that_comes_up_in_time_is_recovered_from() {
    if let Some(veth) = Veth::new() {
        a_link_comes_up_in_time(veth, 8);
    }
}

fn a_link_stays_down(medium: impl Medium) {
    let mut wire = Wire::new(medium);
    for round in [1, 5, 9] {
        let mut qps = wire.connect();
        wire.post(&mut qps, round);
        wire.run(3, &[0, 1]);
        wire.set_up([0, 1], false);
        wire.give_up(&[0, 1]);
        for qp in &mut qps {
            expect_failure(qp, Status::RetryExceeded);
        }
        wire.set_up([0, 1], true);
        // The old ones are still there, and disturb nothing.
        let mut next = wire.connect();
        wire.post(&mut next, round + 2);
        wire.finish(&mut next, round + 2);
        drop(qps);
    }
    wire.stop();
}

#[test]
fn a_link_that_stays_down_fails_the_queue_pairs_and_the_next_ones_are_new() {
    a_link_stays_down(Sockets::new());
}

#[test]
fn an_interface_that_stays_down_fails_the_queue_pairs_and_the_next_ones_are_new() {
    if let Some(veth) = Veth::new() {
        a_link_stays_down(veth);
    }
}

/// A peer that is stopped takes no frames: the port holds them, and no more can be sent.
#[test]
fn a_port_that_takes_nothing_fails_the_queue_pair() {
    let mut wire = Wire::new(Sockets::new());
    let mut qps = wire.connect();
    wire.post(&mut qps, 1);
    wire.give_up(&[0]);
    expect_failure(&mut qps[0], Status::RetryExceeded);
    // The peer goes on, finds frames of the past, and is refused in its turn: nothing answers any more.
    wire.give_up(&[0, 1]);
    expect_failure(&mut qps[1], Status::RetryExceeded);
    assert!(wire.ends[0].host.dropped("unknown-qp") > 0);
    let mut next = wire.connect();
    wire.post(&mut next, 5);
    wire.finish(&mut next, 5);
    drop((qps, next));
    wire.stop();
}

#[test]
fn a_peer_that_is_gone_is_given_up_and_another_one_takes_its_place() {
    let mut wire = Wire::new(Sockets::new());
    for round in [1, 5, 9] {
        let mut qps = wire.connect();
        wire.post(&mut qps, round);
        wire.run(3, &[0, 1]);
        let [mut qp, gone] = qps;
        drop(gone);
        let Wire {
            ends: [end, peer],
            medium,
            now,
        } = wire;
        peer.stop();
        // As of a process that was killed: a socket that no program is bound to.
        drop(UnixDatagram::bind(medium.path(1)).unwrap());
        let mut rest = end;
        let mut time = now;
        for _ in 0..12_000 {
            time.0 += 1000;
            rest.host.poll.poll(time);
        }
        expect_failure(&mut qp, Status::RetryExceeded);
        let peer = End::new(1, &medium);
        wire = Wire {
            ends: [rest, peer],
            medium,
            now: time,
        };
        let mut next = wire.connect();
        wire.post(&mut next, round + 2);
        wire.finish(&mut next, round + 2);
    }
    wire.stop();
}

#[test]
fn an_mtu_that_the_port_does_not_carry_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [own, peer] = ["a", "b"].map(|name| folder.path().join(name));
    let (own, peer) = (own.display(), peer.display());
    let (link, queues) = port_link(&format!("unix:{own},peer={peer},mtu=1500"));
    let mut host = Host::new(0, &link, queues);
    let qp = host
        .endpoint
        .create_queue_pair(&QpOptions::default())
        .unwrap();
    let refused = host.endpoint.connect(&qp, &qp.address(), &path(Mtu::B2048));
    let why = refused.unwrap_err().to_string();
    assert!(
        why.contains("2048") && why.contains("1514") && why.contains("smaller"),
        "{why}"
    );
    // It is not connected by that.
    host.endpoint
        .connect(&qp, &qp.address(), &path(Mtu::B1024))
        .unwrap();
    drop(qp);
    link.stop_one(host.poll.into_queues());
}
