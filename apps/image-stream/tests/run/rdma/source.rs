//! The emulated detector as a source of stacks.

use std::net::SocketAddr;
use std::time::Duration;

use pollux_emulator::images::config::ImagesConfig;
use pollux_emulator::images::link::{Connections, PacketLink as _, RdmaLink, RdmaOptions};
use pollux_emulator::images::source::{ImageSource, ImagesReport};
use pollux_emulator::images::stack::Stack;
use pollux_emulator::images::synthesis::Synthesis;
use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::{Port, PortConfig, Registry, Started, StartedPort, TscClock};

use crate::capture::Capture;

/// Long enough for any machine.
const LONG: Duration = Duration::from_mins(1);

/// A detector at the socket `s`.
pub(super) struct Source {
    spec: String,
    waits: bool,
}

type Running = (
    Port<Started>,
    ImageSource<RdmaLink, TscClock>,
    Connections,
    StopFlag,
);

impl Source {
    /// `peer` is the other end; with `waits` no stack is lost.
    pub(super) fn new(capture: &Capture, peer: &str, waits: bool) -> Self {
        let path = |name| capture.path(name).display().to_string();
        let spec = format!("unix:{},peer={}", path("s"), path(peer));
        Self { spec, waits }
    }

    fn start(&self, synthesis: &Synthesis, config: &ImagesConfig, to: SocketAddr) -> Running {
        let stop = StopFlag::new();
        let stack = Stack::synthetic(synthesis, &stop).unwrap();
        let pool = Mempool::new(PoolConfig {
            buffers: 2048,
            data_room: 5120,
            ..PoolConfig::default()
        });
        let pool = pool.unwrap();
        let port = Registry::builtin().open(&self.spec).unwrap();
        let offered = port.capabilities();
        let port = port.configure(PortConfig::new(pool.clone())).unwrap();
        let StartedPort {
            port,
            mut rx,
            mut tx,
        } = port.start().unwrap();
        let queues = (rx.pop().unwrap(), tx.pop().unwrap());
        let options = RdmaOptions {
            to,
            waits: self.waits,
            patience: LONG,
            stop: stop.clone(),
        };
        let cache = pool.cache(256).unwrap();
        let connected = RdmaLink::connect(config, &stack, &offered, queues, cache, &options);
        let (link, connections) = connected.unwrap();
        let source = ImageSource::new(config, stack, link, TscClock::get(), stop.clone());
        (port, source, connections, stop)
    }

    /// Sends all frames.
    pub(super) fn send(&mut self, config: &ImagesConfig, to: SocketAddr) -> ImagesReport {
        let synthesis = Synthesis::new(config).unwrap();
        let (port, mut source, connections, _) = self.start(&synthesis, config, to);
        let report = source.run();
        let (tx, rx) = source.into_link().into_queues();
        port.stop(rx, tx).unwrap();
        drop(connections);
        report
    }

    /// Sends until the receiver is gone, which `kill` sees to.
    pub(super) fn send_until_gone(
        &mut self,
        synthesis: &Synthesis,
        config: &ImagesConfig,
        to: SocketAddr,
        kill: impl FnOnce(),
    ) -> ImagesReport {
        let (port, mut source, connections, stop) = self.start(synthesis, config, to);
        assert!(connections.are_open());
        let from = std::time::Instant::now();
        while source.link().stacks().is_none_or(|stacks| stacks.taken < 3) {
            assert!(source.poll() && from.elapsed() < LONG);
        }
        kill();
        while connections.are_open() {
            assert!(source.poll() && from.elapsed() < LONG);
        }
        stop.stop();
        let report = source.run();
        let (tx, rx) = source.into_link().into_queues();
        port.stop(rx, tx).unwrap();
        report
    }
}
