//! Contracts of ports and queues, on the two drivers that need no device.

use pollux_mempool::{Burst, BurstMut, Mbuf, Mempool, PoolCache};
use pollux_pmd::driver::{Capabilities, Driver, Origin, Queues, RxDriver};
use pollux_pmd::{
    Cause, Clock, Ledger, Port, PortConfig, PortError, Registry, RxState, StartedPort, Tally,
    TscClock,
};

use crate::common::{config, pool};

fn start(spec: &str, config: PortConfig) -> StartedPort {
    let port = Registry::builtin().open(spec).unwrap();
    port.configure(config).unwrap().start().unwrap()
}

/// Frames of eight bytes that contain their number.
fn numbered<const N: usize>(cache: &mut PoolCache, numbers: std::ops::Range<u64>) -> Burst<N> {
    let mut burst = Burst::new();
    for n in numbers {
        burst
            .push(cache.alloc_from(&n.to_le_bytes()).unwrap())
            .unwrap();
    }
    burst
}

fn numbers<const N: usize>(burst: &Burst<N>) -> Vec<u64> {
    let number = |data: &[u8]| u64::from_le_bytes(data.try_into().unwrap());
    burst.iter().map(|mbuf| number(mbuf.data())).collect()
}

#[test]
fn each_queue_loops_back_to_itself_in_order() {
    let pool = pool(256);
    let StartedPort {
        port,
        mut rx,
        mut tx,
    } = start("loopback", config(&pool, 3, 3));
    let mut cache = pool.cache(32).unwrap();
    let clock = TscClock::get();
    let begin = clock.now();
    for queue in [2, 0, 1, 2] {
        let base = 100 * queue as u64;
        let mut burst: Burst<32> = numbered(&mut cache, base..base + 10);
        assert_eq!(tx[queue].tx(&mut cache, &mut burst), 10);
        assert!(burst.is_empty());
    }
    let end = clock.now();
    for (q, frames) in [(0, 10), (1, 10), (2, 20)] {
        let mut burst = Burst::<32>::new();
        assert_eq!(rx[q].rx(&mut cache, &mut burst), frames);
        let sent = (0..frames as u64).map(|n| 100 * q as u64 + n % 10);
        assert_eq!(numbers(&burst), sent.collect::<Vec<_>>());
        for (ordinal, mbuf) in burst.iter().enumerate() {
            let found = (mbuf.port(), usize::from(mbuf.queue()), mbuf.ordinal());
            assert_eq!(found, (port.id(), q, ordinal as u32));
            assert_eq!(mbuf.wire_time(), None);
        }
        // Time in the ring counts as latency: a frame's arrival time is that of its transmission.
        let sent = |mbuf: &Mbuf| (begin..=end).contains(&mbuf.arrival());
        assert!(burst.iter().all(sent));
        assert!(burst.windows(2).all(|w| w[0].arrival() <= w[1].arrival()));
        assert_eq!(rx[q].rx(&mut cache, &mut burst), 0);
        assert_eq!(rx[q].state(), RxState::Live);
        assert_eq!(
            (tx[q].sent().packets(), tx[q].sent().bytes()),
            (frames as u64, 8 * frames as u64)
        );
        assert_eq!(rx[q].tally().balance().bytes, 8 * frames as u64);
    }
    port.stop(rx, tx).unwrap();
}

#[test]
fn a_full_ring_leaves_the_rest_with_the_caller() {
    let pool = pool(64);
    let small = PortConfig {
        ring: 8,
        ..config(&pool, 1, 1)
    };
    let StartedPort {
        port,
        mut rx,
        mut tx,
    } = start("loopback", small);
    let mut cache = pool.cache(16).unwrap();
    let mut out: Burst<32> = numbered(&mut cache, 0..20);
    assert_eq!(tx[0].tx(&mut cache, &mut out), 8);
    assert_eq!(tx[0].tx(&mut cache, &mut out), 0);
    assert_eq!(numbers(&out), (8..20).collect::<Vec<_>>());
    assert_eq!((tx[0].sent().packets(), tx[0].sent().errors()), (8, 0));

    let mut heard = Vec::new();
    while !out.is_empty() || heard.len() < 20 {
        let mut burst = Burst::<3>::new();
        rx[0].rx(&mut cache, &mut burst);
        heard.extend(numbers(&burst));
        tx[0].tx(&mut cache, &mut out);
    }
    assert_eq!(heard, (0..20).collect::<Vec<_>>());
    port.stop(rx, tx).unwrap();
}

#[test]
fn a_burst_that_is_not_empty_is_added_to() {
    let pool = pool(64);
    let StartedPort { mut rx, mut tx, .. } = start("loopback", config(&pool, 1, 1));
    let mut cache = pool.cache(16).unwrap();
    tx[0].tx(&mut cache, &mut numbered::<8>(&mut cache_of(&pool), 10..18));
    let mut burst: Burst<8> = numbered(&mut cache, 0..3);
    assert_eq!(rx[0].rx(&mut cache, &mut burst), 5);
    assert_eq!(numbers(&burst), [0, 1, 2, 10, 11, 12, 13, 14]);
    assert_eq!(
        rx[0].rx(&mut cache, &mut burst),
        0,
        "a full burst takes no more"
    );
}

fn cache_of(pool: &Mempool) -> PoolCache {
    pool.cache(8).unwrap()
}

#[test]
fn what_is_left_in_a_queue_at_stop_is_aborted() {
    let pool = pool(64);
    let StartedPort {
        port,
        mut rx,
        mut tx,
    } = start("loopback", config(&pool, 2, 2));
    let mut cache = pool.cache(16).unwrap();
    let mut ledger = Ledger::new();
    for queue in &rx {
        ledger.add("rx", queue.tally());
    }
    for (q, frames) in [(0, 7), (1, 4)] {
        tx[q].tx(
            &mut cache,
            &mut numbered::<8>(&mut cache_of(&pool), 0..frames),
        );
    }
    let mut burst = Burst::<2>::new();
    rx[0].rx(&mut cache, &mut burst);
    let mut consumer = pollux_pmd::Tally::new();
    ledger.add("consumer", consumer.view());
    consumer.count_delivered(2);
    drop(burst);
    port.stop(rx, tx).unwrap();
    let sum = ledger.check().unwrap();
    assert_eq!((sum.from_wire, sum.delivered), (11, 2));
    assert_eq!(sum.drops().collect::<Vec<_>>(), [(Cause::Aborted, 9)]);
    drop(cache);
    assert_eq!(pool.available(), 64);
}

#[test]
fn queues_that_are_dropped_lose_no_buffer() {
    let pool = pool(64);
    let StartedPort { port, rx, mut tx } = start("loopback", config(&pool, 1, 1));
    let mut cache = pool.cache(16).unwrap();
    tx[0].tx(&mut cache, &mut numbered::<8>(&mut cache_of(&pool), 0..8));
    drop((port, rx, tx, cache));
    assert_eq!(pool.available(), 64);
}

#[test]
fn stop_wants_the_ports_own_queues_and_all_of_them() {
    let pool = pool(64);
    let wrong = |result: Result<_, PortError>| match result.map(drop) {
        Err(error @ PortError::WrongQueues { expected, got, .. }) => {
            let text = error.to_string();
            assert!(
                text.contains("stop needs all 4 queues that start returned"),
                "{text}"
            );
            (expected, got)
        }
        other => panic!("{other:?}"),
    };
    let two = || start("loopback", config(&pool, 2, 2));

    let StartedPort { port, mut rx, tx } = two();
    rx.pop();
    assert_eq!(wrong(port.stop(rx, tx)), (4, 3));

    let StartedPort { port, rx, .. } = two();
    let other = two();
    assert_eq!(wrong(port.stop(rx, other.tx)), (4, 2));

    let StartedPort { port, mut rx, tx } = two();
    rx.extend(other.rx);
    assert_eq!(wrong(port.stop(rx, tx)), (4, 4), "strangers among them");
}

/// A driver whose queues claim to belong to another port.
struct Renaming(u16);

impl Driver for Renaming {
    fn capabilities(&self) -> Capabilities {
        Registry::builtin().open("null").unwrap().capabilities()
    }

    fn start(&mut self, _: &PortConfig, _: u16) -> Result<Queues, PortError> {
        Ok(Queues {
            rx: vec![Box::new(Renamed(self.0))],
            tx: Vec::new(),
        })
    }
}

struct Renamed(u16);

impl RxDriver for Renamed {
    fn rx(
        &mut self,
        _: &mut PoolCache,
        _: &mut BurstMut<'_>,
        origin: &mut Origin,
        _: &mut Tally,
    ) -> usize {
        origin.port = self.0;
        0
    }
}

/// A queue whose driver claims the number of another port does not stop that port. Otherwise a
/// queue could outlive the stop of its port, and post buffers that belong to others by then.
#[test]
fn a_queue_that_is_renamed_stops_no_port() {
    let pool = pool(64);
    let StartedPort { port, .. } = start("null", config(&pool, 1, 0));
    let stranger = Port::new("renaming", Box::new(Renaming(port.id())));
    let stranger = stranger.configure(config(&pool, 1, 0)).unwrap();
    let mut stranger = stranger.start().unwrap();
    let (mut cache, mut burst) = (cache_of(&pool), Burst::<2>::new());
    stranger.rx[0].rx(&mut cache, &mut burst);
    assert_eq!(stranger.rx[0].port(), port.id());
    let stopped = port.stop(stranger.rx, Vec::new()).map(drop);
    assert!(matches!(
        stopped,
        Err(PortError::WrongQueues { got: 0, .. })
    ));
}

/// Queues of an earlier port with the same number do not stop a port either.
#[test]
fn queues_of_an_earlier_start_stop_no_port() {
    let pool = pool(64);
    let old = start("loopback", config(&pool, 1, 1));
    let id = old.port.id();
    // The queues outlive their port; port numbers wrap around.
    let StartedPort { rx, tx, .. } = old;
    // Other tests use some of them.
    let again = (0..1 << 18).find_map(|_| {
        let port = Registry::builtin().open("loopback").unwrap();
        (port.id() == id).then_some(port)
    });
    let port = again.unwrap().configure(config(&pool, 1, 1)).unwrap();
    let stopped = port.start().unwrap().port.stop(rx, tx).map(drop);
    assert!(matches!(
        stopped,
        Err(PortError::WrongQueues { got: 0, .. })
    ));
}

#[test]
fn a_stopped_port_starts_again_and_can_be_set_up_anew() {
    let pool = pool(64);
    let StartedPort { port, rx, tx } = start("loopback", config(&pool, 1, 1));
    assert!(port.link().up);
    let id = port.id();
    let port = port.stop(rx, tx).unwrap();
    let StartedPort { port, rx, tx } = port.start().unwrap();
    let port = port.stop(rx, tx).unwrap().deconfigure();
    let StartedPort { port, rx, tx } = port
        .configure(config(&pool, 2, 2))
        .unwrap()
        .start()
        .unwrap();
    assert_eq!((port.id(), port.spec()), (id, "loopback"));
    assert_eq!((rx.len(), tx.len()), (2, 2));
    let of = (rx[1].port(), rx[1].queue(), tx[1].port(), tx[1].queue());
    assert_eq!(of, (id, 1, id, 1));
}

#[test]
fn two_ports_have_two_numbers() {
    let open = || Registry::builtin().open("null").unwrap();
    assert_ne!(open().id(), open().id());
}

#[test]
fn queues_go_to_the_threads_that_poll_them() {
    let pool = pool(256);
    let StartedPort { port, rx, tx } = start("loopback", config(&pool, 2, 2));
    let threads = rx.into_iter().zip(tx).map(|(mut rx, mut tx)| {
        let mut cache = pool.cache(16).unwrap();
        std::thread::spawn(move || {
            let mut burst: Burst<8> = numbered(&mut cache, 0..8);
            tx.tx(&mut cache, &mut burst);
            let received = rx.rx(&mut cache, &mut burst);
            (rx, tx, received)
        })
    });
    let threads: Vec<_> = threads.collect();
    let (mut rx, mut tx) = (Vec::new(), Vec::new());
    for thread in threads {
        let (r, t, received) = thread.join().unwrap();
        assert_eq!(received, 8);
        rx.push(r);
        tx.push(t);
    }
    port.stop(rx, tx).unwrap();
    assert_eq!(pool.available(), 256);
}

#[test]
fn null_receives_blanks_and_swallows_what_is_sent() {
    let pool = pool(64);
    let StartedPort {
        port,
        mut rx,
        mut tx,
    } = start("null:size=100", config(&pool, 1, 1));
    let mut cache = pool.cache(32).unwrap();
    let mut burst = Burst::<32>::new();
    assert_eq!(rx[0].rx(&mut cache, &mut burst), 32);
    assert!(burst.iter().all(|mbuf| mbuf.data() == [0; 100]));
    assert_eq!(tx[0].tx(&mut cache, &mut burst), 32);
    assert_eq!((tx[0].sent().packets(), tx[0].sent().bytes()), (32, 3200));
    assert_eq!(rx[0].tally().balance().bytes, 3200);
    port.stop(rx, tx).unwrap();

    let StartedPort { mut rx, .. } = start("null:size=0", config(&pool, 1, 0));
    assert_eq!(rx[0].rx(&mut cache, &mut burst), 0);
}

#[test]
fn frames_without_a_buffer_are_counted() {
    let pool = pool(20);
    let StartedPort { mut rx, .. } = start("null", config(&pool, 1, 0));
    let mut cache = pool.cache(8).unwrap();
    let mut burst = Burst::<32>::new();
    assert_eq!(rx[0].rx(&mut cache, &mut burst), 20);
    let balance = rx[0].tally().balance();
    assert_eq!(
        (balance.from_wire, balance.dropped_for(Cause::NoMbuf)),
        (32, 12)
    );
}

#[test]
fn a_refusal_names_what_there_is() {
    let pool = pool(64);
    let refused = |spec: &str, config: PortConfig| {
        let port = Registry::builtin().open(spec).unwrap();
        let result = port.configure(config).map(drop);
        assert!(matches!(result, Err(PortError::Unsupported { .. })));
        result.unwrap_err().to_string()
    };
    assert_eq!(
        refused("loopback", config(&pool, 65, 65)),
        "port loopback: 65 receive queues requested, but the device offers at most 64"
    );
    assert_eq!(
        refused("null", config(&pool, 1, 65)),
        "port null: 65 transmit queues requested, but the device offers at most 64"
    );
    assert_eq!(
        refused("loopback", config(&pool, 2, 1)),
        "port loopback: 2 receive and 1 transmit queues requested, but the device offers the same \
         number of each: every queue loops back to itself"
    );
    assert_eq!(
        refused("null", config(&pool, 0, 0)),
        "port null: no queue at all requested, but the device offers queues in at least one \
         direction"
    );
    let ring = |ring| PortConfig {
        ring,
        ..config(&pool, 1, 1)
    };
    for depth in [0, 1, (1 << 20) + 1] {
        assert!(refused("null", ring(depth)).contains("rings of 2 to 1048576"));
    }
    assert_eq!(
        refused("null:size=2049", config(&pool, 1, 0)),
        "port null:size=2049: frames of 2049 B requested, but the device offers frames that fit \
         one buffer of 2048 B"
    );
}
