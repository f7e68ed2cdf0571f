//! Ports given on the command line, and their traffic counters.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pollux_pmd::driver::{Link, QueueList};
use pollux_pmd::ledger::SentView;
use pollux_pmd::{
    ArrivalTime, MemoryGrant, Port, PortError, Probed, Registry, RxQueue, Started, StartedPort,
    TallyView, TxQueue,
};
use serde::{Deserialize, Serialize};

/// Grant of packet memory to the devices and peers of a program's ports.
///
/// The operator names each of them, on the program's command line or in its configuration, and
/// thereby vouches for it (docs/operations.md).
fn grant() -> MemoryGrant {
    // SAFETY: a program opens only the devices and peers that its operator has named. The operator
    // has bound the device to the driver of this process alone, or runs the peer, and answers for
    // both, as docs/operations.md says.
    unsafe { MemoryGrant::new() }
}

/// Registry of the drivers that may open the operator's ports, including those whose device or peer
/// writes into packet memory.
#[must_use]
pub fn registry() -> Registry {
    Registry::builtin().granting(grant())
}

/// Forms of a port spec, for `--help`.
#[must_use]
pub fn help(registry: &Registry) -> String {
    let forms = registry.usage().map(|line| format!("\n  {line}"));
    format!("Port specs:{}", forms.collect::<String>())
}

/// Opens all ports, or none. A malformed spec is reported before a port that cannot be opened, so
/// that the answer to a typing error is never advice on a repair.
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

/// Number of receive queues of a port: the requested number, or else the number that receives all
/// frames of the device; at least one.
#[must_use]
pub fn rx_queues<S>(port: &Port<S>, asked: Option<u16>) -> u16 {
    asked.unwrap_or_else(|| port.spread()).max(1)
}

/// Returns the queues to their ports and stops all ports, whatever error one of them reports.
///
/// # Errors
/// What the first port with something to say has said; of one whose device is gone, that it is
/// ([`PortError::Gone`]).
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
        if port.link().gone {
            let port = port.spec().into();
            result = result.and(Err(PortError::Gone { port }));
        }
        result = result.and(port.stop(rx, tx).map(drop));
    }
    result
}

/// Counters of a port, readable while its queues belong to the loops and afterwards, and the link
/// state that housekeeping read last.
#[derive(Clone)]
pub struct PortView {
    spec: String,
    rx: Vec<TallyView>,
    tx: Vec<SentView>,
    up: Arc<AtomicBool>,
    unpolled: Arc<Mutex<Vec<u16>>>,
    arrival_time: Option<ArrivalTime>,
}

/// Traffic of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Spec of the port.
    pub spec: String,
    /// Frames that reached the port, including those that it dropped.
    pub rx_packets: u64,
    /// Bytes of those frames, without preamble and frame check sequence.
    pub rx_bytes: u64,
    /// Sent frames.
    pub tx_packets: u64,
    /// Sent bytes.
    pub tx_bytes: u64,
    /// Frames that the port accepted and its device refused.
    pub tx_errors: u64,
    /// Receive queues of the device that no receiver polls, by the device's numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpolled_queues: Vec<u16>,
}

impl Traffic {
    /// Describes the frames of the port that are not received; `None` if all are.
    #[must_use]
    pub fn unseen(&self) -> Option<String> {
        let queues = &self.unpolled_queues;
        (!queues.is_empty()).then(|| {
            format!(
                "{}: {} of its device's queues not received, {}; ask for more by --queues",
                self.spec,
                queues.len(),
                QueueList(queues)
            )
        })
    }
}

impl PortView {
    /// Views of the queues of a started port.
    #[must_use]
    pub fn new(started: &StartedPort) -> Self {
        Self::of(&started.port, &started.rx, &started.tx)
    }

    /// Views of some of a port's queues.
    #[must_use]
    pub fn of(port: &Port<Started>, rx: &[RxQueue], tx: &[TxQueue]) -> Self {
        Self {
            spec: port.spec().into(),
            rx: rx.iter().map(RxQueue::tally).collect(),
            tx: tx.iter().map(TxQueue::sent).collect(),
            up: Arc::new(port.link().up.into()),
            unpolled: Arc::new(port.unpolled().into()),
            arrival_time: rx.first().map(RxQueue::arrival_time),
        }
    }

    /// Origin of the arrival time of received frames; `None` for a port that does not receive.
    #[must_use]
    pub fn arrival_time(&self) -> Option<ArrivalTime> {
        self.arrival_time
    }

    /// Spec of the port.
    #[must_use]
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// Sent frames and bytes, by queue.
    #[must_use]
    pub fn sent(&self) -> &[SentView] {
        &self.tx
    }

    /// Reads the link state and the list of queues without receiver again. May enter the kernel.
    #[must_use]
    pub fn look(&self, port: &Port<Started>) -> Link {
        let link = port.link();
        // Relaxed, as the load: the flag carries the link state alone.
        self.up.store(link.up, Ordering::Relaxed);
        // Another port may have started to receive them.
        *self.unpolled.lock().unwrap_or_else(PoisonError::into_inner) = port.unpolled();
        link
    }

    /// Whether the link was up at the last check.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    /// Traffic so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let mut traffic = Traffic {
            spec: self.spec.clone(),
            unpolled_queues: self
                .unpolled
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
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
    use crate::metrics::{Page, Source, Watch};
    use pollux_pmd::PortConfig;
    use pollux_pmd::driver::{Capabilities, Driver, Queues, TxDriver};
    use pollux_pmd::ledger::Sent;
    use pollux_pmd::mempool::{Burst, BurstMut, Mempool, PoolCache, PoolConfig};
    use std::fmt;

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

    /// A removed device: its owner waits for its release.
    struct Left;

    impl Driver for Left {
        fn capabilities(&self) -> Capabilities {
            Registry::builtin().open("null").unwrap().capabilities()
        }

        fn start(&mut self, _: &PortConfig, _: u16) -> Result<Queues, PortError> {
            let tx: Vec<Box<dyn TxDriver>> = vec![Box::new(Self)];
            Ok(Queues { rx: vec![], tx })
        }

        fn link(&self) -> Link {
            Link {
                gone: true,
                ..Link::DOWN
            }
        }
    }

    impl TxDriver for Left {
        fn tx(&mut self, _: &mut PoolCache, _: &mut BurstMut<'_>, _: &mut Sent) -> usize {
            0
        }
    }

    struct Nothing;

    impl Source for Nothing {
        fn measure(&self, _: &mut Page<'_>) -> fmt::Result {
            Ok(())
        }
    }

    #[test]
    fn a_device_that_is_gone_ends_a_run_and_is_what_there_is_to_tell() {
        let pool = Mempool::new(PoolConfig {
            buffers: 64,
            ..PoolConfig::default()
        });
        let config = PortConfig {
            rx_queues: 0,
            ..PortConfig::new(pool.unwrap())
        };
        let here = Registry::builtin().open("null").unwrap();
        let ports = [here, Port::new("left", Box::new(Left))].map(|port| {
            let config = config.clone();
            port.configure(config).unwrap().start().unwrap()
        });
        let views = ports.each_ref().map(PortView::new);
        let mut watch = Watch::start(None, Nothing, &views, &[]).unwrap();
        let (mut started, mut tx) = (vec![], vec![]);
        for port in ports {
            started.push(port.port);
            tx.extend(port.tx);
        }
        while watch.keep(&started) {
            std::thread::yield_now();
        }
        assert!(views[0].is_up() && !views[1].is_up());
        let error = stop(started, vec![], tx).unwrap_err();
        assert!(matches!(&error, PortError::Gone { port } if port == "left"));
        assert!(!error.is_usage());
    }

    #[test]
    fn a_typo_comes_before_a_missing_file() {
        let error = open(&Registry::builtin(), &["pcap:rx=/nowhere", "nul"]).err();
        assert!(error.unwrap().is_usage());
    }
}
