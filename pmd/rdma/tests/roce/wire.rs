//! Two ends on a wire that can be cut: a pair of sockets, or a cable between interfaces of the kernel.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pollux_mempool::time::Ns;
use pollux_pmd::{RxQueue, TxQueue};
use pollux_pmd_testkit::netns::Cable;
use pollux_rdma::{
    Access, Buffer, Event, Get, Mtu, PathOptions, Payload, Put, QpOptions, QueuePair, Status,
};
use tempfile::TempDir;

use crate::rig::{Host, Link, memory, path, port_link};

const BYTES: u32 = 60_000;

/// What carries frames from one end to the other.
pub(crate) trait Medium {
    /// Time-out of an acknowledgement: 4.096 us x 2^TIMEOUT, several times what a frame may take.
    const TIMEOUT: u8;

    fn open(&self, end: usize) -> (Link, (RxQueue, TxQueue));

    /// Takes the link of an end away, or brings it back.
    fn set_up(&self, end: usize, is_up: bool);

    /// The time of the next poll.
    fn pass(&mut self, now: Ns) -> Ns;
}

/// A pair of sockets.
pub(crate) struct Sockets {
    paths: [PathBuf; 2],
    _folder: TempDir,
}

impl Sockets {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            paths: ["a", "b"].map(|name| folder.path().join(name)),
            _folder: folder,
        }
    }

    pub(crate) fn path(&self, end: usize) -> &PathBuf {
        &self.paths[end]
    }
}

impl Medium for Sockets {
    /// A millisecond.
    const TIMEOUT: u8 = 8;

    fn open(&self, end: usize) -> (Link, (RxQueue, TxQueue)) {
        let [own, peer] = [end, 1 - end].map(|n| self.paths[n].display());
        port_link(&format!("unix:{own},peer={peer},mtu=4200"))
    }

    /// What is sent while the peer's socket is away is a transmit error.
    fn set_up(&self, end: usize, is_up: bool) {
        let path = &self.paths[end];
        let aside = path.with_extension("aside");
        let (from, to) = if is_up {
            (&aside, path)
        } else {
            (path, &aside)
        };
        fs::rename(from, to).unwrap();
    }

    fn pass(&mut self, now: Ns) -> Ns {
        Ns(now.0 + 1000)
    }
}

/// A cable. Its time is the machine's while the ends are polled, and stands still otherwise: a thread that
/// waits for a CPU uses up no retries.
pub(crate) struct Veth {
    pub(crate) cable: Cable,
    polled: Instant,
}

/// Most time from one poll to the next.
const STEP: Duration = Duration::from_micros(100);

impl Veth {
    /// `None`, and the reason on stdout, where there are no namespaces.
    pub(crate) fn new() -> Option<Self> {
        Some(Self {
            cable: Cable::bare(1500)?,
            polled: Instant::now(),
        })
    }
}

impl Medium for Veth {
    /// 34 ms: the kernel passes frames on when it has a CPU.
    const TIMEOUT: u8 = 13;

    fn open(&self, end: usize) -> (Link, (RxQueue, TxQueue)) {
        let (namespace, spec) = match end {
            0 => (&self.cable.a, "af_packet:va"),
            _ => (&self.cable.b, "af_packet:vb"),
        };
        namespace.within(|| port_link(spec))
    }

    fn set_up(&self, end: usize, is_up: bool) {
        let state = if is_up { "up" } else { "down" };
        match end {
            0 => self.cable.a.ip(&format!("link set va {state}")),
            _ => self.cable.b.ip(&format!("link set vb {state}")),
        };
    }

    fn pass(&mut self, now: Ns) -> Ns {
        let spent = self.polled.elapsed().min(STEP);
        self.polled = Instant::now();
        Ns(now.0 + spent.as_nanos() as u64)
    }
}

/// One end: a host on a port of its own.
pub(crate) struct End {
    pub(crate) host: Host,
    link: Link,
    buffer: Buffer,
}

impl End {
    pub(crate) fn new(n: usize, medium: &impl Medium) -> Self {
        let (link, queues) = medium.open(n);
        let mut host = Host::new(n, &link, queues);
        let buffer = host.register(&memory(2 * BYTES as usize), Access::ALL);
        Self { host, link, buffer }
    }

    /// The ledger balances, and all buffers are back.
    pub(crate) fn stop(self) {
        self.host.balance();
        self.link.stop_one(self.host.poll.into_queues());
    }
}

/// Two ends on a medium.
pub(crate) struct Wire<M> {
    pub(crate) ends: [End; 2],
    pub(crate) medium: M,
    pub(crate) now: Ns,
}

impl<M: Medium> Wire<M> {
    pub(crate) fn new(medium: M) -> Self {
        let ends = [0, 1].map(|n| End::new(n, &medium));
        Self {
            ends,
            medium,
            now: Ns(0),
        }
    }

    /// A connected queue pair at each end.
    pub(crate) fn connect(&mut self) -> [QueuePair; 2] {
        let qps = [0, 1].map(|n| {
            let endpoint = &mut self.ends[n].host.endpoint;
            endpoint.create_queue_pair(&QpOptions::default()).unwrap()
        });
        let options = PathOptions {
            timeout: M::TIMEOUT,
            ..path(Mtu::B1024)
        };
        for n in [0, 1] {
            let peer = qps[1 - n].address();
            self.ends[n]
                .host
                .endpoint
                .connect(&qps[n], &peer, &options)
                .unwrap();
        }
        qps
    }

    /// Takes the links of the ends away, or brings them back, one after the other.
    pub(crate) fn set_up(&self, ends: [usize; 2], is_up: bool) {
        for end in ends {
            self.medium.set_up(end, is_up);
        }
    }

    fn poll(&mut self, ends: &[usize]) {
        self.now = self.medium.pass(self.now);
        for &n in ends {
            self.ends[n].host.poll.poll(self.now);
        }
    }

    /// Polls the named ends for so many thousandths of a time-out.
    pub(crate) fn run(&mut self, thousandths: u64, ends: &[usize]) {
        let end = self.now.0 + thousandths * ((4096 << M::TIMEOUT) / 1000);
        while self.now.0 < end {
            self.poll(ends);
        }
    }

    /// Polls until every request must have been given up: after eight time-outs.
    pub(crate) fn give_up(&mut self, ends: &[usize]) {
        self.run(11_000, ends);
    }

    /// A PUT and a GET of each end, of data that are new each time.
    pub(crate) fn post(&self, qps: &mut [QueuePair; 2], round: u8) {
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
    pub(crate) fn finish(&mut self, qps: &mut [QueuePair; 2], round: u8) {
        for (n, qp) in qps.iter_mut().enumerate() {
            for cookie in [0, 1] {
                let event = loop {
                    if let Some(event) = qp.poll_event() {
                        break event;
                    }
                    self.poll(&[0, 1]);
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

    pub(crate) fn stop(self) {
        self.ends.into_iter().for_each(End::stop);
    }
}
