//! The driver against its model.

#![allow(clippy::unwrap_used)]

mod checksums;
mod frames;
mod life;
mod rings;
mod violations;

use std::sync::Arc;

use pollux_mempool::{Burst, Mbuf, MbufFlags, Mempool, PoolCache};
use pollux_pmd::drivers::e1000e::open;
use pollux_pmd::ledger::{Balance, SentView};
use pollux_pmd::port::{Port, PortConfig, PortError, Probed, RxQueue, StartedPort, TxQueue};
use pollux_pmd_testkit::fake::{FakeDevice, World, grant};
use pollux_pmd_testkit::models::e1000e::Card;

const MAC: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];

fn probe(device: &FakeDevice<Card>, options: &str) -> Result<Port<Probed>, PortError> {
    let spec = format!("pci:0000:03:00.0,{options}");
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
        Self::with_offload(options, queues, pool, false)
    }

    fn with_offload(options: &str, queues: u16, pool: Mempool, checksum_offload: bool) -> Self {
        let device = FakeDevice::new(Card::new(MAC));
        let config = PortConfig {
            rx_queues: queues,
            tx_queues: queues,
            ring: 64,
            checksum_offload,
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

    /// Its parts, when the buffers of its cache are back in the pool.
    fn without_cache(self) -> (FakeDevice<Card>, StartedPort, Mempool) {
        drop(self.cache);
        (self.device, self.started, self.pool)
    }

    fn with<T>(&self, look: impl FnOnce(&mut Card, &mut World) -> T) -> T {
        self.device.with(look)
    }

    fn arrive(&self, frame: &[u8]) {
        self.with(|card, world| card.receive(world, frame));
    }

    fn frame(&mut self, bytes: &[u8]) -> Mbuf {
        self.cache.as_mut().unwrap().alloc_from(bytes).unwrap()
    }

    fn send_on(&mut self, queue: usize, frames: impl IntoIterator<Item = Vec<u8>>) -> usize {
        let mut burst = Burst::<64>::new();
        for bytes in frames {
            let frame = self.frame(&bytes);
            drop(burst.push(frame));
        }
        let cache = self.cache.as_mut().unwrap();
        let n = self.started.tx[queue].tx(cache, &mut burst);
        self.taken += n as u64;
        cache.free_burst(&mut burst);
        n
    }

    /// All that has come to a queue: bytes, and whether the checksum is vouched for.
    fn receive_on(&mut self, queue: usize) -> Vec<(Vec<u8>, bool)> {
        let mut all = Vec::new();
        let mut burst = Burst::<16>::new();
        let cache = self.cache.as_mut().unwrap();
        while self.started.rx[queue].rx(cache, &mut burst) > 0 {
            for mbuf in burst.iter() {
                let mut bytes = vec![0; mbuf.total_len()];
                mbuf.copy_to(0, &mut bytes);
                assert_eq!(usize::from(mbuf.queue()), queue);
                all.push((bytes, mbuf.flags().contains(MbufFlags::CHECKSUM_TRUSTED)));
            }
            cache.free_burst(&mut burst);
        }
        self.delivered += all.len() as u64;
        all
    }

    fn receive(&mut self) -> Vec<Vec<u8>> {
        self.receive_on(0)
            .into_iter()
            .map(|(bytes, _)| bytes)
            .collect()
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
        balance.delivered = self.delivered;
        assert!(balance.is_balanced(), "{balance}");
        let packets: u64 = sent.iter().map(SentView::packets).sum();
        let errors: u64 = sent.iter().map(SentView::errors).sum();
        assert_eq!(packets + errors, self.taken);
        assert_eq!(self.pool.available(), self.pool.buffers());
        assert_eq!(self.device.with(|_, world| world.faults), 0);
        assert_eq!(self.device.with(|_, world| world.reachable().len()), 0);
        drop(port);
        (balance, errors)
    }
}

/// A frame to the card, or to another station: numbered bytes.
fn frame_to(to: [u8; 6], len: usize) -> Vec<u8> {
    let rest = (6..len).map(|i| (i * 7 + len) as u8);
    to.into_iter().chain(rest).collect::<Vec<_>>()[..len].to_vec()
}

/// The checksum of RFC 1071.
fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let mut sum = pollux_pmd::net::Checksum::new();
    for part in parts {
        sum.add(part);
    }
    sum.finish().to_be_bytes()
}

/// A TCP or UDP segment over IPv4.
fn ipv4(protocol: u8, from: u8, port: u16, len: usize) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
    packet.extend([10, 0, 0, from, 10, 0, 0, 1]);
    packet[2..4].copy_from_slice(&((20 + len) as u16).to_be_bytes());
    let sum = checksum(&[&packet]);
    packet[10..12].copy_from_slice(&sum);
    let mut segment = vec![0; len];
    segment[..2].copy_from_slice(&port.to_be_bytes());
    segment[2..4].copy_from_slice(&7_u16.to_be_bytes());
    segment[4..6].copy_from_slice(&(len as u16).to_be_bytes());
    let at = if protocol == 6 { 16 } else { 6 };
    let length = (len as u16).to_be_bytes();
    let sum = checksum(&[&packet[12..20], &[0, protocol], &length, &segment]);
    segment[at..at + 2].copy_from_slice(&sum);
    [&MAC[..], &[2, 0, 0, 0, 0, 9, 8, 0], &packet, &segment].concat()
}
