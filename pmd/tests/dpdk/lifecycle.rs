//! Ports that are opened, started, stopped, in turns and beside each other.

use pollux_mempool::{Burst, Mempool, PoolCache, PoolConfig};
use pollux_pmd::{Cause, Ledger, Port, PortConfig, PortError, StartedPort, Tally};

use crate::{registry, start_eal};

struct Bench {
    pool: Mempool,
    cache: PoolCache,
}

impl Bench {
    fn new(config: PoolConfig) -> Self {
        start_eal();
        let pool = Mempool::new(config).unwrap();
        let cache = pool.cache(256).unwrap();
        Self { pool, cache }
    }

    fn open(&self, spec: &str) -> StartedPort {
        let port = registry().open(spec).unwrap();
        port.configure(PortConfig::new(self.pool.clone()))
            .unwrap()
            .start()
            .unwrap()
    }

    /// All buffers are back.
    fn check(mut self) {
        self.cache.flush();
        assert_eq!(self.pool.available(), self.pool.buffers());
    }
}

fn stop(port: StartedPort) -> Port<pollux_pmd::Configured> {
    port.port.stop(port.rx, port.tx).unwrap()
}

fn refusal(result: Result<impl Sized, PortError>) -> String {
    result.err().unwrap().to_string()
}

#[test]
fn blank_frames_come_and_go_and_the_ledger_balances() {
    let mut bench = Bench::new(PoolConfig::default());
    let mut port = bench.open("dpdk:net_null_a;size=100");
    let (mut ledger, mut sink) = (Ledger::new(), Tally::new());
    ledger.add("rx", port.rx[0].tally());
    ledger.add("sink", sink.view());
    let mut taken = 0;
    for round in 0..200_u32 {
        let mut burst = Burst::<32>::new();
        // Fewer than the device is asked for, so that some are left for the next time.
        let n = port.rx[0].rx_up_to(&mut bench.cache, &mut burst, 1 + round as usize % 32);
        assert_eq!(n, 1 + round as usize % 32);
        for mbuf in burst.iter() {
            assert_eq!((mbuf.len(), mbuf.segment_count()), (100, 1));
            assert_eq!((mbuf.port(), mbuf.queue()), (port.port.id(), 0));
            assert_eq!(mbuf.ordinal(), taken);
            assert_eq!(mbuf.pool_id(), bench.pool.id());
            taken += 1;
        }
        sink.count_delivered(n as u64);
        assert_eq!(port.tx[0].tx(&mut bench.cache, &mut burst), n);
    }
    let sent = port.tx[0].sent();
    assert_eq!(
        (sent.packets(), sent.bytes()),
        (u64::from(taken), u64::from(taken) * 100)
    );
    assert!(port.port.link().up);
    stop(port);
    let balance = ledger.check().unwrap();
    assert_eq!(balance.delivered, u64::from(taken));
    // What was in the stash.
    assert!(balance.dropped_for(Cause::Aborted) < 64);
    bench.check();
}

#[test]
fn a_port_starts_again_after_it_was_stopped() {
    let mut bench = Bench::new(PoolConfig::default());
    let mut port = bench.open("dpdk:net_null_b");
    for _ in 0..3 {
        let mut burst = Burst::<64>::new();
        assert_eq!(port.rx[0].rx(&mut bench.cache, &mut burst), 64);
        port.tx[0].tx(&mut bench.cache, &mut burst);
        assert!(burst.is_empty());
        port = stop(port).start().unwrap();
    }
    // A port that is dropped without being stopped leaves nothing behind either.
    drop(port);
    let mut again = bench.open("dpdk:net_null_b");
    let mut burst = Burst::<32>::new();
    assert_eq!(again.rx[0].rx(&mut bench.cache, &mut burst), 32);
    again.tx[0].tx(&mut bench.cache, &mut burst);
    drop(again.port);
    drop((again.rx, again.tx));
    bench.check();
}

#[test]
fn frames_cross_a_ring_untouched() {
    let mut bench = Bench::new(PoolConfig::default());
    // Each transmit queue of this device leads to its receive queue.
    let mut port = bench.open("dpdk:net_ring_a");
    let mut seen = 0_u32;
    for round in 0..50_u32 {
        let mut burst = Burst::<32>::new();
        for i in 0..32 {
            let mut mbuf = bench.cache.alloc_from(&[round as u8; 200]).unwrap();
            mbuf.append(4)
                .unwrap()
                .copy_from_slice(&(round * 32 + i).to_be_bytes());
            // Headers in front, as an answer would have them.
            mbuf.prepend(2).unwrap().copy_from_slice(b"ab");
            burst.push(mbuf).unwrap();
        }
        assert_eq!(port.tx[0].tx(&mut bench.cache, &mut burst), 32);
        let mut back = Burst::<32>::new();
        assert_eq!(port.rx[0].rx(&mut bench.cache, &mut back), 32);
        for mbuf in back.iter() {
            assert_eq!(&mbuf.data()[..2], b"ab");
            assert_eq!(mbuf.data()[2..202], [round as u8; 200]);
            assert_eq!(mbuf.data()[202..], seen.to_be_bytes());
            seen += 1;
        }
        bench.cache.free_burst(&mut back);
    }
    // What is left in the ring is counted.
    let mut burst = Burst::<4>::new();
    burst
        .push(bench.cache.alloc_from(&[1; 60]).unwrap())
        .unwrap();
    assert_eq!(port.tx[0].tx(&mut bench.cache, &mut burst), 1);
    let tally = port.rx[0].tally();
    stop(port);
    assert_eq!(tally.balance().dropped_for(Cause::Aborted), 1);
    bench.check();
}

#[test]
fn chains_and_frames_of_other_pools_are_sent() {
    let mut bench = Bench::new(PoolConfig {
        data_room: 512,
        ..PoolConfig::default()
    });
    let mut other = Bench::new(PoolConfig::default());
    let mut port = bench.open("dpdk:net_ring_b");
    let long: Vec<u8> = (0..3000_u32).map(|i| (i * 7) as u8).collect();
    let mut burst = Burst::<8>::new();
    burst
        .push(bench.cache.alloc_from(&[5; 60]).unwrap())
        .unwrap();
    burst.push(bench.cache.alloc_from(&long).unwrap()).unwrap();
    burst
        .push(other.cache.alloc_from(&[9; 400]).unwrap())
        .unwrap();
    burst
        .push(bench.cache.alloc_from(&[6; 61]).unwrap())
        .unwrap();
    let mut sent = port.tx[0].tx(&mut bench.cache, &mut burst);
    sent += port.tx[0].tx(&mut bench.cache, &mut burst);
    let view = port.tx[0].sent();
    let mut back = Burst::<8>::new();
    port.rx[0].rx(&mut bench.cache, &mut back);
    println!(
        "{sent} taken, {} sent, {} refused, {back:?}",
        view.packets(),
        view.errors()
    );
    let frames: Vec<Vec<u8>> = back
        .iter()
        .map(|mbuf| {
            let mut bytes = vec![0; mbuf.total_len()];
            mbuf.copy_to(0, &mut bytes);
            bytes
        })
        .collect();
    assert_eq!(frames, [vec![5; 60], long, vec![9; 400], vec![6; 61]]);
    bench.cache.free_burst(&mut back);
    stop(port);
    bench.check();
    other.check();
}

#[test]
fn several_ports_and_pools_in_one_process() {
    let mut bench = Bench::new(PoolConfig::default());
    let mut other = Bench::new(PoolConfig {
        buffers: 1000,
        headroom: 0,
        ..PoolConfig::default()
    });
    let mut a = bench.open("dpdk:net_null_c");
    let mut b = bench.open("dpdk:net_null_d");
    let mut c = other.open("dpdk:net_null_e");
    for _ in 0..100 {
        let mut burst = Burst::<32>::new();
        assert_eq!(a.rx[0].rx(&mut bench.cache, &mut burst), 32);
        assert_eq!(b.tx[0].tx(&mut bench.cache, &mut burst), 32);
        // A loop with the cache of another pool, and frames for a port of another pool.
        assert_eq!(c.rx[0].rx(&mut bench.cache, &mut burst), 32);
        assert!(
            burst
                .iter()
                .all(|mbuf| mbuf.pool_id() == other.pool.id() && mbuf.len() == 64)
        );
        while !burst.is_empty() {
            b.tx[0].tx(&mut other.cache, &mut burst);
        }
    }
    for port in [a, b, c] {
        stop(port);
    }
    bench.check();
    other.check();
}

#[test]
fn an_empty_pool_gives_no_frames_and_recovers() {
    // With the second, fewer are left in the end than DPDK asks for at once.
    for buffers in [256, 300] {
        let mut bench = Bench::new(PoolConfig {
            buffers,
            ..PoolConfig::default()
        });
        let mut port = bench.open("dpdk:net_null_f");
        let mut all = Burst::<256>::new();
        while port.rx[0].rx(&mut bench.cache, &mut all) > 0 {}
        bench.cache.free_burst(&mut all);
        assert!(port.rx[0].rx(&mut bench.cache, &mut all) > 0, "{buffers}");
        bench.cache.free_burst(&mut all);
        stop(port);
        bench.check();
    }
}

#[test]
fn what_cannot_be_had_is_refused_in_words() {
    start_eal();
    let registry = registry();
    let error = refusal(registry.open("dpdk:net_nonesuch0"));
    assert!(error.contains("no driver for it"), "{error}");
    let error = refusal(registry.open("dpdk:net_null_g;nonsense=1"));
    assert!(error.contains("refuses its arguments"), "{error}");
    let error = refusal(registry.open("dpdk:net_null_g,eal=--no-huge+-m+32"));
    assert!(error.contains("DPDK runs already"), "{error}");
    let error = refusal(registry.open("dpdk:0000:ff:1f.7"));
    assert!(error.contains("runs without PCI"), "{error}");

    let error = refusal(registry.open("dpdk:net_af_xdp_m;iface=lo"));
    assert!(error.contains("use af_xdp:INTERFACE"), "{error}");

    let bench = Bench::new(PoolConfig::default());
    let first = bench.open("dpdk:net_null_h");
    let error = refusal(registry.open("dpdk:net_null_h"));
    assert!(error.contains("in use by another port"), "{error}");
    stop(first);

    let configure = |spec: &str, config: PortConfig| registry.open(spec).unwrap().configure(config);
    let config = PortConfig::new(bench.pool.clone());
    let error = refusal(configure(
        "dpdk:net_null_i,timestamps=hardware",
        config.clone(),
    ));
    assert!(error.contains("net_null does not stamp frames"), "{error}");
    let error = refusal(configure("dpdk:net_null_j,steer=6006:1", config.clone()));
    assert!(error.contains("queues 0 to 0"), "{error}");
    let error = refusal(configure("dpdk:net_null_l,mtu=9000", config.clone()));
    assert!(
        error.contains("an MTU of 9000 with buffers that hold a frame of 2048 B")
            && error.contains("give mtu=2026 or less, or a pool with a data_room of 9022"),
        "{error}"
    );
    let configured = configure("dpdk:net_null_k,steer=6006:0", config).unwrap();
    let error = refusal(configured.start());
    assert!(error.contains("its driver net_null says"), "{error}");
    bench.check();
}
