#![allow(clippy::unwrap_used)]
//! The driver on a model of a device: `model`.

mod adversary;
mod checksums;
mod control;
mod life;
mod refusals;
mod traffic;

use std::sync::Arc;

use pollux_mempool::{Burst, ChecksumRequest, Mbuf, MbufFlags, Mempool, PoolCache};
use pollux_pmd::bus::Device;
use pollux_pmd::clock::Clock;
use pollux_pmd::drivers::virtio::pci::open;
use pollux_pmd::port::Started;
use pollux_pmd::{Ledger, Port, PortConfig, PortError, Probed, RxQueue, Tally, TxQueue};
use pollux_pmd_testkit::fake::{FakeDevice, grant};
use pollux_pmd_testkit::models::virtio_net::{ALL, VirtioNet, bit};

type Fake = FakeDevice<VirtioNet>;

/// A device that offers these features.
fn device(offered: u64) -> Fake {
    FakeDevice::new(VirtioNet::new(offered))
}

fn probe(device: &Fake, options: &str) -> Result<Port<Probed>, PortError> {
    let spec = format!("pci:0000:03:00.0{options}");
    let driver = open(Arc::new(device.clone()), &spec.parse().unwrap(), grant())?;
    Ok(Port::new(spec, driver))
}

fn pool(data_room: usize) -> Mempool {
    pollux_pmd_testkit::ports::pool(2048, data_room)
}

fn config(pairs: u16, pool: Mempool) -> PortConfig {
    PortConfig {
        rx_queues: pairs,
        tx_queues: pairs,
        ring: 64,
        ..PortConfig::new(pool)
    }
}

/// A started port on a model.
struct Rig {
    device: Fake,
    port: Port<Started>,
    rx: Vec<RxQueue>,
    tx: Vec<TxQueue>,
    pool: Mempool,
    cache: PoolCache,
    ledger: Ledger,
    sink: Tally,
    /// What was taken from `frame`.
    handed: u64,
}

impl Rig {
    fn start(port: Port<Probed>, device: &Fake, config: PortConfig) -> Result<Self, PortError> {
        let pool = config.pool.clone();
        let started = port.configure(config)?.start()?;
        let (mut ledger, sink) = (Ledger::new(), Tally::new());
        for queue in &started.rx {
            ledger.add("rx", queue.tally());
        }
        ledger.add("sink", sink.view());
        Ok(Self {
            device: device.clone(),
            port: started.port,
            rx: started.rx,
            tx: started.tx,
            cache: pool.cache(64).unwrap(),
            pool,
            ledger,
            sink,
            handed: 0,
        })
    }

    fn new(device: &Fake, options: &str, pairs: u16, pool: Mempool) -> Self {
        let config = config(pairs, pool);
        Self::start(probe(device, options).unwrap(), device, config).unwrap()
    }

    /// Sends a frame whose first bytes are in segments of these lengths; false if there is no room.
    fn send(&mut self, queue: usize, bytes: &[u8], cuts: &[usize]) -> bool {
        self.send_asking(queue, bytes, cuts, None)
    }

    /// As [`send`](Self::send), and leaves a checksum to the device.
    fn send_asking(
        &mut self,
        queue: usize,
        bytes: &[u8],
        cuts: &[usize],
        request: Option<ChecksumRequest>,
    ) -> bool {
        let mut burst = Burst::<1>::new();
        let mut rest = bytes;
        for len in cuts.iter().copied().chain([bytes.len()]) {
            let (now, later) = rest.split_at(len.min(rest.len()));
            for piece in now.chunks(self.pool.data_room()) {
                let segment = self.cache.alloc_from(piece).unwrap();
                match burst.iter_mut().next() {
                    None => drop(burst.push(segment)),
                    Some(frame) => frame.chain(segment).unwrap(),
                }
            }
            rest = later;
        }
        burst
            .iter_mut()
            .for_each(|frame| frame.set_checksum_request(request));
        let taken = self.tx[queue].tx(&mut self.cache, &mut burst);
        self.cache.free_burst(&mut burst);
        self.handed += taken as u64;
        taken == 1
    }

    /// A frame comes in, for a pair of queues.
    fn receive(&self, pair: u16, bytes: &[u8]) {
        self.device
            .with(|model, world| model.receive(world, pair, bytes));
    }

    /// Polls a queue once.
    fn poll(&mut self, queue: usize) -> Vec<Vec<u8>> {
        let mut burst = Burst::<32>::new();
        let n = self.rx[queue].rx(&mut self.cache, &mut burst);
        self.sink.count_delivered(n as u64);
        let frames = burst
            .iter()
            .map(|mbuf| mbuf.segments().flatten().copied().collect());
        let frames = frames.collect();
        self.cache.free_burst(&mut burst);
        frames
    }

    /// Polls the first queue: the frames, and whether their checksums are trusted.
    fn poll_trusted(&mut self) -> Vec<(Vec<u8>, bool)> {
        let mut burst = Burst::<32>::new();
        let n = self.rx[0].rx(&mut self.cache, &mut burst);
        self.sink.count_delivered(n as u64);
        let told = |mbuf: &Mbuf| {
            let trusted = mbuf.flags().contains(MbufFlags::CHECKSUM_TRUSTED);
            (mbuf.segments().flatten().copied().collect(), trusted)
        };
        let frames = burst.iter().map(told).collect();
        self.cache.free_burst(&mut burst);
        frames
    }

    /// Lets a device work that does not wait to be told.
    fn pass_time(&self) {
        self.device.clock().relax();
    }

    /// Stops the port: all is accounted for, the device is at rest, and neither side has done
    /// anything that it must not.
    fn stop(self) -> Port<Probed> {
        let sent: Vec<_> = self.tx.iter().map(TxQueue::sent).collect();
        let port = self.port.stop(self.rx, self.tx).unwrap();
        drop(self.cache);
        assert_eq!(self.pool.available(), self.pool.buffers());
        self.ledger.check().unwrap();
        let done: u64 = sent.iter().map(|sent| sent.packets() + sent.errors()).sum();
        assert_eq!(done, self.handed);
        let none: Vec<String> = Vec::new();
        self.device.with(|model, world| {
            assert_eq!((model.status(), world.faults), (0, 0));
            assert!(world.reachable().is_empty());
            assert_eq!(model.violations, none);
        });
        port.deconfigure()
    }
}

/// The bytes of a frame: its number, and what a generator makes of it.
fn frame(number: usize, len: usize) -> Vec<u8> {
    let mut state = (number as u64) << 32 | 0x9e37_79b9;
    let noise = std::iter::repeat_with(move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    });
    noise.take(len).collect()
}
