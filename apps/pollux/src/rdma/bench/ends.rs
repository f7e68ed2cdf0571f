//! The two ends of a bench: endpoints, and a connected pair of queue pairs with memory.

use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;

use anyhow::{Context as _, Result, anyhow};
use pollux_app::{Failure, ports};
use pollux_pmd::mempool::region::MemoryRegion;
use pollux_pmd::mempool::time::{Ns, Tsc};
use pollux_pmd::mempool::{Mempool, PoolConfig};
use pollux_pmd::net::MacAddr;
use pollux_pmd::{
    Clock, Ledger, Port, PortConfig, Registry, RxQueue, Started, StartedPort, TscClock, TxQueue,
};
use pollux_rdma::roce::{RoceCounts, RoceEndpoint, RoceLoop, RoceOptions};
use pollux_rdma::{
    Access, Buffer, Endpoint, Memory, PathOptions, QpOptions, QueuePair, Receive, shm,
};
use rand::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::args::Args;
use super::plan::Plan;

/// Buffers of the pool, and in the local cache of a loop.
const BUFFERS: usize = 8192;
const CACHE: usize = 512;
/// Bytes of a buffer: a packet of the largest MTU fits.
const ROOM: usize = 4352;
/// Receives of a queue pair.
const RECEIVES: usize = 64;
/// Time-out of an acknowledgement, 4.096 us x 2^18: a loop that is interrupted is no loss.
const TIMEOUT: u8 = 18;

/// The polled part of an end; of shared memory there is none.
pub(super) struct Poller {
    roce: Option<RoceLoop>,
    pub(super) clock: TscClock,
    begin: Tsc,
}

impl Poller {
    fn new(roce: Option<RoceLoop>) -> Self {
        let clock = TscClock::get();
        let begin = clock.now();
        Self { roce, clock, begin }
    }

    /// Time since the start.
    #[inline]
    pub(super) fn now(&self) -> Ns {
        self.clock.to_ns(self.clock.now().since(self.begin))
    }

    /// Frames that the endpoint has acted on: a request of many packets takes its time.
    pub(super) fn delivered(&self) -> u64 {
        let roce = self.roce.as_ref();
        roce.map_or(0, |roce| roce.tally().balance().delivered)
    }

    #[inline]
    pub(super) fn poll(&mut self) {
        // Shared memory needs no time, and reading the clock takes as long as a poll of it.
        if self.roce.is_some() {
            let now = self.now();
            if let Some(roce) = &mut self.roce {
                roce.poll(now);
            }
        }
    }
}

/// Both ends, that of the requester first.
pub(super) struct Ends {
    pub(super) endpoints: [Endpoint; 2],
    /// Away while the loops run.
    pub(super) pollers: Option<[Poller; 2]>,
    ports: Vec<Port<Started>>,
    ledger: Ledger,
}

impl Ends {
    /// Opens the ports and makes the endpoints, or those of shared memory.
    pub(super) fn open(args: &Args, registry: &Registry) -> Result<Self, Failure> {
        if args.ports.is_empty() {
            Ok(Self::shared()?)
        } else {
            Self::roce(args, registry)
        }
    }

    fn shared() -> Result<Self> {
        let (left, right) = UnixStream::pair().context("no pair of sockets")?;
        let other = std::thread::spawn(|| shm::endpoint(right, 2));
        let (here, _) = shm::endpoint(left, 2)?;
        let there = other
            .join()
            .map_err(|_| anyhow!("an end of the bench is missing"))?;
        Ok(Self {
            endpoints: [here, there?.0],
            pollers: Some([Poller::new(None), Poller::new(None)]),
            ports: Vec::new(),
            ledger: Ledger::new(),
        })
    }

    fn roce(args: &Args, registry: &Registry) -> Result<Self, Failure> {
        let pool = Mempool::new(PoolConfig {
            buffers: BUFFERS,
            data_room: ROOM,
            ..PoolConfig::default()
        })
        .context("no memory for packet buffers")?;
        let opened = ports::open(registry, &args.ports)?;
        // Each queue of a loopback is a wire: one for each direction.
        let queues = if opened.len() == 1 { 2 } else { 1 };
        let (mut ports, mut ledger) = (Vec::new(), Ledger::new());
        let (mut rx, mut tx, mut capabilities) = (Vec::new(), Vec::new(), Vec::new());
        for port in opened {
            let config = PortConfig {
                rx_queues: queues,
                tx_queues: queues,
                ..PortConfig::new(pool.clone())
            };
            capabilities.push(port.capabilities());
            let started = port.configure(config)?.start()?;
            let StartedPort {
                port,
                rx: received,
                tx: sent,
            } = started;
            ports.push(port);
            rx.extend(received);
            tx.extend(sent);
        }
        if ports.len() == 1 {
            // What one end sends, the other receives.
            rx.reverse();
            capabilities.push(capabilities.first().context("no port")?.clone());
        }
        let (mut endpoints, mut pollers) = (Vec::new(), Vec::new());
        for (n, ((rx, tx), capabilities)) in rx.into_iter().zip(tx).zip(&capabilities).enumerate() {
            ledger.add(format!("end {n} port"), rx.tally());
            let is_wire = ports.len() == 1;
            let options = RoceOptions {
                mac: is_wire.then_some(MacAddr([2, 0, 0, 0, 0, n as u8 + 1])),
                queue_pairs: 2,
                ..RoceOptions::new(Ipv4Addr::new(10, 0, 0, n as u8 + 1))
            };
            let cache = pool.cache(CACHE).context("no packet buffers")?;
            let made = RoceEndpoint::new(&options, capabilities, (rx, tx), cache);
            let (endpoint, roce) = made.map_err(Failure::usage)?;
            ledger.add(format!("end {n}"), roce.tally());
            endpoints.push(endpoint.endpoint());
            pollers.push(Poller::new(Some(roce)));
        }
        let two = || anyhow!("an end of the bench is missing");
        Ok(Self {
            endpoints: endpoints.try_into().map_err(|_| two())?,
            pollers: Some(pollers.try_into().map_err(|_| two())?),
            ports,
            ledger,
        })
    }

    /// Stops the ports. Counters of the endpoints, if they have any, and the ledger of the frames.
    pub(super) fn end(self) -> Result<(Option<RoceCounts>, Ledger)> {
        let (mut rx, mut tx): (Vec<RxQueue>, Vec<TxQueue>) = Default::default();
        let mut counts: Option<RoceCounts> = None;
        for roce in self
            .pollers
            .into_iter()
            .flatten()
            .filter_map(|end| end.roce)
        {
            let of = roce.counts().get();
            counts = Some(counts.map_or(of, |all| sum(all, of)));
            let (received, sent) = roce.into_queues();
            rx.push(received);
            tx.extend(sent);
        }
        ports::stop(self.ports, rx, tx)?;
        Ok((counts, self.ledger))
    }
}

fn sum(a: RoceCounts, b: RoceCounts) -> RoceCounts {
    RoceCounts {
        sent: a.sent + b.sent,
        requests: a.requests + b.requests,
        retransmitted: a.retransmitted + b.retransmitted,
        not_ready: a.not_ready + b.not_ready,
        timeouts: a.timeouts + b.timeouts,
        marked: a.marked + b.marked,
        notified: a.notified + b.notified,
        missed: a.missed + b.missed,
    }
}

/// A queue pair and its memory.
pub(super) struct End {
    pub(super) qp: QueuePair,
    pub(super) buffer: Buffer,
    /// The other end's memory.
    pub(super) remote: pollux_rdma::RemoteBuffer,
    /// The same data, for requests that carry them.
    pub(super) data: Vec<u8>,
}

/// Two queue pairs that are connected. The memory of the end from which data come has random ones.
pub(super) struct Pair(pub(super) [End; 2]);

impl Pair {
    pub(super) fn new(args: &Args, plan: Plan, ends: &mut Ends) -> Result<Self> {
        let bytes = plan.bytes as usize;
        let mut parts = Vec::new();
        for endpoint in &mut ends.endpoints {
            let memory = MemoryRegion::builder(bytes).build()?;
            let memory = Memory::new(memory);
            let buffer = endpoint.register_buffer(&memory, 0..bytes, Access::ALL)?;
            let mut qp = endpoint.create_queue_pair(&QpOptions {
                receives: RECEIVES,
                ..QpOptions::default()
            })?;
            for cookie in 0..RECEIVES as u64 {
                let to = buffer.part(0, plan.bytes);
                qp.post_receive(Receive { cookie, to })?;
            }
            qp.doorbell();
            parts.push((qp, buffer));
        }
        let path = PathOptions {
            mtu: args.mtu,
            timeout: TIMEOUT,
            ..PathOptions::default()
        };
        let addresses: Vec<_> = parts.iter().map(|(qp, _)| qp.address()).collect();
        for (endpoint, ((qp, _), peer)) in ends
            .endpoints
            .iter_mut()
            .zip(parts.iter().zip(addresses.iter().rev()))
        {
            endpoint.connect(qp, peer, &path)?;
        }
        // Both know of the connection before the first packet comes.
        for poller in ends.pollers.iter_mut().flatten() {
            poller.poll();
        }
        let mut data = vec![0; bytes];
        Xoshiro256PlusPlus::seed_from_u64(u64::from(plan.bytes)).fill_bytes(&mut data);
        let source = usize::from(plan.is_from_responder());
        if let Some((_, buffer)) = parts.get(source) {
            buffer.write(0, &data)?;
        }
        let remotes: Vec<_> = parts.iter().map(|(_, buffer)| buffer.remote()).collect();
        let made = parts.into_iter().zip(remotes.into_iter().rev());
        let made = made.map(|((qp, buffer), remote)| End {
            qp,
            buffer,
            remote,
            data: data.clone(),
        });
        let made: Vec<_> = made.collect();
        let pair = made.try_into();
        pair.map(Self)
            .map_err(|_| anyhow!("an end of the bench is missing"))
    }
}
