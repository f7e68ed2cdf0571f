//! A detector at one end of a loopback port, and all that arrives at the other end.

use pollux_emulator::images::config::ImagesConfig;
use pollux_emulator::images::link::PortLink;
use pollux_emulator::images::source::{ImageSource, ImagesReport};
use pollux_emulator::images::stack::Stack;
use pollux_emulator::images::synthesis::Synthesis;
use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{Burst, Mempool, PoolCache, PoolConfig};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::{
    Clock, ManualClock, Port, PortConfig, Registry, RxQueue, Started, StartedPort, TxQueue,
};

/// A clock of which each spin lasts a microsecond.
#[derive(Clone, Debug, Default)]
pub(crate) struct FastClock(pub(crate) ManualClock);

impl Clock for FastClock {
    fn now(&self) -> Tsc {
        self.0.now()
    }

    fn to_ns(&self, cycles: u64) -> Ns {
        self.0.to_ns(cycles)
    }

    fn to_cycles(&self, ns: Ns) -> u64 {
        self.0.to_cycles(ns)
    }

    fn relax(&self) {
        self.0.advance(Ns(1000));
    }
}

/// The synthetic stack of a configuration.
pub(crate) fn stack(config: &ImagesConfig) -> Stack {
    Stack::synthetic(&Synthesis::new(config).unwrap(), &StopFlag::new()).unwrap()
}

/// A configuration with little to compute.
pub(crate) fn small() -> ImagesConfig {
    let mut config = ImagesConfig {
        stack: 2,
        frames: 6,
        rate: 0.0,
        ..ImagesConfig::default()
    };
    config.pattern.peaks = 5;
    config
}

/// A loopback port for packets of any detector.
pub(crate) struct Bench {
    port: Port<Started>,
    pub(crate) pool: Mempool,
    rx: Vec<RxQueue>,
    pub(crate) cache: PoolCache,
    pub(crate) clock: FastClock,
    pub(crate) stop: StopFlag,
}

impl Bench {
    /// The receiving end, with the transmit queues of the other end.
    pub(crate) fn new(queues: u16, ring: usize) -> (Self, Vec<TxQueue>) {
        let pool = Mempool::new(PoolConfig {
            buffers: 2048,
            data_room: 8320,
            ..PoolConfig::default()
        })
        .unwrap();
        let config = PortConfig::new(pool.clone())
            .rx_queues(queues)
            .tx_queues(queues)
            .ring(ring);
        let port = Registry::builtin().open("loopback").unwrap();
        let StartedPort { port, rx, tx } = port.configure(config).unwrap().start().unwrap();
        let bench = Self {
            port,
            rx,
            cache: pool.cache(64).unwrap(),
            pool,
            clock: FastClock::default(),
            stop: StopFlag::new(),
        };
        (bench, tx)
    }

    /// A detector that sends to this end.
    pub(crate) fn source(
        &self,
        config: &ImagesConfig,
        stack: Stack,
        tx: Vec<TxQueue>,
    ) -> ImageSource<PortLink, FastClock> {
        let cache = self.pool.cache(64).unwrap();
        let link = PortLink::new(config, stack.layout(), tx, None, cache, false).unwrap();
        ImageSource::new(config, stack, link, self.clock.clone(), self.stop.clone())
    }

    /// Takes what has arrived: the queue and the bytes of each frame.
    pub(crate) fn receive(&mut self, mut seen: impl FnMut(u16, &[u8])) -> usize {
        let (mut burst, mut all) = (Burst::<32>::new(), 0);
        for rx in &mut self.rx {
            while rx.rx(&mut self.cache, &mut burst) > 0 {
                all += burst.len();
                for mbuf in burst.iter() {
                    seen(rx.queue(), mbuf.data());
                }
                self.cache.free_burst(&mut burst);
            }
        }
        all
    }

    /// Stops the port; no buffer may be missing then.
    pub(crate) fn stop(self, tx: Vec<TxQueue>) {
        drop(self.cache);
        self.port.stop(self.rx, tx).unwrap();
        assert_eq!(self.pool.available(), self.pool.buffers());
    }
}

/// Sends all frames of a configuration; the bytes of each packet, its queue and the report.
pub(crate) fn send_all(
    config: &ImagesConfig,
    stack: Stack,
    queues: u16,
) -> (Vec<(u16, Vec<u8>)>, ImagesReport) {
    let (mut bench, tx) = Bench::new(queues, 256);
    let mut source = bench.source(config, stack, tx);
    let mut frames = Vec::new();
    while source.poll() {
        bench.receive(|queue, bytes| frames.push((queue, bytes.to_vec())));
    }
    bench.receive(|queue, bytes| frames.push((queue, bytes.to_vec())));
    let report = source.report();
    bench.stop(source.into_link().into_queues().0);
    (frames, report)
}
