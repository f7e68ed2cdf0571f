//! A link that goes down, a peer that goes, and what comes after them: over a pair of sockets.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use pollux_mempool::time::Ns;
use pollux_rdma::{
    Access, Buffer, Event, Get, Mtu, PathOptions, Payload, Put, QpOptions, QueuePair, Status,
};
use tempfile::TempDir;

use crate::rig::{Host, Link, memory, path, unix_link};

const BYTES: u32 = 60_000;

/// One end: a host on a port of its own.
struct End {
    host: Host,
    link: Link,
    buffer: Buffer,
}

impl End {
    fn new(n: usize, paths: &[PathBuf; 2]) -> Self {
        let (link, queues) = unix_link(&paths[n], &paths[1 - n], 4200);
        let mut host = Host::new(n, &link, queues);
        let buffer = host.register(&memory(2 * BYTES as usize), Access::ALL);
        Self { host, link, buffer }
    }

    /// The ledger balances, and all buffers are back.
    fn stop(self) {
        self.host.balance();
        self.link.stop_one(self.host.poll.into_queues());
    }
}

/// Two ends on a wire that can be cut.
struct Wire {
    ends: [End; 2],
    paths: [PathBuf; 2],
    now: Ns,
    folder: TempDir,
}

impl Wire {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        let ends = [0, 1].map(|n| End::new(n, &paths));
        Self {
            ends,
            paths,
            now: Ns(0),
            folder,
        }
    }

    /// Takes both sockets away, or puts them back: what is sent meanwhile is a transmit error.
    fn set_up(&self, is_up: bool) {
        for path in &self.paths {
            let aside = path.with_extension("aside");
            let (from, to) = if is_up {
                (&aside, path)
            } else {
                (path, &aside)
            };
            fs::rename(from, to).unwrap();
        }
    }

    fn connect(&mut self, options: &PathOptions) -> [QueuePair; 2] {
        let qps = [0, 1].map(|n| {
            let endpoint = &mut self.ends[n].host.endpoint;
            endpoint.create_queue_pair(&QpOptions::default()).unwrap()
        });
        for n in [0, 1] {
            let peer = qps[1 - n].address();
            self.ends[n]
                .host
                .endpoint
                .connect(&qps[n], &peer, options)
                .unwrap();
        }
        qps
    }

    /// So many microseconds of polls of the named ends.
    fn run(&mut self, us: u64, ends: &[usize]) {
        for _ in 0..us {
            self.now.0 += 1000;
            for &n in ends {
                self.ends[n].host.poll.poll(self.now);
            }
        }
    }

    /// A PUT and a GET of each end, of data that are new each time.
    fn post(&self, qps: &mut [QueuePair; 2], round: u8) {
        for n in [0, 1] {
            let (own, peer) = (&self.ends[n].buffer, &self.ends[1 - n].buffer);
            own.write(0, &vec![round + n as u8; BYTES as usize])
                .unwrap();
            let (payload, to) = (
                Payload::Indirect(own.part(0, BYTES)),
                peer.remote().at(BYTES.into()),
            );
            qps[n]
                .put(Put {
                    cookie: 0,
                    payload,
                    to,
                    immediate: None,
                })
                .unwrap();
            let (from, to) = (peer.remote(), own.part(BYTES.into(), BYTES));
            qps[n]
                .get(Get {
                    cookie: 1,
                    from,
                    to,
                })
                .unwrap();
            qps[n].doorbell();
        }
    }

    /// Both requests of both ends are done, and their bytes are there.
    fn finish(&mut self, qps: &mut [QueuePair; 2], round: u8) {
        for (n, qp) in qps.iter_mut().enumerate() {
            for cookie in [0, 1] {
                let mut polls = 0;
                let event = loop {
                    if let Some(event) = qp.poll_event() {
                        break event;
                    }
                    self.run(1, &[0, 1]);
                    polls += 1;
                    assert!(polls < 1_000_000, "it hangs");
                };
                assert!(
                    matches!(event, Event::Done(done) if (done.cookie, done.status) == (cookie, Status::Ok)),
                    "{n}: {event:?}"
                );
            }
        }
        for n in [0, 1] {
            let mut found = vec![0; BYTES as usize];
            self.ends[n]
                .buffer
                .read(BYTES as usize, &mut found)
                .unwrap();
            assert!(found.iter().all(|&byte| byte == round + 1 - n as u8), "{n}");
        }
    }

    fn stop(self) {
        self.ends.into_iter().for_each(End::stop);
        self.folder.close().unwrap();
    }
}

/// 4.096 us x 2^8 are a millisecond.
fn patient() -> PathOptions {
    PathOptions {
        timeout: 8,
        ..path(Mtu::B1024)
    }
}

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

#[test]
fn a_link_that_comes_up_in_time_is_recovered_from() {
    let mut wire = Wire::new();
    let mut qps = wire.connect(&patient());
    for round in 1..40 {
        wire.post(&mut qps, round * 3);
        // It goes down at another moment each time, for up to four time-outs.
        wire.run(u64::from(round), &[0, 1]);
        wire.set_up(false);
        wire.run(100 * u64::from(round), &[0, 1]);
        wire.set_up(true);
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
fn a_link_that_stays_down_fails_the_queue_pairs_and_the_next_ones_are_new() {
    let mut wire = Wire::new();
    for round in [1, 5, 9] {
        let mut qps = wire.connect(&patient());
        wire.post(&mut qps, round);
        wire.run(3, &[0, 1]);
        wire.set_up(false);
        wire.run(12_000, &[0, 1]);
        for qp in &mut qps {
            expect_failure(qp, Status::RetryExceeded);
        }
        wire.set_up(true);
        // The old ones are still there, and disturb nothing.
        let mut next = wire.connect(&patient());
        wire.post(&mut next, round + 2);
        wire.finish(&mut next, round + 2);
        drop(qps);
    }
    wire.stop();
}

/// A peer that is stopped takes no frames: the port holds them, and no more can be sent.
#[test]
fn a_port_that_takes_nothing_fails_the_queue_pair() {
    let mut wire = Wire::new();
    let mut qps = wire.connect(&patient());
    wire.post(&mut qps, 1);
    wire.run(12_000, &[0]);
    expect_failure(&mut qps[0], Status::RetryExceeded);
    // The peer goes on, finds frames of the past, and is refused in its turn: nothing answers any more.
    wire.run(12_000, &[0, 1]);
    expect_failure(&mut qps[1], Status::RetryExceeded);
    assert!(wire.ends[0].host.dropped("unknown-qp") > 0);
    let mut next = wire.connect(&patient());
    wire.post(&mut next, 5);
    wire.finish(&mut next, 5);
    drop((qps, next));
    wire.stop();
}

#[test]
fn a_peer_that_is_gone_is_given_up_and_another_one_takes_its_place() {
    let mut wire = Wire::new();
    for round in [1, 5, 9] {
        let mut qps = wire.connect(&patient());
        wire.post(&mut qps, round);
        wire.run(3, &[0, 1]);
        let [mut qp, gone] = qps;
        drop(gone);
        let Wire {
            ends: [end, peer],
            paths,
            folder,
            now,
        } = wire;
        peer.stop();
        // As of a process that was killed: a socket that no program is bound to.
        drop(UnixDatagram::bind(&paths[1]).unwrap());
        let mut rest = end;
        let mut time = now;
        for _ in 0..12_000 {
            time.0 += 1000;
            rest.host.poll.poll(time);
        }
        expect_failure(&mut qp, Status::RetryExceeded);
        let peer = End::new(1, &paths);
        wire = Wire {
            ends: [rest, peer],
            paths,
            folder,
            now: time,
        };
        let mut next = wire.connect(&patient());
        wire.post(&mut next, round + 2);
        wire.finish(&mut next, round + 2);
    }
    wire.stop();
}

#[test]
fn an_mtu_that_the_port_does_not_carry_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| folder.path().join(name));
    let (link, queues) = unix_link(&paths[0], &paths[1], 1500);
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
