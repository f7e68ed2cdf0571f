//! The driver against the card in software. What any simulated card has to do, and what the driver
//! makes of it, is in the suite of `hw/cosim`; here is what only this driver's own parts see.

#![allow(clippy::unwrap_used)]

mod frames;
mod life;
mod sharing;
mod streams;
mod violations;

use std::sync::Arc;

use pollux_card_model::{SimulatedCard, WireFrame};
use pollux_mempool::region::PageSize;
use pollux_mempool::{Burst, Mempool, PoolCache, PoolConfig};
use pollux_pmd::drivers::card::open;
use pollux_pmd::ledger::{Balance, SentView};
use pollux_pmd::port::{Port, PortConfig, PortError, Probed, RxQueue, StartedPort, TxQueue};
use pollux_pmd_testkit::fake::{FakeDevice, grant};
use pollux_pmd_testkit::models::card::{Card, Outside};

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn pool(buffers: usize, data_room: usize) -> Mempool {
    Mempool::new(PoolConfig {
        buffers,
        data_room,
        pages: PageSize::Kib4,
        ..PoolConfig::default()
    })
    .unwrap()
}

fn probe(device: &FakeDevice<Card>, options: &str) -> Result<Port<Probed>, PortError> {
    let spec = format!("pci:0000:03:00.0,mac=02:00:00:00:00:01,{options}");
    let driver = open(Arc::new(device.clone()), &spec.parse().unwrap(), grant())?;
    Ok(Port::new(spec, driver))
}

/// A started port on a card, and what its consumer counts.
struct Bench {
    device: FakeDevice<Card>,
    pool: Mempool,
    cache: Option<PoolCache>,
    started: StartedPort,
    delivered: u64,
    taken: u64,
}

impl Bench {
    fn new(options: &str, queues: u16, pool: Mempool) -> Self {
        let device = FakeDevice::new(Card::new());
        let config = PortConfig {
            rx_queues: queues,
            tx_queues: queues,
            ring: 64,
            ..PortConfig::new(pool.clone())
        };
        let port = probe(&device, options).unwrap().configure(config).unwrap();
        Self {
            cache: Some(pool.cache(64).unwrap()),
            started: port.start().unwrap(),
            device,
            pool,
            delivered: 0,
            taken: 0,
        }
    }

    fn with<T>(&self, look: impl FnOnce(&mut Card) -> T) -> T {
        self.device.with(|card, _| look(card))
    }

    /// Lets time pass, in ns.
    fn pass(&self, ns: u64) {
        self.device.with(|card, world| {
            world.now += ns;
            card.0.advance(&mut Outside(world), ns * 1000);
        });
    }

    fn arrive(&self, port: usize, frame: &[u8]) {
        self.with(|card| card.0.put(port, WireFrame::good(frame)));
        self.pass(20_000);
    }

    /// What a port has sent.
    fn sent(&self, port: usize) -> Vec<Vec<u8>> {
        self.pass(100_000);
        let take = || self.with(|card| card.0.take(port));
        std::iter::from_fn(take).map(|frame| frame.bytes).collect()
    }

    fn send_on(&mut self, queue: usize, frames: impl IntoIterator<Item = Vec<u8>>) -> usize {
        let mut burst = Burst::<64>::new();
        let cache = self.cache.as_mut().unwrap();
        for bytes in frames {
            drop(burst.push(cache.alloc_from(&bytes).unwrap()));
        }
        let n = self.started.tx[queue].tx(cache, &mut burst);
        self.taken += n as u64;
        cache.free_burst(&mut burst);
        n
    }

    fn receive_on(&mut self, queue: usize) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let mut burst = Burst::<16>::new();
        let cache = self.cache.as_mut().unwrap();
        while self.started.rx[queue].rx(cache, &mut burst) > 0 {
            for mbuf in burst.iter() {
                let mut bytes = vec![0; mbuf.total_len()];
                mbuf.copy_to(0, &mut bytes);
                assert_eq!(usize::from(mbuf.queue()), queue);
                all.push(bytes);
            }
            cache.free_burst(&mut burst);
        }
        self.delivered += all.len() as u64;
        all
    }

    /// Stops the port; the ledger balances, the pool is full, and the card has reached nothing
    /// that it may not.
    fn stop(mut self) -> (Balance, u64) {
        let StartedPort { port, rx, tx } = self.started;
        let received: Vec<_> = rx.iter().map(RxQueue::tally).collect();
        let sent: Vec<_> = tx.iter().map(TxQueue::sent).collect();
        self.cache = None;
        let port = port.stop(rx, tx).unwrap();
        let mut balance = Balance::default();
        for view in &received {
            balance.add(&view.balance());
        }
        balance.delivered += self.delivered;
        assert!(balance.is_balanced(), "{balance}");
        let packets: u64 = sent.iter().map(SentView::packets).sum();
        let errors: u64 = sent.iter().map(SentView::errors).sum();
        assert_eq!(packets + errors, self.taken);
        assert_eq!(self.pool.available(), self.pool.buffers());
        let left = self
            .device
            .with(|_, world| (world.faults, world.reachable().len()));
        assert_eq!(
            left,
            (0, 0),
            "accesses that may not be, and memory that is left"
        );
        drop(port);
        (balance, errors)
    }
}

/// A frame to the port, or to another station: numbered bytes.
fn frame_to(to: [u8; 6], len: usize) -> Vec<u8> {
    let rest = (6..len).map(|i| (i * 7 + len) as u8);
    let mut frame: Vec<u8> = to.into_iter().chain(rest).collect();
    // Of no protocol that the card knows.
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}
