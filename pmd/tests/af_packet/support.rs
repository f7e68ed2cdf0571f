//! Ports in a namespace, and frames by hand.

use std::time::{Duration, Instant};

use pollux_mempool::{Burst, Mempool, PoolCache, PoolConfig};
use pollux_pmd::{
    Balance, Cause, Ledger, PortConfig, PortError, Registry, RxState, StartedPort, Tally,
};

use crate::net::{IP_A, IP_B, MAC_A, MAC_B, Net};

/// No wait in these tests is longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

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
        net: &Net,
        namespace: &str,
        spec: &str,
        rx_queues: u16,
        buffers: usize,
    ) -> Result<Self, PortError> {
        let pool = Mempool::new(PoolConfig {
            buffers,
            ..PoolConfig::default()
        })
        .unwrap();
        let config = PortConfig {
            rx_queues,
            ring: 64,
            ..PortConfig::new(pool.clone())
        };
        let started = net.within(namespace, || {
            Registry::builtin().open(spec)?.configure(config)?.start()
        })?;
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

    pub(crate) fn open(net: &Net, spec: &str) -> Self {
        Self::try_open(net, &net.a, spec, 1, 1024).unwrap()
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

    /// Stops the port; the ledger balances and all buffers are back.
    pub(crate) fn stop(self) -> Balance {
        let StartedPort { port, rx, tx } = self.started;
        port.stop(rx, tx).unwrap();
        drop(self.cache);
        assert_eq!(self.pool.available(), self.pool.buffers());
        self.ledger.check().unwrap()
    }
}

fn checksum(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

pub(crate) fn payload(len: usize, seed: u8) -> Vec<u8> {
    (0..len)
        .map(|i| (i as u8).wrapping_mul(37).wrapping_add(seed))
        .collect()
}

/// A UDP datagram from the port's end, port 9000, to the kernel's end; no UDP checksum.
pub(crate) fn udp_frame(dst_port: u16, payload: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x45, 0];
    ip.extend((28 + payload.len() as u16).to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    ip.extend(IP_A);
    ip.extend(IP_B);
    let sum = checksum(&ip).to_be_bytes();
    ip[10..12].copy_from_slice(&sum);
    let mut frame = [&MAC_B[..], &MAC_A, &[8, 0], &ip].concat();
    frame.extend(9000_u16.to_be_bytes());
    frame.extend(dst_port.to_be_bytes());
    frame.extend((8 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    frame
}

/// Checks a datagram that the kernel's end has sent to port 9000, byte by byte but for the
/// identification and the checksum that the kernel left to a NIC.
pub(crate) fn assert_udp(frame: &[u8], src_port: u16, payload: &[u8]) {
    assert_eq!(frame.len(), 42 + payload.len());
    assert_eq!(frame[..14], [&MAC_A[..], &MAC_B, &[8, 0]].concat());
    assert_eq!(frame[14..16], [0x45, 0]);
    assert_eq!(frame[16..18], (28 + payload.len() as u16).to_be_bytes());
    assert_eq!(checksum(&frame[14..34]), 0, "IPv4 header");
    assert_eq!(frame[26..34], [IP_B, IP_A].concat());
    assert_eq!(frame[34..36], src_port.to_be_bytes());
    assert_eq!(frame[36..38], 9000_u16.to_be_bytes());
    assert_eq!(frame[38..40], (8 + payload.len() as u16).to_be_bytes());
    assert_eq!(&frame[42..], payload);
}
