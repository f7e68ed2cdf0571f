//! Pools, configurations, and ports in a namespace, polled by hand.
#![allow(dead_code)] // each test binary uses its part

use std::net::UdpSocket;
use std::time::Instant;

use pollux_mempool::{Burst, Mbuf, Mempool, PoolCache, PoolConfig};
use pollux_pmd::{
    Balance, Cause, Ledger, MemoryGrant, PortConfig, PortError, Registry, RxQueue, RxState,
    StartedPort, Tally, TxQueue,
};

use pollux_pmd_testkit::netns::{Cable, Namespace, assert_udp, payload, udp_frame};

pub(crate) use pollux_pmd_testkit::netns::PATIENCE;

/// The drivers, with a grant for DPDK's devices.
pub(crate) fn registry() -> Registry {
    // SAFETY: DPDK is a part of this process; what its devices write are the buffers that they were
    // given. No other port of these tests takes a grant.
    Registry::builtin().granting(unsafe { MemoryGrant::new() })
}

pub(crate) fn pool(buffers: usize) -> Mempool {
    Mempool::new(PoolConfig {
        buffers,
        ..PoolConfig::default()
    })
    .unwrap()
}

pub(crate) fn config(pool: &Mempool, rx_queues: u16, tx_queues: u16) -> PortConfig {
    PortConfig {
        rx_queues,
        tx_queues,
        ..PortConfig::new(pool.clone())
    }
}

pub(crate) struct Port {
    pub(crate) started: StartedPort,
    pub(crate) pool: Mempool,
    pub(crate) cache: PoolCache,
    ledger: Ledger,
    sink: Tally,
}

/// A frame as it was received.
pub(crate) struct Frame {
    pub(crate) bytes: Vec<u8>,
    pub(crate) queue: u16,
    pub(crate) wire_ns: Option<u64>,
    pub(crate) trusted: bool,
}

impl Port {
    pub(crate) fn try_open(
        namespace: &Namespace,
        spec: &str,
        rx_queues: u16,
        buffers: usize,
    ) -> Result<Self, PortError> {
        Self::with_pool(namespace, spec, rx_queues, pool(buffers))
    }

    pub(crate) fn with_pool(
        namespace: &Namespace,
        spec: &str,
        rx_queues: u16,
        pool: Mempool,
    ) -> Result<Self, PortError> {
        let config = PortConfig {
            rx_queues,
            ring: 64,
            ..PortConfig::new(pool.clone())
        };
        let started = namespace.within(|| registry().open(spec)?.configure(config)?.start())?;
        assert!(started.rx.iter().all(RxQueue::is_padded));
        assert!(started.tx.iter().all(TxQueue::is_padded));
        let cache = pool.cache(16).unwrap();
        let (mut ledger, sink) = (Ledger::new(), Tally::new());
        started
            .rx
            .iter()
            .for_each(|queue| ledger.add("rx", queue.tally()));
        ledger.add("sink", sink.view());
        Ok(Self {
            started,
            pool,
            cache,
            ledger,
            sink,
        })
    }

    /// A port at the near end of a cable, with one queue each way.
    pub(crate) fn open(cable: &Cable, spec: &str) -> Self {
        Self::try_open(&cable.a, spec, 1, 1024).unwrap()
    }

    /// One poll of each queue.
    pub(crate) fn poll(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        for queue in &mut self.started.rx {
            let mut burst = Burst::<32>::new();
            let n = queue.rx(&mut self.cache, &mut burst);
            self.sink.count_delivered(n as u64);
            frames.extend(burst.iter().map(|mbuf| {
                let mut bytes = vec![0; mbuf.total_len()];
                mbuf.copy_to(0, &mut bytes);
                Frame {
                    bytes,
                    queue: mbuf.queue(),
                    wire_ns: mbuf.wire_time().map(|time| time.0),
                    trusted: mbuf
                        .flags()
                        .contains(pollux_mempool::MbufFlags::CHECKSUM_TRUSTED),
                }
            }));
            self.cache.free_burst(&mut burst);
        }
        frames
    }

    /// One poll of the first queue; the buffers are kept.
    pub(crate) fn poll_and_hold(&mut self, held: &mut Vec<Mbuf>) -> Vec<Vec<u8>> {
        let mut burst = Burst::<32>::new();
        let n = self.started.rx[0].rx(&mut self.cache, &mut burst);
        self.sink.count_delivered(n as u64);
        let frames = burst.iter().map(|mbuf| mbuf.data().to_vec()).collect();
        burst.take_all(|mbuf| held.push(mbuf));
        frames
    }

    /// Polls until there are `n` frames, or none comes any more.
    pub(crate) fn receive(&mut self, n: usize) -> Vec<Frame> {
        let began = Instant::now();
        let mut frames = Vec::new();
        while frames.len() < n && began.elapsed() < PATIENCE {
            frames.extend(self.poll());
        }
        // one more would be one too many
        frames.extend(self.poll());
        frames
    }

    pub(crate) fn wait_for(&mut self, state: RxState) {
        let began = Instant::now();
        while self.started.rx[0].state() != state {
            assert!(began.elapsed() < PATIENCE, "never became {state:?}");
            self.poll();
        }
    }

    /// Sends frames, as many as the queue takes; returns how many.
    pub(crate) fn send(&mut self, frames: &[Vec<u8>]) -> usize {
        let mut burst = Burst::<64>::new();
        for frame in frames {
            burst.push(self.cache.alloc_from(frame).unwrap()).unwrap();
        }
        let taken = self.started.tx[0].tx(&mut self.cache, &mut burst);
        assert_eq!(burst.len(), frames.len() - taken);
        self.cache.free_burst(&mut burst);
        taken
    }

    pub(crate) fn sent(&self) -> (u64, u64) {
        let sent = self.started.tx[0].sent();
        (sent.packets(), sent.errors())
    }

    pub(crate) fn dropped(&self, cause: Cause) -> u64 {
        self.ledger.balance().dropped_for(cause)
    }

    /// Frames that the test has taken out of the queues by itself.
    pub(crate) fn count_delivered(&mut self, frames: u64) {
        self.sink.count_delivered(frames);
    }

    pub(crate) fn dropped_total(&self) -> u64 {
        self.ledger.balance().dropped_total()
    }

    /// Stops the port; the ledger balances and all buffers are back.
    pub(crate) fn stop(self) -> Balance {
        let StartedPort { port, rx, tx } = self.started;
        port.stop(rx, tx).unwrap();
        drop(self.cache);
        assert_eq!(self.pool.available(), self.pool.buffers());
        self.ledger.check().unwrap()
    }

    /// Datagrams in frames of these lengths from a socket on port 7000, and back to it, byte for
    /// byte, of a port that has sent nothing before; how many, each way.
    pub(crate) fn exchange(&mut self, peer: &UdpSocket, frame_lens: &[usize]) -> u64 {
        for (i, &len) in frame_lens.iter().enumerate() {
            let data = payload(len - 42, i as u8);
            assert_eq!(peer.send(&data).unwrap(), data.len());
            let frames = self.receive(1);
            assert_eq!(frames.len(), 1, "{len} B");
            assert_udp(&frames[0].bytes, 7000, &data);

            assert_eq!(self.send(&[udp_frame(7000, &data)]), 1);
            let mut got = vec![0; 65_536];
            let n = peer.recv(&mut got).unwrap();
            assert_eq!(got[..n], data, "{len} B");
        }
        let n = frame_lens.len() as u64;
        assert_eq!(self.sent(), (n, 0));
        n
    }
}
