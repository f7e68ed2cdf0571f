//! Ports and queues: `Port<Probed>` -> `configure` -> `Port<Configured>` -> `start` ->
//! `Port<Started>` with its queues, and back.
//!
//! Queues are values: a poll loop owns the ones that it polls, nobody else can reach them, and
//! [`Port::stop`] wants all of them back, so a port cannot be reconfigured under a loop.

mod config;
mod error;
mod queue;
mod state;

use std::sync::atomic::{AtomicU16, Ordering};

use crate::arrival::{ArrivalTime, Waited};
use crate::clock::TscClock;
use crate::driver::{Capabilities, Driver, Link, Origin, Statistics};
use crate::ledger::{Sent, Tally};

pub use config::PortConfig;
pub use error::PortError;
pub(crate) use error::bus_error;
use queue::Run;
pub use queue::{RxQueue, TxQueue};
pub use state::RxState;

/// State: opened; its capabilities are known, nothing is set up.
#[derive(Debug)]
pub struct Probed(());

/// State: set up, not running.
#[derive(Debug)]
pub struct Configured(PortConfig);

/// State: running; its queues are with their poll loops.
#[derive(Debug)]
pub struct Started {
    config: PortConfig,
    run: Run,
    /// Queues that were given out.
    queues: usize,
}

/// A NIC port, a capture file, or whatever a driver makes look like one.
pub struct Port<S> {
    driver: Box<dyn Driver>,
    id: u16,
    spec: String,
    state: S,
}

/// A started port and its queues.
pub struct StartedPort {
    /// The port, for link state and [`Port::stop`].
    pub port: Port<Started>,
    /// Its receive queues, in order.
    pub rx: Vec<RxQueue>,
    /// Its transmit queues, in order.
    pub tx: Vec<TxQueue>,
}

impl<S> Port<S> {
    /// Number of the port in this process, as in the metadata of the frames that it receives.
    #[must_use]
    pub fn id(&self) -> u16 {
        self.id
    }

    /// The spec that the port was opened with.
    #[must_use]
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// What the device offers.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.driver.capabilities()
    }

    /// Receive queues that the port needs to get all frames: the device shares frames out over so
    /// many, however many are configured. 1 where it shares them out to the configured ones alone.
    #[must_use]
    pub fn spread(&self) -> u16 {
        self.driver.spread().max(1)
    }

    /// The link now, as far as the device can tell. May enter the kernel, as may
    /// [`statistics`](Self::statistics): both are for a housekeeping thread, which sees a change
    /// when it looks again.
    #[must_use]
    pub fn link(&self) -> Link {
        self.driver.link()
    }

    /// What the device, or the kernel, counts by itself, by name.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.driver.statistics()
    }

    /// What the device's registers hold, a line for each, for people who look for a fault. Empty
    /// without registers.
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
    /// Wraps an opened driver. Programs open ports by spec, through the
    /// [`Registry`](crate::Registry); this is for a device that was made by hand.
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

    /// Checks the configuration against what the device offers. The device is not touched.
    ///
    /// # Errors
    /// [`PortError::Unsupported`] names what was asked and what there is.
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
        if !(2..=1 << 20).contains(&config.ring) {
            return refuse(
                format!("a ring of {}", config.ring),
                "rings of 2 to 1048576".into(),
            );
        }
        if config.checksum_offload && !offered.checksum_offload {
            return refuse(
                "that it finishes the checksums of frames".into(),
                "to send them as they are: finish them before".into(),
            );
        }
        self.driver.validate(&config)?;
        Ok(self.with_state(Configured(config)))
    }
}

impl Port<Configured> {
    /// Starts the device and hands out its queues.
    ///
    /// # Errors
    /// What the device or the system refused; the port is gone then, and so is all it had opened.
    pub fn start(mut self) -> Result<StartedPort, PortError> {
        let config = &self.state.0;
        let queues = self.driver.start(config, self.id)?;
        debug_assert_eq!(queues.rx.len(), usize::from(config.rx_queues));
        debug_assert_eq!(queues.tx.len(), usize::from(config.tx_queues));
        let run = Run::next();
        let given = queues.rx.len() + queues.tx.len();
        let (clock, ring) = (TscClock::get(), config.ring);
        let rx = (0..).zip(queues.rx).map(|(queue, driver)| RxQueue {
            waited: (driver.arrival_time() == ArrivalTime::Poll).then(|| Waited::new(&clock, ring)),
            driver,
            run,
            tally: Tally::new(),
            origin: Origin::new(self.id, queue),
        });
        let tx = (0..).zip(queues.tx).map(|(queue, driver)| TxQueue {
            driver,
            run,
            sent: Sent::new(),
            port: self.id,
            queue,
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

    /// Gives up the configuration, to make another.
    #[must_use]
    pub fn deconfigure(self) -> Port<Probed> {
        self.with_state(Probed(()))
    }
}

impl Port<Started> {
    /// Receive queues of the device, by its own numbers, whose frames no port of this process gets.
    #[must_use]
    pub fn unpolled(&self) -> Vec<u16> {
        self.driver.unpolled()
    }

    /// Stops the device. Takes all the port's queues back; frames that are still in a receive
    /// queue are counted as [`Cause::Aborted`](crate::Cause::Aborted).
    ///
    /// # Errors
    /// [`PortError::WrongQueues`] if queues are missing or of another port, or what the device
    /// reported while it stopped (a file that could not be completed, say).
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
