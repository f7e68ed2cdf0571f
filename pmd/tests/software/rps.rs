//! Receive packet steering: several receive queues over the one of a device.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

use pollux_mempool::{Burst, BurstMut, Mempool, PoolCache};
use pollux_pmd::driver::{Capabilities, Description, Driver, Origin, Queues, RxDriver};
use pollux_pmd::net::UDP_HEADERS;
use pollux_pmd::port::{Port, Started, StartedPort};
use pollux_pmd::{Cause, Ledger, PortError, Registry, RxQueue, RxState, Tally, TxQueue};
use pollux_pmd_testkit::frames::Frame;
use pollux_pmd_testkit::guard::listen;
use pollux_pmd_testkit::threads::Ends;

use crate::common::{config, pool};

const QUEUES: u16 = 4;
const FLOWS: u16 = 64;

/// A loopback port of one transmit queue, whose frames are steered to several receive queues.
struct Rig {
    port: Port<Started>,
    pool: Mempool,
    cache: PoolCache,
    rx: Vec<RxQueue>,
    tx: Vec<TxQueue>,
    ledger: Ledger,
    sink: Tally,
}

fn rig(ring: usize) -> Rig {
    let pool = pool(8192);
    let port = Registry::builtin().open("loopback,rps=4").unwrap();
    assert_eq!((port.spread(), port.spec()), (QUEUES, "loopback,rps=4"));
    let configured = port.configure(config(&pool, QUEUES, 1).ring(ring)).unwrap();
    let StartedPort { port, rx, tx } = configured.start().unwrap();
    let mut ledger = Ledger::new();
    for queue in &rx {
        assert!(queue.is_padded() && queue.event().is_none());
        ledger.add("queue", queue.tally());
    }
    let sink = Tally::new();
    ledger.add("sink", sink.view());
    Rig {
        cache: pool.cache(256).unwrap(),
        port,
        pool,
        rx,
        tx,
        ledger,
        sink,
    }
}

/// A frame of a flow, which is its source port, with a number.
fn frame(flow: u16, n: u32) -> Vec<u8> {
    let mut frame = Frame::udp(&n.to_be_bytes()).bytes();
    frame[UDP_HEADERS - 8..UDP_HEADERS - 6].copy_from_slice(&(1000 + flow).to_be_bytes());
    frame
}

fn flow_and_number(bytes: &[u8]) -> (u16, u32) {
    let flow = u16::from_be_bytes([bytes[UDP_HEADERS - 8], bytes[UDP_HEADERS - 7]]) - 1000;
    let number = bytes[UDP_HEADERS..].first_chunk().unwrap();
    (flow, u32::from_be_bytes(*number))
}

fn send(tx: &mut TxQueue, cache: &mut PoolCache, frame: &[u8]) -> bool {
    let mut burst = Burst::<1>::new();
    burst.push(cache.alloc_from(frame).unwrap()).unwrap();
    tx.tx(cache, &mut burst) == 1
}

impl Rig {
    fn send(&mut self, frame: &[u8]) {
        assert!(send(&mut self.tx[0], &mut self.cache, frame));
    }

    /// Polls a queue once; its frames.
    fn take(&mut self, queue: usize) -> Vec<Vec<u8>> {
        let mut burst = Burst::<8>::new();
        let received = self.rx[queue].rx(&mut self.cache, &mut burst);
        self.sink.count_delivered(received as u64);
        let frames = burst.iter().map(|mbuf| {
            assert_eq!(usize::from(mbuf.queue()), queue);
            mbuf.data().to_vec()
        });
        let frames = frames.collect();
        burst.clear();
        frames
    }

    fn end(self) -> pollux_pmd::Balance {
        self.port.stop(self.rx, self.tx).unwrap();
        drop(self.cache);
        assert_eq!(self.pool.available(), self.pool.buffers());
        self.ledger.check().unwrap()
    }
}

#[test]
fn a_flow_stays_on_one_queue_in_order() {
    let mut rig = rig(1024);
    let mut queue_of = [None; FLOWS as usize];
    let mut next = [0; FLOWS as usize];
    let mut used = [0; QUEUES as usize];
    for n in 0..50 {
        (0..FLOWS).for_each(|flow| rig.send(&frame(flow, n)));
        while {
            let mut any = false;
            for (queue, used) in used.iter_mut().enumerate() {
                for bytes in rig.take(queue) {
                    any = true;
                    let (flow, n) = flow_and_number(&bytes);
                    let flow = usize::from(flow);
                    assert_eq!(*queue_of[flow].get_or_insert(queue), queue);
                    assert_eq!(n, next[flow]);
                    next[flow] += 1;
                    *used += 1;
                }
            }
            // A poll of the first queue may yield nothing and steer frames.
            any || rig.rx[0].tally().balance().from_wire < u64::from((n + 1) * u32::from(FLOWS))
        } {}
    }
    assert_eq!(next, [50; FLOWS as usize]);
    // 64 flows by a good hash: each queue has some (of 16 expected, 4 is 3.5 sigma away).
    assert!(used.iter().all(|&frames| frames >= 4 * 50), "{used:?}");
    assert_eq!(rig.end().delivered, 50 * u64::from(FLOWS));
}

#[test]
fn fragments_and_what_is_no_datagram_stay_on_the_first_queue() {
    let mut rig = rig(64);
    let mut fragment = frame(3, 0);
    // More fragments.
    fragment[20] |= 0x20;
    let others = [Frame::ip(6, vec![0; 40]).bytes(), vec![0xff; 60], fragment];
    for frame in &others {
        rig.send(frame);
    }
    assert_eq!(rig.take(0), others);
    assert!((1..4).all(|queue| rig.take(queue).is_empty()));
    assert_eq!(rig.end().delivered, 3);
}

/// As with RSS: the flows of the others lose nothing.
#[test]
fn a_queue_that_is_not_polled_loses_frames_of_its_own_flows_only() {
    const RING: usize = 64;
    let mut rig = rig(RING);
    let mut taken = [0_u64; QUEUES as usize];
    for n in 0..20 {
        for flow in 0..FLOWS {
            rig.send(&frame(flow, n));
            let before: Vec<_> = rig.rx.iter().map(|rx| rx.tally().balance()).collect();
            taken[0] += rig.take(0).len() as u64;
            assert_eq!(
                rig.rx[0].tally().balance().from_wire,
                before[0].from_wire + 1
            );
            for queue in [1, 3] {
                taken[queue] += rig.take(queue).len() as u64;
            }
        }
    }
    let lost = rig.rx[0].tally().balance().dropped_for(Cause::RingFull);
    loop {
        let frames = rig.take(2);
        if frames.is_empty() {
            break;
        }
        taken[2] += frames.len() as u64;
    }
    assert_eq!(
        taken[2], RING as u64,
        "the first ones, as many as the ring holds"
    );
    assert!(lost > 0);
    assert_eq!(taken.iter().sum::<u64>() + lost, 20 * u64::from(FLOWS));
    assert_eq!((taken[2] + lost) % 20, 0, "whole flows: {taken:?}");
    let balance = rig.end();
    assert_eq!(balance.dropped_for(Cause::RingFull), lost);
}

#[test]
fn what_is_in_the_rings_when_the_port_stops_is_accounted_for() {
    let mut rig = rig(1024);
    (0..FLOWS).for_each(|flow| rig.send(&frame(flow, 0)));
    let mut own = 0;
    for _ in 0..8 {
        own += rig.take(0).len() as u64;
    }
    // Eight polls of eight frames have emptied the device; one more frame stays in it.
    rig.send(&frame(0, 1));
    let balance = rig.end();
    assert_eq!(balance.from_wire, u64::from(FLOWS) + 1);
    assert_eq!(balance.delivered, own);
    assert_eq!(
        balance.dropped_for(Cause::Aborted),
        u64::from(FLOWS) + 1 - own
    );
}

#[test]
fn loops_on_threads_receive_every_frame_and_do_nothing_but_work() {
    const FRAMES: u32 = 40_000;
    let mut rig = rig(1 << 12);
    let stop = AtomicBool::new(false);
    let rx = std::mem::take(&mut rig.rx);
    let ends = std::thread::scope(|scope| {
        let stop = &stop;
        let pool = &rig.pool;
        let loops: Vec<_> = rx
            .into_iter()
            .map(|mut rx| {
                let mut cache = pool.cache(64).unwrap();
                scope.spawn(move || {
                    let mut next = [0_u32; FLOWS as usize];
                    let (count, noise) = listen(|ear| {
                        ear.during(|| {
                            let mut count = 0_u64;
                            while !stop.load(Ordering::Acquire) {
                                let mut burst = Burst::<32>::new();
                                count += rx.rx(&mut cache, &mut burst) as u64;
                                burst.take_all(|mbuf| {
                                    let (flow, n) = flow_and_number(mbuf.data());
                                    // In order, and none twice.
                                    assert!(n >= next[usize::from(flow)]);
                                    next[usize::from(flow)] = n + 1;
                                    cache.free(mbuf);
                                });
                                std::hint::spin_loop();
                            }
                            count
                        })
                    });
                    noise.assert_none();
                    (rx, count)
                })
            })
            .collect();
        let ends = Ends(stop);
        let wait = || {
            let failed = loops.iter().any(ScopedJoinHandle::is_finished);
            assert!(!failed, "a loop failed");
            std::thread::yield_now();
        };
        for n in 0..FRAMES {
            let bytes = frame((n % u32::from(FLOWS)) as u16, n);
            let mut burst = Burst::<1>::new();
            // The rings hold more than the pool, where a loop waits for its core.
            let mbuf = loop {
                match rig.cache.alloc_from(&bytes) {
                    Some(mbuf) => break mbuf,
                    None => wait(),
                }
            };
            burst.push(mbuf).unwrap();
            while rig.tx[0].tx(&mut rig.cache, &mut burst) == 0 {
                wait();
            }
        }
        // All is received when the device is empty and the pool has all buffers but those of caches.
        while rig.ledger.balance().from_wire < u64::from(FRAMES)
            || rig.pool.buffers() - rig.pool.available() > 256 + 4 * 64 + 64
        {
            wait();
        }
        drop(ends);
        loops
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect::<Vec<_>>()
    });
    for (rx, count) in ends {
        rig.rx.push(rx);
        rig.sink.count_delivered(count);
    }
    let balance = rig.end();
    assert_eq!(balance.from_wire, u64::from(FRAMES));
    let lost = balance.dropped_for(Cause::RingFull) + balance.dropped_for(Cause::Aborted);
    assert_eq!(balance.delivered + lost, u64::from(FRAMES));
}

/// A device with some frames, which then is gone.
struct Brief;

struct BriefRx(Vec<Vec<u8>>);

impl Driver for Brief {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_rx_queues: 1,
            max_tx_queues: 0,
            mac: None,
            max_frame: 1500,
            checksum_offload: false,
            wire_time: false,
            recorded: false,
            kernel_backed: false,
        }
    }

    fn start(&mut self, config: &pollux_pmd::PortConfig, _port: u16) -> Result<Queues, PortError> {
        assert_eq!(config.rx_queues, 1);
        let frames = (0..FLOWS).rev().map(|flow| frame(flow, 0)).collect();
        Ok(Queues {
            rx: vec![Box::new(BriefRx(frames))],
            tx: Vec::new(),
        })
    }
}

impl RxDriver for BriefRx {
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        let mut received = 0;
        while out.free() > 0
            && let Some(frame) = self.0.pop()
        {
            let mut mbuf = cache.alloc_from(&frame).unwrap();
            origin.stamp(&mut mbuf, pollux_mempool::time::Tsc(7));
            tally.count_from_wire(1, frame.len() as u64);
            out.push(mbuf).unwrap();
            received += 1;
        }
        received
    }

    fn state(&self) -> RxState {
        if self.0.is_empty() {
            RxState::Gone
        } else {
            RxState::Live
        }
    }
}

#[test]
fn a_queue_ends_after_its_last_frame() {
    let mut registry = Registry::builtin();
    registry.register(Description::new("brief", "some frames"), |_| {
        Ok(Box::new(Brief))
    });
    let pool = pool(1024);
    let port = registry.open("brief:rps=2").unwrap();
    let StartedPort { port, mut rx, tx } = port
        .configure(config(&pool, 2, 0))
        .unwrap()
        .start()
        .unwrap();
    let mut cache = pool.cache(32).unwrap();
    let mut burst = Burst::<64>::new();
    let mut received = 0;
    while !rx[0].state().is_final() {
        assert_eq!(rx[1].state(), RxState::Live);
        received += rx[0].rx(&mut cache, &mut burst);
        burst.clear();
    }
    // The poll that finds nothing tells the others.
    assert_eq!(rx[0].rx(&mut cache, &mut burst), 0);
    assert_eq!(rx[1].state(), RxState::Live, "it has frames");
    while !rx[1].state().is_final() {
        let n = rx[1].rx(&mut cache, &mut burst);
        assert!(n > 0);
        assert!(burst.iter().all(|mbuf| mbuf.arrival().0 == 7));
        received += n;
        burst.clear();
    }
    assert_eq!(received, usize::from(FLOWS));
    port.stop(rx, tx).unwrap();
}

#[test]
fn what_cannot_be_steered_is_refused() {
    let registry = Registry::builtin();
    for (spec, said) in [
        ("loopback,rps=1", "2 to 64"),
        ("loopback,rps=65", "2 to 64"),
        ("loopback,rps", "2 to 64"),
        ("loopback,rps=2,rps=3", "twice"),
        ("loopback,rpz=2", "no option `rpz`"),
    ] {
        let error = registry.check(spec).unwrap_err().to_string();
        assert!(error.contains(said), "{spec}: {error}");
    }
    registry.check("loopback,rps=2").unwrap();
    let recording = std::env::temp_dir().join(format!("pollux-rps-{}.pcap", std::process::id()));
    let header = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65535, 1];
    let header: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    std::fs::write(&recording, header).unwrap();
    let opened = registry.open(&format!("pcap:rx={},rps=2", recording.display()));
    std::fs::remove_file(&recording).unwrap();
    let error = opened.err().unwrap().to_string();
    assert!(
        error.contains("a recording is shared out by its receive queues"),
        "{error}"
    );
    let port = registry.open("loopback,rps=4").unwrap();
    let error = port.configure(config(&pool(64), 2, 1)).err().unwrap();
    assert!(error.to_string().contains("4, as rps=4 says"), "{error}");
    let built = Port::loopback().rps(4);
    assert_eq!(built.spec().to_string(), "loopback:rps=4");
    assert_eq!(built.open(&registry).unwrap().spread(), 4);
}
