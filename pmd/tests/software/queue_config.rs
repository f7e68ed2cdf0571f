//! Configuration of single queues.

use pollux_pmd::lcore::core_of;
use pollux_pmd::mempool::Burst;
use pollux_pmd::{PortConfig, PortError, QueueConfig, Registry, RxQueue, StartedPort, TxQueue};

use crate::common::{config, pool};

fn refused(spec: &str, config: PortConfig) -> String {
    let port = Registry::builtin().open(spec).unwrap().configure(config);
    assert!(matches!(port, Err(PortError::Unsupported { .. })));
    port.map(drop).unwrap_err().to_string()
}

/// Number of frames that fit into a queue of the loopback.
fn room(config: PortConfig, queue: usize) -> usize {
    let pool = config.pool.clone();
    let mut cache = pool.cache(64).unwrap();
    let port = Registry::builtin().open("loopback").unwrap();
    let StartedPort { port, rx, mut tx } = port.configure(config).unwrap().start().unwrap();
    let mut sent = 0;
    let mut burst = Burst::<1>::new();
    loop {
        assert_eq!(cache.alloc_burst(&mut burst, 1), 1);
        let n = tx[queue].tx(&mut cache, &mut burst);
        if n == 0 {
            break;
        }
        sent += n;
    }
    cache.free_burst(&mut burst);
    port.stop(rx, tx).unwrap();
    sent
}

#[test]
fn a_queue_has_a_ring_of_its_own() {
    let pool = pool(64);
    let small = QueueConfig::new().ring(8);
    let config = config(&pool, 2, 2).ring(32);
    let config = config.rx_queue(1, small.clone()).tx_queue(1, small);
    assert_eq!((room(config.clone(), 0), room(config, 1)), (32, 8));
}

#[test]
fn what_a_driver_cannot_give_a_queue_is_refused() {
    let pool = pool(64);
    let one = |queue| config(&pool, 1, 1).rx_queue(0, queue);
    assert_eq!(
        refused("null", one(QueueConfig::new().ring(8))),
        "port null: a ring of its own for receive queue 0 requested, but the device offers one \
         setting for all queues: ring size, pool, NUMA node"
    );
    assert_eq!(
        refused("loopback", one(QueueConfig::new().pool(pool.clone()))),
        "port loopback: a pool of its own for receive queue 0 requested, but the device offers \
         settings for each queue: ring size; for all queues: pool, NUMA node"
    );
    assert!(
        refused("loopback", one(QueueConfig::new().numa_node(0)))
            .contains("a NUMA node of its own")
    );
    assert_eq!(
        refused(
            "loopback",
            config(&pool, 1, 1).tx_queue(2, QueueConfig::new())
        ),
        "port loopback: settings of transmit queue 2 requested, but the device offers 1 transmit \
         queues, numbered from 0"
    );
    assert!(refused("loopback", one(QueueConfig::new().ring(1))).contains("a ring of 1 requested"));
    let different = refused("loopback", one(QueueConfig::new().ring(8)));
    assert!(different.contains("one size for both"), "{different}");
}

#[test]
fn queues_share_no_cache_line() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.pcap");
    let specs = [
        "loopback".into(),
        "null".into(),
        format!("pcap:tx={}", out.display()),
    ];
    for spec in specs {
        let pool = pool(64);
        let port = Registry::builtin().open(&spec).unwrap();
        let rx_queues = port.capabilities().max_rx_queues.min(2);
        let config = config(&pool, rx_queues, 1.max(rx_queues));
        let StartedPort { port, rx, tx } = port.configure(config).unwrap().start().unwrap();
        assert!(rx.iter().all(RxQueue::is_padded), "{spec}");
        assert!(tx.iter().all(TxQueue::is_padded), "{spec}");
        port.stop(rx, tx).unwrap();
    }
}

#[test]
fn a_loop_is_launched_on_the_core_of_its_queues() {
    let pool = pool(64);
    let config = config(&pool, 2, 2)
        .rx_queue(0, QueueConfig::new().core(3))
        .tx_queue(1, QueueConfig::new().core(5));
    let port = Registry::builtin().open("loopback").unwrap();
    let StartedPort { port, rx, tx } = port.configure(config).unwrap().start().unwrap();
    assert_eq!(
        (rx[0].core(), rx[1].core(), tx[1].core()),
        (Some(3), None, Some(5))
    );
    let (first, second) = ((&rx[..1], &tx[..1]), (&rx[1..], &tx[1..]));
    assert_eq!(core_of(first.0, first.1, Some(1)).unwrap(), Some(3));
    assert_eq!(core_of(second.0, second.1, None).unwrap(), Some(5));
    assert_eq!(core_of(second.0, first.1, Some(1)).unwrap(), Some(1));
    let error = core_of(&rx, &tx, None).unwrap_err().to_string();
    assert!(error.contains("cpu 3 and for cpu 5"), "{error}");
    port.stop(rx, tx).unwrap();
}
