//! Ports and queues: `Port<Probed>` -> `configure` -> `Port<Configured>` -> `start` ->
//! `Port<Started>` with its queues, and back.
//!
//! Queues are values. Each is owned by the poll loop that polls it, and [`Port::stop`] requires all
//! of them back, so a port cannot be reconfigured while a loop runs.

pub(crate) mod config;
pub(crate) mod error;
mod queue;
pub(crate) mod queue_config;
pub(crate) mod state;

use std::sync::atomic::{AtomicU16, Ordering};

use crate::arrival::{ArrivalTime, Waited};
use crate::clock::TscClock;
use crate::driver::flow::FlowRule;
use crate::driver::{Capabilities, Driver, Link, Origin, Statistics};
use crate::ledger::{Sent, Tally};

pub use config::PortConfig;
pub use error::PortError;
pub use error::bus_error;
use queue::Run;
pub use queue::{RxQueue, TxQueue};
pub use queue_config::{QueueConfig, QueueSettings, QueueSupport};
pub use state::{RxState, SharedRxState};

/// State: opened; its capabilities are known, nothing is set up.
#[derive(Debug)]
pub struct Probed(());

/// State: set up, not running.
#[derive(Debug)]
pub struct Configured(PortConfig);

/// State: running; poll loops own its queues.
#[derive(Debug)]
pub struct Started {
    config: PortConfig,
    run: Run,
    /// Number of queues that the start returned.
    queues: usize,
}

/// A port: a NIC, a capture file, or any other device with a driver.
pub struct Port<S> {
    driver: Box<dyn Driver>,
    id: u16,
    spec: String,
    state: S,
}

/// A started port and its queues.
pub struct StartedPort {
    /// The port: link state, and [`Port::stop`].
    pub port: Port<Started>,
    /// The receive queues, in order.
    pub rx: Vec<RxQueue>,
    /// The transmit queues, in order.
    pub tx: Vec<TxQueue>,
}

impl<S> Port<S> {
    /// Number of the port in this process; received frames carry it in their metadata.
    #[must_use]
    pub fn id(&self) -> u16 {
        self.id
    }

    /// The spec that the port was opened with.
    #[must_use]
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// Capabilities of the device.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.driver.capabilities()
    }

    /// Number of receive queues over which the device distributes frames, independent of the
    /// configuration. A port with fewer does not receive all frames. 1 where the device distributes
    /// frames to the configured queues alone.
    #[must_use]
    pub fn spread(&self) -> u16 {
        self.driver.spread().max(1)
    }

    /// Current link state, as far as the device reports it. This and
    /// [`statistics`](Self::statistics) may enter the kernel: call them from a housekeeping thread,
    /// periodically.
    #[must_use]
    pub fn link(&self) -> Link {
        self.driver.link()
    }

    /// Counters of the device or the kernel, by name.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.driver.statistics()
    }

    /// Contents of the device's registers, one line each, for diagnosis. Empty without registers.
    #[must_use]
    pub fn registers(&self) -> String {
        self.driver.registers()
    }

    fn with_state<T>(self, state: T) -> Port<T> {
        Port {
            driver: self.driver,
            id: self.id,
            spec: self.spec,
            state,
        }
    }
}

impl Port<Probed> {
    /// Creates a port from an opened driver. Programs usually open ports by spec, through the
    /// [`Registry`](crate::Registry).
    #[must_use]
    pub fn new(spec: impl Into<String>, driver: Box<dyn Driver>) -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        Self {
            driver,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            spec: spec.into(),
            state: Probed(()),
        }
    }

    /// Checks the configuration against the device's capabilities. Does not touch the device.
    ///
    /// # Errors
    /// [`PortError::Unsupported`] names what was requested and what the device offers.
    pub fn configure(self, config: PortConfig) -> Result<Port<Configured>, PortError> {
        let offered = self.driver.capabilities();
        let refuse = |asked: String, offered: String| {
            Err(PortError::Unsupported {
                port: self.spec.clone(),
                asked,
                offered,
            })
        };
        if config.rx_queues > offered.max_rx_queues {
            return refuse(
                format!("{} receive queues", config.rx_queues),
                format!("at most {}", offered.max_rx_queues),
            );
        }
        if config.tx_queues > offered.max_tx_queues {
            return refuse(
                format!("{} transmit queues", config.tx_queues),
                format!("at most {}", offered.max_tx_queues),
            );
        }
        if config.rx_queues == 0 && config.tx_queues == 0 {
            return refuse(
                "no queue at all".into(),
                "queues in at least one direction".into(),
            );
        }
        let rings = std::iter::once(config.ring).chain(config.rings());
        if let Some(ring) = { rings }.find(|ring| !(2..=1 << 20).contains(ring)) {
            return refuse(format!("a ring of {ring}"), "rings of 2 to 1048576".into());
        }
        let (rx, tx) = (config.rx_queues, config.tx_queues);
        let support = self.driver.queue_support();
        if let Some((asked, offered)) = config.queues.refusal(rx, tx, support) {
            return refuse(asked, offered);
        }
        if let Some((asked, offered)) = config.rss.refusal(rx, self.driver.rss_support()) {
            return refuse(asked, offered);
        }
        if !config.flow_rules.is_empty() && !self.driver.takes_flow_rules() {
            return refuse("flow rules".into(), "none".into());
        }
        if let Some((asked, offered)) = FlowRule::refusal(&config.flow_rules, rx) {
            return refuse(asked, offered);
        }
        if config.checksum_offload && !offered.checksum_offload {
            return refuse(
                "checksum offload".into(),
                "none: complete the checksums before sending".into(),
            );
        }
        self.driver.validate(&config)?;
        Ok(self.with_state(Configured(config)))
    }
}

impl Port<Configured> {
    /// Starts the device and returns its queues.
    ///
    /// # Errors
    /// The refusal of the device or the system. The port and all its resources are then released.
    pub fn start(mut self) -> Result<StartedPort, PortError> {
        let config = &self.state.0;
        let queues = self.driver.start(config, self.id)?;
        debug_assert_eq!(queues.rx.len(), usize::from(config.rx_queues));
        debug_assert_eq!(queues.tx.len(), usize::from(config.tx_queues));
        let run = Run::next();
        let given = queues.rx.len() + queues.tx.len();
        let clock = TscClock::get();
        let rx = (0..).zip(queues.rx).map(|(queue, driver)| RxQueue {
            waited: (driver.arrival_time() == ArrivalTime::Poll)
                .then(|| Waited::new(&clock, config.rx_ring(queue))),
            driver,
            run,
            tally: Tally::new(),
            origin: Origin::new(self.id, queue),
            core: config.queues.rx(queue).core,
        });
        let tx = (0..).zip(queues.tx).map(|(queue, driver)| TxQueue {
            driver,
            run,
            sent: Sent::new(),
            port: self.id,
            queue,
            core: config.queues.tx(queue).core,
        });
        let (rx, tx) = (rx.collect(), tx.collect());
        let Configured(config) = self.state;
        let port = Port {
            driver: self.driver,
            id: self.id,
            spec: self.spec,
            state: Started {
                config,
                run,
                queues: given,
            },
        };
        Ok(StartedPort { port, rx, tx })
    }

    /// Discards the configuration, so that another can be made.
    #[must_use]
    pub fn deconfigure(self) -> Port<Probed> {
        self.with_state(Probed(()))
    }
}

impl Port<Started> {
    /// Receive queues of the device, by the device's numbers, that receive frames of the port's
    /// kind and that no port of this process polls.
    #[must_use]
    pub fn unpolled(&self) -> Vec<u16> {
        self.driver.unpolled()
    }

    /// Stops the device. Takes back all queues of the port; frames that are still in a receive
    /// queue count as [`Cause::Aborted`](crate::Cause::Aborted).
    ///
    /// # Errors
    /// [`PortError::WrongQueues`] if queues are missing or belong to another port; else a failure
    /// of the device while it stopped (a file that could not be completed, for example).
    pub fn stop(
        mut self,
        rx: Vec<RxQueue>,
        tx: Vec<TxQueue>,
    ) -> Result<Port<Configured>, PortError> {
        let Started {
            queues: expected,
            run,
            ..
        } = self.state;
        let got =
            rx.iter().filter(|q| q.run == run).count() + tx.iter().filter(|q| q.run == run).count();
        let given = rx.len() + tx.len();
        if got != expected || given != expected {
            return Err(PortError::WrongQueues {
                port: self.spec,
                expected,
                got,
                given,
            });
        }
        let mut tx: Vec<_> = tx
            .into_iter()
            .map(|queue| (queue.driver, queue.sent))
            .collect();
        for (driver, sent) in &mut tx {
            driver.finish(sent);
        }
        self.driver.end_receiving();
        let mut rx: Vec<_> = rx
            .into_iter()
            .map(|queue| (queue.driver, queue.tally))
            .collect();
        for (driver, tally) in &mut rx {
            driver.finish(tally);
        }
        drop((rx, tx));
        self.driver.stop()?;
        let Started { config, .. } = self.state;
        Ok(Port {
            driver: self.driver,
            id: self.id,
            spec: self.spec,
            state: Configured(config),
        })
    }
}
