//! Memory lent by a front end: it is returned when the back end is proven to have released it, and
//! a back end that removes pages from it ends no process.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pollux_mempool::region::PageSize;
use pollux_mempool::{Burst, Mempool, PoolConfig};
use pollux_pmd::{PortConfig, StartedPort};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, ftruncate, memfd_create};

use crate::raw::{GET_FEATURES, GET_VRING_BASE, Raw, VERSION_1, violations, wait_for_violations};
use crate::scribbles::{Back, RX, SIZE};
use crate::support::{PATIENCE, Place, Port, registry, spec};

/// For the other processes: a path that selects their action.
const SOCKET: &str = "POLLUX_TEST_LENT";

fn pool(buffers: usize) -> PoolConfig {
    PoolConfig {
        buffers,
        ..PoolConfig::default()
    }
}

/// A back end that corrupts a ring, so that the session ends without a message.
fn spoil(listener: &UnixListener, port: &mut Port, violations: u64) -> Back {
    let back = Back::accept(listener, 0);
    port.wait_up(true);
    back.index(RX, SIZE as u16 + 1);
    poll_until_violated(port, violations);
    back
}

/// Polls, and sends nothing, so that only the receive buffers are known to the peer.
fn poll_until_violated(port: &mut Port, n: u64) {
    let began = Instant::now();
    while violations(port) < n {
        assert!(began.elapsed() < PATIENCE);
        assert!(port.poll(0).is_empty());
    }
    port.wait_up(false);
}

/// A session that the front end leaves before it has lent any memory.
fn is_lent_nothing(listener: &UnixListener) {
    let mut raw = Raw::new(listener.accept().unwrap().0);
    // It gets the request for its features, and no memory.
    while let Some((number, _)) = raw.receive() {
        assert!(number <= 3, "message number {number}");
        if number == GET_FEATURES {
            raw.flagged(number, 5, &VERSION_1.to_ne_bytes(), &[]);
        }
    }
}

/// Addresses of all free buffers of a port's pool.
fn free_buffers(port: &mut Port) -> BTreeSet<u64> {
    let buffers: Vec<_> = std::iter::from_fn(|| port.pool.alloc()).collect();
    let place = |mbuf: &pollux_mempool::Mbuf| mbuf.data_ptr().addr() as u64 - 12;
    buffers.iter().map(place).collect()
}

#[test]
fn buffers_known_to_a_living_peer_are_not_reused() {
    let place = Place::new();
    let listener = UnixListener::bind(place.socket()).unwrap();
    let mut port = Port::open_with(&spec(&place.socket(), "packed=off"), 1, pool(1024));
    let back = spoil(&listener, &mut port, 1);
    let known = back.posted(RX);
    assert_eq!(known.len(), 128);
    port.wait_quarantined(128);
    assert_eq!(port.pool.available() + 64, 1024 - 128 + 64);
    assert!(free_buffers(&mut port).is_disjoint(&known));
    // They are not lent to another back end either, and a disconnect does not help.
    let next = Back::accept(&listener, 0);
    port.wait_up(true);
    assert_eq!(next.posted(RX).len(), 128);
    assert!(next.posted(RX).is_disjoint(&known));
    let Back { raw, regions, .. } = back;
    drop(raw);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(port.statistic("quarantined_buffers"), 128);
    // Without the descriptors it has no memory any more, once its other session has none either.
    drop(regions);
    drop(next);
    port.wait_up(false);
    port.wait_quarantined(0);
    drop(listener);
    port.stop();
    std::fs::remove_file(place.socket()).unwrap();
}

#[test]
fn buffers_come_back_when_the_peer_acknowledges() {
    for ends in ["the port is stopped", "a ring makes no sense"] {
        println!("{ends}");
        let place = Place::new();
        let listener = UnixListener::bind(place.socket()).unwrap();
        let mut port = Port::open(&spec(&place.socket(), "packed=off"), 1);
        let mut back = Back::accept(&listener, 0);
        port.wait_up(true);
        let wrong = ends.contains("ring");
        if wrong {
            back.index(RX, SIZE as u16 + 1);
        }
        let answers = std::thread::spawn(move || {
            let mut stopped = 0;
            while let Some(number) = back.answer(VERSION_1) {
                stopped += u32::from(number == GET_VRING_BASE);
            }
            // It still has all descriptors.
            (back, stopped)
        });
        if wrong {
            wait_for_violations(&mut port, 1);
            let (_back, stopped) = answers.join().unwrap();
            assert_eq!(stopped, 2);
            assert_eq!(port.statistic("quarantined_buffers"), 0);
            port.stop();
        } else {
            port.stop();
            let (_back, stopped) = answers.join().unwrap();
            assert_eq!(stopped, 2);
        }
        std::fs::remove_file(place.socket()).unwrap();
    }
}

#[test]
fn what_a_living_peer_does_not_acknowledge_is_leaked_with_the_port() {
    let place = Place::new();
    let listener = UnixListener::bind(place.socket()).unwrap();
    let port = Port::open(&spec(&place.socket(), "packed=off"), 1);
    let back = Back::accept(&listener, 0);
    port.wait_up(true);
    port.stop_with_leaks(128);
    place.leaks();
    drop(back);
    std::fs::remove_file(place.socket()).unwrap();
}

#[test]
fn a_port_without_buffers_left_serves_no_peer_until_they_are_back() {
    let place = Place::new();
    let listener = UnixListener::bind(place.socket()).unwrap();
    let mut port = Port::open_with(&spec(&place.socket(), "packed=off"), 1, pool(128));
    let back = spoil(&listener, &mut port, 1);
    port.wait_quarantined(128);
    for _ in 0..2 {
        is_lent_nothing(&listener);
        assert!(!port.is_up());
    }
    drop(back);
    port.wait_quarantined(0);
    // A refused connection may still be open; the one that is served stays to the end.
    let began = Instant::now();
    let back = loop {
        assert!(began.elapsed() < PATIENCE);
        let mut raw = Raw::new(listener.accept().unwrap().0);
        let back = std::thread::spawn(move || {
            while let Some((number, _)) = raw.receive() {
                if number == GET_FEATURES {
                    raw.flagged(number, 5, &VERSION_1.to_ne_bytes(), &[]);
                }
            }
            raw
        });
        while !port.is_up() && !back.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if port.is_up() {
            break back;
        }
    };
    drop(listener);
    std::fs::remove_file(place.socket()).unwrap();
    // It never had the descriptors, so nothing shows whether it has released the memory.
    port.stop_with_leaks(128);
    back.join().unwrap();
    place.leaks();
}

/// A port that only sends has no buffers to post, and still reports that it has none left.
#[test]
fn a_port_that_only_sends_serves_no_peer_without_buffers() {
    let place = Place::new();
    let listener = UnixListener::bind(place.socket()).unwrap();
    let pool = Mempool::new(pool(128)).unwrap();
    let config = PortConfig {
        rx_queues: 0,
        ring: 128,
        ..PortConfig::new(pool.clone())
    };
    let port = registry().open(&spec(&place.socket(), "packed=off"));
    let port = port.unwrap().configure(config).unwrap();
    let StartedPort { port, mut tx, .. } = port.start().unwrap();
    let statistic = |name| {
        let all = port.statistics();
        all.iter().find(|(found, _)| found == name).unwrap().1
    };
    let wait = |what: &str, done: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !done() {
            assert!(began.elapsed() < PATIENCE, "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let back = Back::accept(&listener, 0);
    wait("the link is up", &|| port.link().up);
    let (mut cache, mut burst) = (pool.cache(64).unwrap(), Burst::<64>::new());
    cache.alloc_burst(&mut burst, 64);
    for mbuf in burst.iter_mut() {
        mbuf.append(60).unwrap().fill(1);
    }
    assert_eq!(tx[0].tx(&mut cache, &mut burst), 64);
    // It disconnects, and lives on with the memory.
    let Back { raw, regions, .. } = back;
    drop(raw);
    wait("a quarantine", &|| statistic("quarantined_buffers") == 64);
    drop(cache);
    let others: Vec<_> = std::iter::from_fn(|| pool.alloc()).collect();
    assert_eq!(others.len(), 64);
    for _ in 0..2 {
        is_lent_nothing(&listener);
        assert!(!port.link().up);
    }
    drop((regions, listener, others));
    wait("all buffers", &|| statistic("quarantined_buffers") == 0);
    assert_eq!(pool.available(), 128);
    port.stop(Vec::new(), tx).unwrap();
    std::fs::remove_file(place.socket()).unwrap();
}

/// A child of this test program; killed when it is dropped.
struct Other(Child);

impl Other {
    fn start(test: &str, place: &Place) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(SOCKET, place.socket())
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Not a test: another process. A back end that corrupts a ring and lives on, with all the memory
/// that it received.
#[test]
fn spoiler() {
    let Some(socket) = std::env::var_os(SOCKET) else {
        return;
    };
    let listener = UnixListener::bind(socket).unwrap();
    let back = Back::accept(&listener, 0);
    back.index(RX, SIZE as u16 + 1);
    drop(listener);
    std::thread::sleep(2 * PATIENCE);
}

#[test]
fn buffers_come_back_when_the_peer_is_gone() {
    let place = Place::new();
    let mut port = Port::open(&spec(&place.socket(), "packed=off"), 1);
    let other = Other::start("lent::spoiler", &place);
    poll_until_violated(&mut port, 1);
    port.wait_quarantined(128);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(port.statistic("quarantined_buffers"), 128);
    drop(other);
    port.wait_quarantined(0);
    port.stop();
    std::fs::remove_file(place.socket()).unwrap();
}

/// The number of hugepages of 2 MiB, restored when it is dropped.
struct Hugepages(String);

/// Interval between two checks of the other process.
const MOMENT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

const NUMBER: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

impl Hugepages {
    /// Adds hugepages; an error explains why they are not available.
    fn more(more: usize) -> Result<Self, String> {
        let read = || std::fs::read_to_string(NUMBER).map_err(|error| error.to_string());
        let before = read()?;
        let count = |text: &str| text.trim().parse::<usize>().map_err(|e| e.to_string());
        let wanted = count(&before)? + more;
        let guard = Self(before);
        std::fs::write(NUMBER, wanted.to_string()).map_err(|error| error.to_string())?;
        match count(&read()?)? {
            all if all >= wanted => Ok(guard),
            all => Err(format!("{all} hugepages instead of {wanted}")),
        }
    }

    fn free() -> usize {
        let path = NUMBER.replace("nr_", "free_");
        std::fs::read_to_string(path)
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }
}

/// Takes each hugepage that is free, or that another program returns, until it is dropped.
struct Hoard {
    end: Arc<AtomicBool>,
    taking: Option<JoinHandle<()>>,
}

impl Hoard {
    fn new() -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let (until, (ready, is_ready)) = (Arc::clone(&end), channel());
        let taking = std::thread::spawn(move || {
            let mut files = Vec::new();
            while !until.load(Relaxed) {
                if Hugepages::free() == 0 {
                    let _ = ready.send(());
                    std::thread::sleep(Duration::from_millis(1));
                } else {
                    // Another program may be faster.
                    files.extend(Self::page());
                }
            }
        });
        is_ready.recv().unwrap();
        let taking = Some(taking);
        Self { end, taking }
    }

    fn page() -> Option<OwnedFd> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
        let file = memfd_create("hoard", flags).ok()?;
        ftruncate(&file, 2 << 20).ok()?;
        fallocate(&file, FallocateFlags::empty(), 0, 2 << 20).ok()?;
        Some(file)
    }
}

impl Drop for Hoard {
    fn drop(&mut self) {
        self.end.store(true, Relaxed);
        let _ = self.taking.take().map(JoinHandle::join);
    }
}

impl Drop for Hugepages {
    fn drop(&mut self) {
        let _ = std::fs::write(NUMBER, &self.0);
    }
}

/// Not a test: another process. A front end whose pool uses hugepages, which lose their memory
/// while it runs.
#[test]
fn punched() {
    let Some(socket) = std::env::var_os(SOCKET) else {
        return;
    };
    let socket = std::path::PathBuf::from(socket);
    let pool = PoolConfig {
        pages: PageSize::Mib2,
        ..pool(2048)
    };
    let mut port = Port::open_with(&spec(&socket, "packed=off"), 1, pool);
    port.wait_up(true);
    let began = Instant::now();
    while !socket.with_file_name("go").exists() {
        assert!(began.elapsed() < PATIENCE);
    }
    // It sends, and detects missing pages.
    wait_for_violations(&mut port, 1);
    assert!(port.statistic("damaged_pages") > 0);
    port.wait_up(false);
    // Each remaining buffer is usable.
    let mut all: Vec<_> = std::iter::from_fn(|| port.pool.alloc()).collect();
    assert!(all.len() > 1000);
    for (mbuf, i) in all.iter_mut().zip(0_u64..) {
        mbuf.append(1000).unwrap().fill(i as u8);
    }
    for (mbuf, i) in all.iter().zip(0_u64..) {
        assert_eq!(mbuf.data(), [i as u8; 1000]);
    }
    // Damaged memory is lent to no other back end.
    std::fs::write(socket.with_file_name("used"), "").unwrap();
    while !socket.with_file_name("done").exists() {
        assert!(began.elapsed() < 2 * PATIENCE);
        assert!(!port.is_up());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((port.statistic("sessions"), violations(&port)), (1, 1));
}

#[test]
fn a_back_end_that_punches_holes_does_not_kill_the_front_end() {
    let place = Place::new();
    let _more = match Hugepages::more(8) {
        Ok(more) => more,
        Err(why) => {
            println!("skipped: {why}");
            return;
        }
    };
    let listener = UnixListener::bind(place.socket()).unwrap();
    let mut other = Other::start("lent::punched", &place);
    loop {
        let mut waiting = [PollFd::new(&listener, PollFlags::IN)];
        if poll(&mut waiting, Some(&MOMENT)).unwrap() > 0 {
            break;
        }
        if other.0.try_wait().unwrap().is_some() {
            println!("skipped: other programs have taken the hugepages");
            return;
        }
    }
    let back = Back::accept(&listener, 0);
    let (pool, len) = (&back.regions[0].3, back.regions[0].1);
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(pool, punch, 0, len).unwrap();
    let hoard = Hoard::new();
    std::fs::write(place.socket().with_file_name("go"), "").unwrap();
    back.raw.until_closed();
    // It survives, and refuses every later peer.
    let began = Instant::now();
    while !place.socket().with_file_name("used").exists() {
        let ended = other.0.try_wait().unwrap();
        assert!(ended.is_none() && began.elapsed() < PATIENCE, "{ended:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
    for _ in 0..3 {
        let mut next = Raw::new(listener.accept().unwrap().0);
        assert!(next.receive().is_none());
    }
    std::fs::write(place.socket().with_file_name("done"), "").unwrap();
    assert!(other.0.wait().unwrap().success());
    drop((hoard, listener));
    std::fs::remove_file(place.socket()).unwrap();
}
