//! Ports as programs take them from the command line, and what went through them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pollux_pmd::ledger::SentView;
use pollux_pmd::{
    Port, PortError, Probed, Registry, RxQueue, Started, StartedPort, TallyView, TxQueue,
};
use serde::Serialize;

/// The forms of a port spec, for `--help`.
#[must_use]
pub fn help(registry: &Registry) -> String {
    let forms = registry.usage().map(|line| format!("\n  {line}"));
    format!("Port specs:{}", forms.collect::<String>())
}

/// Opens all ports, or none. A spec that is wrong is reported before one that cannot be opened,
/// so that a typo is never answered with something to repair.
///
/// # Errors
/// The first spec that is wrong, or else the first port that cannot be opened.
pub fn open<S: AsRef<str>>(
    registry: &Registry,
    specs: &[S],
) -> Result<Vec<Port<Probed>>, PortError> {
    for spec in specs {
        registry.check(spec.as_ref())?;
    }
    specs
        .iter()
        .map(|spec| registry.open(spec.as_ref()))
        .collect()
}

/// Gives every port its queues back. All are stopped, whatever one of them says.
///
/// # Errors
/// What the first port with something to say has said.
pub fn stop(
    ports: Vec<Port<Started>>,
    mut rx: Vec<RxQueue>,
    mut tx: Vec<TxQueue>,
) -> Result<(), PortError> {
    let mut result = Ok(());
    for port in ports {
        let id = port.id();
        let rx = rx.extract_if(.., |queue| queue.port() == id).collect();
        let tx = tx.extract_if(.., |queue| queue.port() == id).collect();
        result = result.and(port.stop(rx, tx).map(drop));
    }
    result
}

/// The counters of a port, readable while its queues are with their loops and after that, and its
/// link as housekeeping has seen it last.
#[derive(Clone)]
pub struct PortView {
    spec: String,
    rx: Vec<TallyView>,
    tx: Vec<SentView>,
    up: Arc<AtomicBool>,
}

/// What went through a port.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Traffic {
    /// The port.
    pub spec: String,
    /// Frames that reached the port, those that it dropped itself included.
    pub rx_packets: u64,
    /// Their bytes, without preamble and frame check sequence.
    pub rx_bytes: u64,
    /// Frames that were sent.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames that the port took, and its device refused.
    pub tx_errors: u64,
}

impl PortView {
    /// Views on the queues of a started port.
    #[must_use]
    pub fn new(started: &StartedPort) -> Self {
        Self::of(&started.port, &started.rx, &started.tx)
    }

    /// Views on some of a port's queues.
    #[must_use]
    pub fn of(port: &Port<Started>, rx: &[RxQueue], tx: &[TxQueue]) -> Self {
        Self {
            spec: port.spec().into(),
            rx: rx.iter().map(RxQueue::tally).collect(),
            tx: tx.iter().map(TxQueue::sent).collect(),
            up: Arc::new(port.link().up.into()),
        }
    }

    /// The port.
    #[must_use]
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// What was sent, by queue.
    #[must_use]
    pub fn sent(&self) -> &[SentView] {
        &self.tx
    }

    /// Looks at the link again. May enter the kernel.
    pub fn look(&self, port: &Port<Started>) {
        // Relaxed, as the load: it is told of the link alone.
        self.up.store(port.link().up, Ordering::Relaxed);
    }

    /// Whether the link was up at the last look.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    /// What went through it so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let mut traffic = Traffic {
            spec: self.spec.clone(),
            ..Traffic::default()
        };
        for balance in self.rx.iter().map(TallyView::balance) {
            traffic.rx_packets += balance.from_wire;
            traffic.rx_bytes += balance.bytes;
        }
        for sent in &self.tx {
            traffic.tx_packets += sent.packets();
            traffic.tx_bytes += sent.bytes();
            traffic.tx_errors += sent.errors();
        }
        traffic
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use pollux_pmd::PortConfig;
    use pollux_pmd::mempool::{Burst, Mempool, PoolConfig};

    #[test]
    fn ports_get_their_own_queues_back_and_keep_their_counts() {
        let pool = Mempool::new(PoolConfig {
            buffers: 64,
            ..PoolConfig::default()
        });
        let (pool, registry) = (pool.unwrap(), Registry::builtin());
        let (mut ports, mut rx, mut tx, mut views) = (vec![], vec![], vec![], vec![]);
        for port in open(&registry, &["loopback", "null"]).unwrap() {
            let port = port.configure(PortConfig::new(pool.clone())).unwrap();
            let started = port.start().unwrap();
            views.push(PortView::new(&started));
            ports.push(started.port);
            rx.extend(started.rx);
            tx.extend(started.tx);
        }
        let (mut cache, mut burst) = (pool.cache(16).unwrap(), Burst::<8>::new());
        cache.alloc_burst(&mut burst, 8);
        burst.iter_mut().for_each(|mbuf| {
            mbuf.append(60).unwrap();
        });
        assert_eq!(tx[0].tx(&mut cache, &mut burst), 8);
        rx.reverse();
        stop(ports, rx, tx).unwrap();
        let traffic = views[0].traffic();
        assert_eq!((traffic.tx_packets, traffic.tx_bytes), (8, 480));
        assert_eq!((traffic.rx_packets, traffic.tx_errors), (8, 0));
        assert_eq!(views[1].traffic().tx_packets, 0);
    }

    #[test]
    fn a_typo_comes_before_a_missing_file() {
        let error = open(&Registry::builtin(), &["pcap:rx=/nowhere", "nul"]).err();
        assert!(error.unwrap().is_usage());
    }
}
