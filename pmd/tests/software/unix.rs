//! The port `unix`: frames as datagrams, against plain sockets of the standard library and a second
//! port.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Instant;

use pollux_mempool::{Burst, Mempool, PoolCache, PoolConfig};
use pollux_pmd::{
    Balance, Cause, Ledger, PortConfig, PortError, Registry, RxState, StartedPort, Tally,
};
use pollux_pmd_testkit::netns::payload;
use tempfile::TempDir;

use crate::common::{PATIENCE, pool};

/// Paths of the two ends.
struct Ends {
    _folder: TempDir,
    port: PathBuf,
    peer: PathBuf,
}

impl Ends {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [port, peer] = ["port", "peer"].map(|name| folder.path().join(name));
        Self {
            _folder: folder,
            port,
            peer,
        }
    }

    fn spec(&self, options: &str) -> String {
        let (port, peer) = (self.port.display(), self.peer.display());
        format!("unix:{port},peer={peer}{options}")
    }

    /// The peer, as a socket that sends to the port.
    fn bind_peer(&self) -> UnixDatagram {
        let peer = UnixDatagram::bind(&self.peer).unwrap();
        peer.set_nonblocking(true).unwrap();
        peer
    }
}

struct Port {
    started: StartedPort,
    pool: Mempool,
    cache: PoolCache,
    ledger: Ledger,
    sink: Tally,
}

fn try_start(spec: &str, pool: &Mempool) -> Result<StartedPort, PortError> {
    let config = PortConfig {
        ring: 64,
        ..PortConfig::new(pool.clone())
    };
    Registry::builtin().open(spec)?.configure(config)?.start()
}

impl Port {
    fn start(spec: &str, buffers: usize) -> Self {
        let pool = pool(buffers);
        let started = try_start(spec, &pool).unwrap();
        let (mut ledger, sink) = (Ledger::new(), Tally::new());
        ledger.add("rx", started.rx[0].tally());
        ledger.add("sink", sink.view());
        Self {
            started,
            cache: pool.cache(16).unwrap(),
            pool,
            ledger,
            sink,
        }
    }

    fn poll(&mut self) -> Vec<Vec<u8>> {
        let mut burst = Burst::<40>::new();
        let n = self.started.rx[0].rx(&mut self.cache, &mut burst);
        self.sink.count_delivered(n as u64);
        let frames = burst.iter().map(|mbuf| {
            let mut bytes = vec![0; mbuf.total_len()];
            mbuf.copy_to(0, &mut bytes);
            bytes
        });
        let frames = frames.collect();
        self.cache.free_burst(&mut burst);
        frames
    }

    fn receive(&mut self, n: usize) -> Vec<Vec<u8>> {
        let (began, mut frames) = (Instant::now(), Vec::new());
        while frames.len() < n && began.elapsed() < PATIENCE {
            frames.extend(self.poll());
        }
        frames.extend(self.poll());
        frames
    }

    fn wait_for(&mut self, state: RxState) {
        let began = Instant::now();
        while self.started.rx[0].state() != state {
            assert!(began.elapsed() < PATIENCE, "never became {state:?}");
            self.poll();
        }
    }

    /// Sends frames; returns how many the queue took.
    fn send(&mut self, frames: &[Vec<u8>]) -> usize {
        let mut burst = Burst::<64>::new();
        for frame in frames {
            burst.push(self.cache.alloc_from(frame).unwrap()).unwrap();
        }
        let taken = self.started.tx[0].tx(&mut self.cache, &mut burst);
        assert_eq!(burst.len(), frames.len() - taken);
        self.cache.free_burst(&mut burst);
        taken
    }

    fn sent(&self) -> (u64, u64) {
        let sent = self.started.tx[0].sent();
        (sent.packets(), sent.errors())
    }

    fn stop(self) -> Balance {
        let StartedPort { port, rx, tx } = self.started;
        port.stop(rx, tx).unwrap();
        drop(self.cache);
        assert_eq!(self.pool.available(), self.pool.buffers());
        self.ledger.check().unwrap()
    }
}

/// Lengths around those of a buffer (2048 bytes), and the longest frames.
const LENS: [usize; 12] = [
    14, 60, 1514, 2047, 2048, 2049, 4096, 4097, 6145, 9014, 9017, 9018,
];

#[test]
fn a_datagram_is_a_frame() {
    let ends = Ends::new();
    let mut port = Port::start(&ends.spec(""), 1024);
    let peer = ends.bind_peer();
    let frames: Vec<_> = (0_u8..).zip(LENS).map(|(i, len)| payload(len, i)).collect();
    let mut got = vec![0; 10_000];
    // Fewer at a time than the kernel queues by default.
    for frames in frames.chunks(8) {
        for frame in frames {
            assert_eq!(peer.send_to(frame, &ends.port).unwrap(), frame.len());
        }
        assert_eq!(port.receive(frames.len()), frames);
        assert_eq!(port.send(frames), frames.len());
        for frame in frames {
            let (n, from) = peer.recv_from(&mut got).unwrap();
            let from = from.as_pathname();
            assert_eq!((&got[..n], from), (&frame[..], Some(&*ends.port)));
        }
    }
    let total = frames.len() as u64;
    assert_eq!(port.sent(), (total, 0));
    let balance = port.stop();
    assert_eq!((balance.from_wire, balance.delivered), (total, total));
    assert_eq!(balance.bytes, LENS.iter().sum::<usize>() as u64);
    assert!(!ends.port.exists(), "the file is removed");
}

/// One way, until the peer's queue is full; then the frames stay with the sender.
#[test]
fn two_ports_exchange_bursts_without_loss() {
    let ends = Ends::new();
    let mut left = Port::start(&ends.spec(""), 1024);
    let (port, peer) = (ends.port.display(), ends.peer.display());
    let mut right = Port::start(&format!("unix:{peer},peer={port}"), 1024);
    let (mut next, mut heard, mut refused) = (0_u32, 0_u32, 0);
    while heard < 20_000 {
        let burst: Vec<_> = (next..next + 50)
            .map(|n| [&n.to_be_bytes()[..], &[7; 60]].concat())
            .collect();
        let taken = left.send(&burst);
        next += taken as u32;
        // At intervals the receiver is far behind.
        if taken == 50 && next % 2000 > 50 {
            continue;
        }
        refused += burst.len() - taken;
        for frame in right.receive(1) {
            assert_eq!(frame, [&heard.to_be_bytes()[..], &[7; 60]].concat());
            heard += 1;
        }
    }
    assert!(refused > 0, "the queue was never full");
    assert_eq!(left.sent().1, 0);
    left.stop();
    let balance = right.stop();
    assert_eq!(balance.from_wire, u64::from(next));
    assert_eq!(balance.dropped_for(Cause::Aborted), u64::from(next - heard));
}

#[test]
fn the_link_is_the_presence_of_the_peer() {
    let ends = Ends::new();
    let mut port = Port::start(&ends.spec(""), 256);
    let frame = || vec![payload(60, 0); 3];
    assert!(!port.started.port.link().up);
    assert_eq!(port.started.rx[0].state(), RxState::Down);
    // Without a peer frames are dropped, and counted.
    assert_eq!((port.send(&frame()), port.sent()), (3, (0, 3)));
    let peer = ends.bind_peer();
    port.wait_for(RxState::Live);
    assert_eq!((port.send(&frame()), port.sent()), (3, (3, 3)));
    assert_eq!(port.started.port.link().changes, 1);
    // The peer is killed: its file stays.
    drop(peer);
    assert_eq!((port.send(&frame()), port.sent()), (3, (3, 6)));
    port.wait_for(RxState::Down);
    let link = port.started.port.link();
    assert_eq!((link.up, link.gone, link.changes), (false, false, 2));
    std::fs::remove_file(&ends.peer).unwrap();
    // One that connects to the port, which then is the only one that may send to it.
    let peer = ends.bind_peer();
    peer.connect(&ends.port).unwrap();
    port.wait_for(RxState::Live);
    assert_eq!((port.send(&frame()), port.sent()), (3, (6, 6)));
    assert_eq!(peer.send(&frame()[0]).unwrap(), 60);
    assert_eq!(port.receive(1).len(), 1);
    port.stop();
}

#[test]
fn frames_that_cannot_be_taken_have_a_cause() {
    let ends = Ends::new();
    let mut port = Port::start(&ends.spec(",mtu=4000"), 40);
    let peer = ends.bind_peer();
    let send = |len| assert_eq!(peer.send_to(&vec![1; len], &ends.port).unwrap(), len);
    for len in [0, 4018, 4019, 20_000, 60] {
        send(len);
    }
    let lens = |frames: Vec<Vec<u8>>| frames.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(lens(port.receive(2)), [4018, 60]);
    // The prepared buffers are all that the pool has left; a second one is missing.
    let held: Vec<_> = std::iter::from_fn(|| port.cache.alloc()).collect();
    send(4018);
    send(60);
    assert_eq!(lens(port.receive(1)), [60]);
    drop(held);
    // Frames that the link cannot carry.
    let frames = [vec![0; 13], vec![0; 4019], vec![0; 14], vec![0; 4018]];
    assert_eq!((port.send(&frames), port.sent()), (4, (2, 2)));
    for len in [60, 0, 61] {
        send(len);
    }
    let balance = port.stop();
    assert_eq!((balance.from_wire, balance.delivered), (8, 3));
    for (cause, count) in [
        (Cause::Malformed, 1),
        (Cause::Oversize, 2),
        (Cause::NoMbuf, 1),
        (Cause::Aborted, 1),
    ] {
        assert_eq!(balance.dropped_for(cause), count, "{cause:?}");
    }
}

/// A pool without a free buffer does not stop the queue.
#[test]
fn an_empty_pool_costs_frames_and_nothing_else() {
    let ends = Ends::new();
    let mut port = Port::start(&ends.spec(""), 16);
    let peer = ends.bind_peer();
    let held: Vec<_> = std::iter::from_fn(|| port.cache.alloc()).collect();
    for n in 0..5 {
        peer.send_to(&payload(60, n), &ends.port).unwrap();
    }
    assert_eq!(port.receive(0), Vec::<Vec<u8>>::new());
    drop(held);
    peer.send_to(&payload(60, 9), &ends.port).unwrap();
    assert_eq!(port.receive(1), [payload(60, 9)]);
    assert_eq!(port.stop().dropped_for(Cause::NoMbuf), 5);
}

#[test]
fn only_the_file_of_a_program_that_has_ended_is_replaced() {
    let ends = Ends::new();
    let pool = pool(256);
    let start = || try_start(&ends.spec(""), &pool);
    let refused = |what: &str| {
        let error = start().map(drop).unwrap_err().to_string();
        assert!(
            error.contains("cannot bind the socket") && error.contains(what),
            "{error}"
        );
    };
    let other = UnixDatagram::bind(&ends.port).unwrap();
    refused("stop that program");
    // Also one that takes datagrams of its own peer alone.
    let friend = ends.bind_peer();
    other.connect(&ends.peer).unwrap();
    refused("stop that program");
    drop((other, friend));
    let StartedPort { port, rx, tx } = start().unwrap();
    // The file of a later program is not this port's.
    std::fs::remove_file(&ends.port).unwrap();
    std::fs::write(&ends.port, b"a file").unwrap();
    port.stop(rx, tx).unwrap();
    assert!(ends.port.exists());
    refused("choose another path");
    std::fs::remove_file(&ends.port).unwrap();
    // A port that was stopped starts again.
    let StartedPort { port, rx, tx } = start().unwrap();
    port.stop(rx, tx).unwrap();
    start().unwrap();
    // And what its end left over is gone.
    let metadata = ends.port.symlink_metadata().map_err(|error| error.kind());
    assert_eq!(metadata.err(), Some(ErrorKind::NotFound));
    let nowhere = format!("unix:{0}/x/a,peer={0}/x/b", ends.port.display());
    let error = try_start(&nowhere, &pool)
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(error.contains("create it"), "{error}");
}

#[test]
fn bad_specs_are_refused_with_what_is_valid() {
    let registry = Registry::builtin();
    let long = "x".repeat(109);
    for (spec, what) in [
        ("unix:/a".into(), "unix needs peer=PATH"),
        (
            "unix:/a,peer=/a".into(),
            "the two ends have different paths",
        ),
        (format!("unix:{long},peer=/b"), "at most 108 bytes"),
        (format!("unix:/a,peer={long}"), "at most 108 bytes"),
        ("unix:/a,peer=/b,mtu=65522".into(), "68 to 65521"),
        (
            "unix:/a,peer=/b,mac=01:00:00:00:00:01".into(),
            "one station",
        ),
        ("unix:/a,peer=/b,queues=2".into(), "no option `queues`"),
    ] {
        let error = registry.check(&spec).unwrap_err().to_string();
        assert!(error.contains(what), "{spec}: {error}");
    }
    let small = PoolConfig {
        buffers: 64,
        ..PoolConfig::default()
    };
    let two = PortConfig {
        rx_queues: 2,
        ..PortConfig::new(Mempool::new(small).unwrap())
    };
    let port = registry.open("unix:/a,peer=/b").unwrap();
    assert!(matches!(
        port.configure(two),
        Err(PortError::Unsupported { .. })
    ));
}
