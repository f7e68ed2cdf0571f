//! The physical function's driver and the virtual one's together, each with a function of a device
//! made of software.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod alone;
mod checksums;
mod hostile;
mod isolation;
mod per_queue;
mod sessions;

use std::time::Duration;

use pollux_mempool::{Burst, ChecksumRequest, Mempool, PoolCache, PoolConfig, region::PageSize};
use pollux_pmd::drivers::{igb, igbvf};
use pollux_pmd::ledger::{Ledger, Tally};
use pollux_pmd::net::MacAddr;
use pollux_pmd::port::{
    Configured, Port, PortConfig, PortError, Probed, RxQueue, Started, StartedPort, TxQueue,
};
use pollux_pmd::spec::PortSpec;
use pollux_pmd_testkit::fake::{FakeDevice, Model, grant};
use pollux_pmd_testkit::models::igb::{Function, Nic};

/// The other end of the wire.
const PEER: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x99]);

fn pool() -> Mempool {
    pollux_pmd_testkit::ports::pool(1024, 2048)
}

fn spec(options: &str) -> PortSpec {
    format!("pci:0000:01:00.0{options}").parse().unwrap()
}

/// A chip, and the device of its physical function.
struct World {
    nic: Nic,
    pf: FakeDevice<Function>,
}

impl World {
    fn new() -> Self {
        let nic = Nic::new();
        let pf = nic.device(None);
        Self { nic, pf }
    }

    fn pf(&self, options: &str) -> Result<Port<Probed>, PortError> {
        let driver = igb::open(self.pf.clone().into(), &spec(options), grant())?;
        Ok(Port::new("pf", driver))
    }

    /// A virtual function, whose waiting lets the physical one work.
    fn vf_device(&self, number: usize) -> FakeDevice<Function> {
        let device = self.nic.device(Some(number));
        let pf = self.pf.clone();
        device.with(|function, _| {
            function.meanwhile(move || {
                pf.with(Function::tick);
                // So that the thread that answers has its turn, on a busy machine too.
                std::thread::sleep(Duration::from_micros(5));
            });
        });
        device
    }

    fn vf(&self, number: usize, options: &str) -> Result<Port<Probed>, PortError> {
        let driver = igbvf::open(self.vf_device(number).into(), &spec(options), grant())?;
        Ok(Port::new("vf", driver))
    }

    fn start_vf(&self, number: usize, options: &str) -> Running {
        Running::new(self.vf(number, options).unwrap(), 1)
    }
}

/// A port that runs, and what a loop has.
struct Running {
    port: Port<Started>,
    rx: Vec<RxQueue>,
    tx: Vec<TxQueue>,
    pool: Mempool,
    cache: PoolCache,
    consumer: Tally,
    ledger: Ledger,
}

impl Running {
    fn new(port: Port<Probed>, queues: u16) -> Self {
        Self::with_offload(port, queues, false)
    }

    fn with_offload(port: Port<Probed>, queues: u16, checksum_offload: bool) -> Self {
        let pool = pool();
        let config = PortConfig {
            rx_queues: queues,
            tx_queues: queues,
            ring: 64,
            checksum_offload,
            ..PortConfig::new(pool.clone())
        };
        Self::start(port.configure(config).unwrap(), pool)
    }

    fn start(port: Port<Configured>, pool: Mempool) -> Self {
        let StartedPort { port, rx, tx } = port.start().unwrap();
        let (mut ledger, consumer) = (Ledger::new(), Tally::new());
        for queue in &rx {
            ledger.add("rx", queue.tally());
        }
        ledger.add("consumer", consumer.view());
        Self {
            port,
            rx,
            tx,
            cache: pool.cache(64).unwrap(),
            pool,
            consumer,
            ledger,
        }
    }

    fn mac(&self) -> MacAddr {
        self.port.capabilities().mac.unwrap()
    }

    /// Lets the device work, and takes what it received.
    fn receive(&mut self) -> Vec<Vec<u8>> {
        // Housekeeping reads registers, and so lets the device work.
        let _ = self.port.link();
        let mut frames = Vec::new();
        let mut burst = Burst::<32>::new();
        for rx in &mut self.rx {
            while rx.rx(&mut self.cache, &mut burst) > 0 {
                self.consumer.count_delivered(burst.len() as u64);
                frames.extend(burst.iter().map(|mbuf| {
                    let mut bytes = vec![0; mbuf.total_len()];
                    mbuf.copy_to(0, &mut bytes);
                    bytes
                }));
                self.cache.free_burst(&mut burst);
            }
        }
        frames
    }

    fn send(&mut self, frame: &[u8]) {
        self.send_asking(frame, None);
    }

    /// With a checksum that is left to the device.
    fn send_asking(&mut self, frame: &[u8], request: Option<ChecksumRequest>) {
        let mut burst = Burst::<1>::new();
        let mut mbuf = self.cache.alloc_from(frame).unwrap();
        mbuf.set_checksum_request(request);
        drop(burst.push(mbuf));
        assert_eq!(self.tx[0].tx(&mut self.cache, &mut burst), 1);
    }

    /// Stops the port: the ledger balances and the pool is full.
    fn stop(self) -> (Port<Configured>, Ledger) {
        let (port, pool, ledger) = self.try_stop();
        let port = port.unwrap();
        ledger.check().unwrap();
        assert_eq!(pool.available(), pool.buffers());
        (port, ledger)
    }

    /// Stops the port, whatever comes of it.
    fn try_stop(self) -> (Result<Port<Configured>, PortError>, Mempool, Ledger) {
        let Self {
            port,
            rx,
            tx,
            pool,
            cache,
            ledger,
            ..
        } = self;
        drop(cache);
        (port.stop(rx, tx), pool, ledger)
    }
}

/// A frame with that in its payload.
fn frame(to: MacAddr, from: MacAddr, payload: u8) -> Vec<u8> {
    let mut frame = [&to.0[..], &from.0, &[0x88, 0xb5]].concat();
    frame.resize(64, payload);
    frame
}

/// The same in a VLAN.
fn tagged(id: u16, frame: &[u8]) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    [&frame[..12], &[0x81, 0, high, low], &frame[12..]].concat()
}
