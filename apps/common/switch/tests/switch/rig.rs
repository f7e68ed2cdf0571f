//! Hosts at the ports of a switch: each is the other end of a link inside the process.

use pollux_pmd::mempool::time::Ns;
use pollux_pmd::mempool::{Burst, Mempool, PoolCache};
use pollux_pmd::{
    Cause, Ledger, ManualClock, Port, PortConfig, Registry, RxQueue, Started, TxQueue,
};
use pollux_pmd_testkit::ports::pool;
use pollux_switch::{Switch, SwitchConfig, SwitchPort, SwitchReport, SwitchView};

/// End of a link that a test uses.
struct Host {
    port: Port<Started>,
    rx: RxQueue,
    tx: TxQueue,
}

/// A switch with hosts.
pub(crate) struct Rig {
    hosts: Vec<Host>,
    pub(crate) switch: Switch<ManualClock>,
    pub(crate) clock: ManualClock,
    pub(crate) pool: Mempool,
    pub(crate) cache: PoolCache,
    pub(crate) view: SwitchView,
    pub(crate) ledger: Ledger,
}

/// What a run has left.
pub(crate) struct Ended {
    pub(crate) report: SwitchReport,
    pub(crate) balance: pollux_pmd::Balance,
}

impl Ended {
    /// Received frames that were dropped for a cause of this name.
    pub(crate) fn dropped(&self, name: &str) -> u64 {
        let cause = Cause::all().find(|cause| cause.name() == name).unwrap();
        self.balance.dropped_for(cause)
    }
}

impl Rig {
    pub(crate) fn new(ports: usize, config: &SwitchConfig) -> Self {
        Self::with_ring(ports, config, 4096)
    }

    /// Links of `ring` frames each way.
    pub(crate) fn with_ring(ports: usize, config: &SwitchConfig, ring: usize) -> Self {
        let pool = pool(1024 + 4 * ring, 2048);
        let clock = ManualClock::new();
        clock.advance(Ns(1_000_000));
        let mut ledger = Ledger::new();
        let (mut hosts, mut ends) = (Vec::new(), Vec::new());
        for n in 0..ports {
            let config = PortConfig {
                rx_queues: 2,
                tx_queues: 2,
                ring,
                ..PortConfig::new(pool.clone())
            };
            let port = Registry::builtin().open("loopback").unwrap();
            let mut started = port.configure(config).unwrap().start().unwrap();
            // What one end sends on its queue, the other one receives.
            let rx = started.rx.remove(0);
            ledger.add(format!("port {n}"), rx.tally());
            ends.push(SwitchPort {
                name: n.to_string(),
                rx: vec![rx],
                tx: Some(started.tx.remove(1)),
            });
            hosts.push(Host {
                port: started.port,
                rx: started.rx.remove(0),
                tx: started.tx.remove(0),
            });
        }
        let switch = Switch::with_clock(ends, config, clock.clone()).unwrap();
        switch.add_to(&mut ledger);
        let view = switch.view();
        let cache = pool.cache(512).unwrap();
        Self {
            hosts,
            switch,
            clock,
            pool,
            cache,
            view,
            ledger,
        }
    }

    /// A host sends a frame; the switch does not run yet.
    pub(crate) fn send(&mut self, host: usize, frame: &[u8]) {
        let mut burst = Burst::<1>::new();
        burst.push(self.cache.alloc_from(frame).unwrap()).unwrap();
        assert_eq!(self.hosts[host].tx.tx(&mut self.cache, &mut burst), 1);
    }

    /// An iteration of the switch, after `ns`.
    pub(crate) fn poll_after(&mut self, ns: u64) {
        self.clock.advance(Ns(ns));
        self.switch.poll(&mut self.cache);
    }

    /// The frames that have reached a host.
    pub(crate) fn received(&mut self, host: usize) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let mut burst = Burst::<32>::new();
        while self.hosts[host].rx.rx(&mut self.cache, &mut burst) > 0 {
            burst.take_all(|frame| {
                frames.push(frame.segments().collect::<Vec<_>>().concat());
                self.cache.free(frame);
            });
        }
        frames
    }

    /// The hosts that a frame reaches, which one of them sends now.
    pub(crate) fn reached(&mut self, host: usize, frame: &[u8]) -> Vec<usize> {
        self.send(host, frame);
        self.poll_after(1);
        let mut reached = Vec::new();
        for at in 0..self.hosts.len() {
            let frames = self.received(at);
            assert!(frames.len() <= 1 && frames.iter().all(|got| got == frame));
            reached.extend(frames.iter().map(|_| at));
        }
        reached
    }

    /// Ends the switch; every frame is accounted for, and every buffer is free again.
    pub(crate) fn end(mut self) -> Ended {
        for host in 0..self.hosts.len() {
            self.received(host);
        }
        let ends = self.switch.finish(&mut self.cache);
        let ledger = self.ledger;
        for (host, end) in self.hosts.into_iter().zip(ends) {
            let rx = end.rx.into_iter().chain([host.rx]).collect();
            host.port.stop(rx, vec![host.tx, end.tx.unwrap()]).unwrap();
        }
        let report = self.view.report();
        assert!(report.is_balanced(), "{report}");
        let balance = ledger.check().unwrap();
        drop(self.cache);
        assert_eq!(self.pool.available(), self.pool.buffers());
        Ended { report, balance }
    }
}

/// A host's address.
pub(crate) fn mac(n: u8) -> [u8; 6] {
    [0x02, 0, 0, 0, 1, n]
}

/// A frame of `len` bytes.
pub(crate) fn frame(dst: [u8; 6], src: [u8; 6], len: usize) -> Vec<u8> {
    let mut frame = [&dst[..], &src, &[0x88, 0xb5]].concat();
    frame.extend((0..len - frame.len()).map(|n| n as u8));
    frame
}
