//! The released driver, on a simulated card.

use std::sync::Arc;

use pollux_card_model::registers::host;
use pollux_card_model::{FrameEnd, ReadError, SimulatedCard, WireFrame};
use pollux_mempool::region::PageSize;
use pollux_mempool::time::Ns;
use pollux_mempool::{Burst, Mempool, PoolCache, PoolConfig};
use pollux_pmd::bus::{Bus, Device};
use pollux_pmd::drivers::card;
use pollux_pmd::{Balance, Cause, Configured, Port, PortConfig, RxQueue, StartedPort, TxQueue};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::support::Make;
use crate::CosimDevice;
use crate::device::grant;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn pool() -> Mempool {
    Mempool::new(PoolConfig {
        buffers: 512,
        pages: PageSize::Kib4,
        ..PoolConfig::default()
    })
    .unwrap()
}

/// A port on a card.
struct Bench<C: SimulatedCard> {
    device: CosimDevice<C>,
    pool: Mempool,
    cache: PoolCache,
    started: StartedPort,
    delivered: u64,
    taken: u64,
}

fn configured<C: SimulatedCard>(
    device: &CosimDevice<C>,
    pool: &Mempool,
    queues: u16,
) -> Port<Configured> {
    let spec = "card-sim:mac=02:00:00:00:00:01,mtu=9000";
    let driver = card::open(Arc::new(device.clone()), &spec.parse().unwrap(), grant()).unwrap();
    let config = PortConfig {
        rx_queues: queues,
        tx_queues: queues,
        ring: 64,
        ..PortConfig::new(pool.clone())
    };
    Port::new(spec, driver).configure(config).unwrap()
}

impl<C: SimulatedCard> Bench<C> {
    fn start(device: &CosimDevice<C>, pool: &Mempool, port: Port<Configured>) -> Self {
        Self {
            device: device.clone(),
            pool: pool.clone(),
            cache: pool.cache(64).unwrap(),
            started: port.start().unwrap(),
            delivered: 0,
            taken: 0,
        }
    }

    fn put(&self, port: usize, frame: WireFrame) {
        self.device.with(|card, _| card.put(port, frame));
    }

    fn send(&mut self, queue: usize, frames: &[Vec<u8>]) -> usize {
        let mut burst = Burst::<64>::new();
        for bytes in frames {
            drop(burst.push(self.cache.alloc_from(bytes).unwrap()));
        }
        let n = self.started.tx[queue].tx(&mut self.cache, &mut burst);
        self.taken += n as u64;
        self.cache.free_burst(&mut burst);
        n
    }

    fn receive(&mut self, queue: usize) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let mut burst = Burst::<16>::new();
        while self.started.rx[queue].rx(&mut self.cache, &mut burst) > 0 {
            for mbuf in burst.iter() {
                let mut bytes = vec![0; mbuf.total_len()];
                mbuf.copy_to(0, &mut bytes);
                all.push(bytes);
            }
            self.cache.free_burst(&mut burst);
        }
        self.delivered += all.len() as u64;
        all
    }

    /// The frames that a port has sent, once there are so many.
    fn sent(&self, port: usize, wanted: usize) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for _ in 0..500 {
            while let Some(frame) = self.device.with(|card, _| card.take(port)) {
                assert_eq!(frame.end, FrameEnd::Good);
                all.push(frame.bytes);
            }
            if all.len() >= wanted {
                break;
            }
            self.device.advance(Ns(1_000));
        }
        all
    }

    /// The frames that a queue has received, once there are so many.
    fn received(&mut self, queue: usize, wanted: usize) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for _ in 0..500 {
            all.append(&mut self.receive(queue));
            if all.len() >= wanted {
                break;
            }
            self.device.advance(Ns(1_000));
        }
        all
    }

    /// Stops: the ledger balances, the pool is full, the card can reach no memory any more.
    fn stop(self) -> (Port<Configured>, Balance, u64) {
        let StartedPort { port, rx, tx } = self.started;
        let received: Vec<_> = rx.iter().map(RxQueue::tally).collect();
        let sent: Vec<_> = tx.iter().map(TxQueue::sent).collect();
        drop(self.cache);
        let port = port.stop(rx, tx).unwrap();
        let mut balance = Balance::default();
        for view in &received {
            balance.add(&view.balance());
        }
        balance.delivered += self.delivered;
        assert!(balance.is_balanced(), "{balance}");
        let (packets, errors) = sent.iter().fold((0, 0), |(packets, errors), view| {
            (packets + view.packets(), errors + view.errors())
        });
        assert_eq!(packets + errors, self.taken, "frames sent");
        assert_eq!(self.pool.available(), self.pool.buffers());
        let left = self
            .device
            .with(|_, memory| (memory.trespasses, memory.mapped()));
        assert_eq!(
            left,
            (0, 0),
            "accesses that may not be, and memory that is left"
        );
        (port, balance, errors)
    }
}

/// A frame to the port, of no protocol that the card knows.
fn frame(len: usize) -> Vec<u8> {
    let mut frame = MAC.to_vec();
    frame.extend([2, 0, 0, 0, 0, 9, 0x88, 0xb5]);
    frame.extend((14..len).map(|i| (i * 5 + len) as u8));
    frame
}

/// Frames of all lengths, on all ports.
pub fn a_port_passes_frames_each_way<C: SimulatedCard>(make: Make<'_, C>) {
    let (device, pool) = (CosimDevice::new(make()), pool());
    let port = configured(&device, &pool, 4);
    let mut bench = Bench::start(&device, &pool, port);
    let lens = [60, 61, 64, 127, 300, 1514, 2048, 9014];
    for port in 0..4 {
        let frames: Vec<_> = lens.iter().map(|&len| frame(len)).collect();
        for frame in &frames {
            bench.put(port, WireFrame::good(frame.clone()));
        }
        assert_eq!(bench.send(port, &frames), frames.len());
        assert!(
            bench.received(port, lens.len()) == frames,
            "received on {port}"
        );
        assert!(bench.sent(port, lens.len()) == frames, "sent on {port}");
    }
    let (_, balance, errors) = bench.stop();
    assert_eq!((balance.dropped_total(), errors), (0, 0));
}

/// Each start finds a card without state of the previous one.
pub fn a_port_starts_twenty_times<C: SimulatedCard>(make: Make<'_, C>) {
    let (device, pool) = (CosimDevice::new(make()), pool());
    let mut port = configured(&device, &pool, 1);
    for round in 0..20 {
        let mut bench = Bench::start(&device, &pool, port);
        bench.put(0, WireFrame::good(frame(60 + round)));
        assert_eq!(bench.send(0, &[frame(100 + round)]), 1);
        assert_eq!(bench.received(0, 1), [frame(60 + round)]);
        assert_eq!(bench.sent(0, 1), [frame(100 + round)]);
        let (stopped, balance, errors) = bench.stop();
        assert_eq!((balance.from_wire, balance.delivered, errors), (1, 1, 0));
        port = stopped;
    }
}

/// All frames in flight are counted.
pub fn a_port_stops_under_traffic<C: SimulatedCard>(make: Make<'_, C>) {
    let (device, pool) = (CosimDevice::new(make()), pool());
    let mut port = configured(&device, &pool, 2);
    for round in 0..5 {
        let mut bench = Bench::start(&device, &pool, port);
        for n in 0..40 {
            bench.put(n % 2, WireFrame::good(frame(60 + 7 * n)));
        }
        let frames: Vec<_> = (0..20).map(|n| frame(80 + n)).collect();
        bench.send(1, &frames);
        device.advance(Ns(500 * round));
        let _ = bench.receive(0);
        let (stopped, balance, _) = bench.stop();
        assert!(balance.from_wire <= 40, "{balance}");
        port = stopped;
        // Frames that have not arrived yet find no receiver.
        device.advance(Ns(50_000));
        while device.with(|card, _| card.take(1)).is_some() {}
    }
}

/// A host that completes a read with an error, or not at all: that frame is lost, the port continues.
pub fn a_port_outlives_failed_reads<C: SimulatedCard>(make: Make<'_, C>) {
    let (device, pool) = (CosimDevice::new(make()), pool());
    let port = configured(&device, &pool, 1);
    let mut bench = Bench::start(&device, &pool, port);
    // 8 us, so that the test is short.
    let bus = device.bar(0, 128 << 10).unwrap();
    bus.write32(host::THIS.at + host::TIMEOUT.at, 2000);
    bus.write32(host::THIS.at + host::QUARANTINE.at, 4000);
    let errors = [
        ReadError::Unsupported,
        ReadError::Abort,
        ReadError::Poisoned,
        ReadError::Unanswered,
    ];
    for (n, error) in errors.into_iter().enumerate() {
        for first in [None, Some(error)] {
            // The frame, which is too long for the ring, or its descriptor.
            device.with(|_, memory| memory.read_errors.extend([first, Some(error)]));
            bench.send(0, &[frame(200)]);
            device.advance(Ns(20_000));
            device.with(|_, memory| memory.read_errors.clear());
            // An empty burst has a use: reported completions are processed.
            assert_eq!(bench.send(0, &[]), 0);
            assert_eq!(bench.send(0, &[frame(70 + n)]), 1);
            assert_eq!(bench.sent(0, 1), [frame(70 + n)], "{error:?}");
        }
    }
    let (_, _, errors) = bench.stop();
    assert_eq!(errors, 8);
}

/// A host that accepts nothing, so that the port's fifo is full, and then a loop that does not poll,
/// so that its list is: frames that do not fit are counted as such, and the port continues.
pub fn a_port_outlives_overflows<C: SimulatedCard>(make: Make<'_, C>) {
    let (device, pool) = (CosimDevice::new(make()), pool());
    let port = configured(&device, &pool, 1);
    let mut bench = Bench::start(&device, &pool, port);
    let bus = device.bar(0, 128 << 10).unwrap();
    let mut put = 0;
    for quiesce in [1, 0] {
        bus.write32(host::THIS.at + host::CTRL.at, quiesce);
        for _ in 0..50 {
            bench.put(0, WireFrame::good(frame(9014)));
        }
        // 7.2 us each.
        device.advance(Ns(400_000));
        bus.write32(host::THIS.at + host::CTRL.at, 0);
        device.advance(Ns(20_000));
        let found = bench.receive(0).len() as u64;
        assert!((1..50).contains(&found), "{found} of 50");
        bench.put(0, WireFrame::good(frame(100)));
        assert_eq!(bench.received(0, 1), [frame(100)]);
        put += 51;
    }
    let (_, balance, _) = bench.stop();
    assert_eq!(balance.from_wire, put);
    let full = balance.dropped_for(Cause::RingFull);
    assert_eq!(
        (full, full),
        (balance.dropped_total(), put - balance.delivered),
        "{balance}"
    );
}

/// Frames good and bad, bursts, pauses, empty pools: nothing is lost without a cause.
pub fn a_soak_balances<C: SimulatedCard>(make: Make<'_, C>) {
    let (device, pool) = (CosimDevice::new(make()), pool());
    let port = configured(&device, &pool, 4);
    let mut bench = Bench::start(&device, &pool, port);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(6);
    let (mut put, mut kept) = (0_u64, Vec::new());
    for _ in 0..400 {
        match random.random_range(0..8) {
            0..3 => {
                for _ in 0..random.random_range(1..20) {
                    let most = if random.random_bool(0.1) { 9014 } else { 200 };
                    let len = random.random_range(60..most);
                    let end = match random.random_range(0..20) {
                        0 => FrameEnd::BadFcs,
                        1 => FrameEnd::Error,
                        _ => FrameEnd::Good,
                    };
                    let mut bytes = frame(len);
                    // To another neighbour, at random.
                    bytes[5] = random.random_range(1..4);
                    bench.put(random.random_range(0..4), WireFrame { bytes, end });
                    put += 1;
                }
            }
            3 => {
                let n = random.random_range(1..30);
                let frames: Vec<_> = (0..n)
                    .map(|_| frame(random.random_range(60..1514)))
                    .collect();
                bench.send(random.random_range(0..4), &frames);
            }
            4 => kept.extend(bench.cache.alloc_from(&[0; 60])),
            5 => kept.clear(),
            6 => bench.started.rx[random.random_range(0..4)].sync_counters(),
            _ => device.advance(Ns(random.random_range(100..20_000))),
        }
        let queue = random.random_range(0..4);
        let _ = bench.receive(queue);
    }
    kept.clear();
    device.advance(Ns(200_000));
    for queue in 0..4 {
        let _ = bench.receive(queue);
    }
    let (_, balance, errors) = bench.stop();
    assert_eq!((balance.from_wire, errors), (put, 0));
    assert!(
        balance.dropped_for(Cause::DeviceError) > 0 && balance.delivered > 200,
        "{balance}"
    );
}
