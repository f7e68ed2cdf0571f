//! Ports, and frames that carry their number.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pollux_mempool::{Burst, Mempool, PoolCache, PoolConfig};
use pollux_pmd::ledger::SentView;
use pollux_pmd::quarantine::leaked_buffers;
use pollux_pmd::{Balance, Ledger, MemoryGrant, PortConfig, Registry, StartedPort, Tally, TxQueue};

pub(crate) use pollux_pmd_testkit::netns::PATIENCE;

/// The drivers of the tests.
pub(crate) fn registry() -> Registry {
    // SAFETY: the peers are run by the tests. A peer that violates the protocol corrupts frames
    // that the test does not read.
    Registry::builtin().granting(unsafe { MemoryGrant::new() })
}

/// A directory for sockets, and this process for one test alone: its open files are counted, and
/// few cores are available for polling. At the end no file is open that was not open at the start.
pub(crate) struct Place {
    dir: tempfile::TempDir,
    before: (usize, usize),
    leaks: Cell<usize>,
    _alone: MutexGuard<'static, ()>,
}

impl Place {
    pub(crate) fn new() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            dir: tempfile::tempdir().unwrap(),
            before: open_things(),
            leaks: Cell::new(0),
            _alone: alone,
        }
    }

    /// The memory of a pool (buffers and headers) and the rings of a session are leaked, each a
    /// region with its descriptor: a back end has not released them.
    pub(crate) fn leaks(&self) {
        self.leaks.set(self.leaks.get() + 3);
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("v.sock")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let (leaks, (descriptors, mappings)) = (self.leaks.get(), self.before);
            let expected = (descriptors + leaks, mappings + leaks);
            assert_eq!(open_things(), expected, "descriptors and mappings");
            assert!(!self.socket().exists(), "the socket's path");
        }
    }
}

/// Open files of this process: descriptors, and mappings of memory files. Pipes belong to a process
/// that a test started: the thread that reads them closes them later.
fn open_things() -> (usize, usize) {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let is_pipe = |entry: &std::io::Result<fs::DirEntry>| {
        let target = fs::read_link(entry.as_ref().unwrap().path()).unwrap_or_default();
        target.to_string_lossy().starts_with("pipe:")
    };
    let descriptors = fs::read_dir("/proc/self/fd").unwrap();
    (
        descriptors.filter(|entry| !is_pipe(entry)).count(),
        maps.lines().filter(|line| line.contains("memfd")).count(),
    )
}

/// The spec of an end of a link.
pub(crate) fn spec(socket: &Path, options: &str) -> String {
    format!("vhost-user:{},{options}", socket.display())
}

/// A started port, and the loop that polls it.
pub(crate) struct Port {
    pub(crate) started: StartedPort,
    pub(crate) pool: Mempool,
    pub(crate) cache: PoolCache,
    ledger: Ledger,
    sink: Tally,
}

impl Port {
    pub(crate) fn open(spec: &str, queues: u16) -> Self {
        let pool = PoolConfig {
            buffers: 2048,
            ..PoolConfig::default()
        };
        Self::open_with(spec, queues, pool)
    }

    pub(crate) fn open_with(spec: &str, queues: u16, pool: PoolConfig) -> Self {
        let pool = Mempool::new(pool).unwrap();
        let config = PortConfig {
            rx_queues: queues,
            tx_queues: queues,
            ring: 128,
            ..PortConfig::new(pool.clone())
        };
        let port = registry().open(spec).unwrap();
        let started = port.configure(config).unwrap().start().unwrap();
        let cache = pool.cache(64).unwrap();
        let (mut ledger, sink) = (Ledger::new(), Tally::new());
        for queue in &started.rx {
            ledger.add("rx", queue.tally());
        }
        ledger.add("sink", sink.view());
        Self {
            started,
            pool,
            cache,
            ledger,
            sink,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.started.port.link().up
    }

    pub(crate) fn wait_up(&self, up: bool) {
        let began = Instant::now();
        while self.is_up() != up {
            assert!(began.elapsed() < PATIENCE, "the link was to be up: {up}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A counter of the driver.
    pub(crate) fn statistic(&self, name: &str) -> u64 {
        let statistics = self.started.port.statistics();
        let found = statistics.iter().find(|(found, _)| found == name);
        found.unwrap().1
    }

    /// Waits until this number of buffers is in quarantine.
    pub(crate) fn wait_quarantined(&self, buffers: u64) {
        let began = Instant::now();
        while self.statistic("quarantined_buffers") != buffers {
            let found = self.statistic("quarantined_buffers");
            assert!(began.elapsed() < PATIENCE, "{found} buffers, not {buffers}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// One poll of one queue.
    pub(crate) fn poll(&mut self, queue: usize) -> Vec<Vec<u8>> {
        let mut burst = Burst::<32>::new();
        let n = self.started.rx[queue].rx(&mut self.cache, &mut burst);
        assert_eq!(n, burst.len());
        self.sink.count_delivered(n as u64);
        let bytes = |mbuf: &pollux_mempool::Mbuf| {
            let mut bytes = vec![0; mbuf.total_len()];
            mbuf.copy_to(0, &mut bytes);
            bytes
        };
        let frames = burst.iter().map(bytes).collect();
        self.cache.free_burst(&mut burst);
        frames
    }

    /// Sends the frames that the queue accepts; returns their number.
    pub(crate) fn send(&mut self, queue: usize, frames: &[Vec<u8>]) -> usize {
        let mut burst = Burst::<32>::new();
        for frame in frames.iter().take(32) {
            let Some(mbuf) = self.cache.alloc_from(frame) else {
                break;
            };
            burst.push(mbuf).unwrap();
        }
        let offered = burst.len();
        let taken = self.started.tx[queue].tx(&mut self.cache, &mut burst);
        assert_eq!(burst.len(), offered - taken);
        self.cache.free_burst(&mut burst);
        taken
    }

    /// Stops the port: the ledger balances and all buffers are back. Returns the received frames,
    /// the sent frames, and the frames lost on transmission.
    pub(crate) fn stop(self) -> (Balance, u64, u64) {
        self.stop_with_leaks(0)
    }

    /// As `stop`, except for buffers that a back end has not released: they are leaked, and
    /// counted.
    pub(crate) fn stop_with_leaks(self, leaks: usize) -> (Balance, u64, u64) {
        let leaked = leaked_buffers();
        let views: Vec<_> = self.started.tx.iter().map(TxQueue::sent).collect();
        let StartedPort { port, rx, tx } = self.started;
        drop(port.stop(rx, tx).unwrap());
        drop(self.cache);
        assert_eq!(self.pool.available() + leaks, self.pool.buffers());
        assert_eq!(leaked_buffers() - leaked, leaks as u64);
        let packets = views.iter().map(SentView::packets).sum();
        let errors = views.iter().map(SentView::errors).sum();
        (self.ledger.check().unwrap(), packets, errors)
    }
}

/// A frame of `len` bytes: its number, then bytes derived from it.
pub(crate) fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut state = u64::from(number) << 16 | len as u64 | 1 << 63;
    let mut bytes = number.to_be_bytes().to_vec();
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// The number of a frame, whose bytes are all unchanged.
pub(crate) fn number(bytes: &[u8]) -> u32 {
    let number = u32::from_be_bytes(bytes[..4].try_into().unwrap());
    assert!(
        bytes == frame(number, bytes.len()),
        "frame {number} of {} B has been changed",
        bytes.len()
    );
    number
}

/// Sends frames of these lengths from one port to the other by one queue; each arrives, in order
/// and byte for byte.
pub(crate) fn pass(from: &mut Port, to: &mut Port, queue: usize, lens: &[usize]) {
    let frames: Vec<_> = (0..).zip(lens).map(|(i, &len)| frame(i, len)).collect();
    let (mut sent, mut got) = (0, 0);
    let began = Instant::now();
    while got < frames.len() {
        assert!(
            began.elapsed() < PATIENCE,
            "{sent} of {} frames sent, {got} received",
            frames.len()
        );
        sent += from.send(queue, &frames[sent..]);
        for bytes in to.poll(queue) {
            assert_eq!(number(&bytes) as usize, got);
            assert_eq!(bytes.len(), frames[got].len());
            got += 1;
        }
    }
    assert!(to.poll(queue).is_empty());
}
