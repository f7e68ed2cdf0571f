//! Ports and queues: `Port<Probed>` -> `configure` -> `Port<Configured>` -> `start` ->
//! `Port<Started>` with its queues, and back.
//!
//! Queues are values: a poll loop owns the ones that it polls, nobody else can reach them, and
//! [`Port::stop`] wants all of them back, so a port cannot be reconfigured under a loop.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use pollux_mempool::time::Tsc;
use pollux_mempool::{Burst, Mempool, PoolCache};

use crate::arrival::{ArrivalTime, Waited};
use crate::bus::BusError;
use crate::clock::TscClock;
use crate::driver::{Capabilities, Driver, Link, Origin, RxDriver, Statistics, TxDriver};
use crate::ledger::{Sent, SentView, Tally, TallyView};
use crate::spec::SpecError;

/// Why a port cannot be opened, configured, started or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// The spec cannot be read.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// No driver of that name.
    #[error("no driver `{driver}`; there are: {known}")]
    UnknownDriver {
        /// The name asked for.
        driver: String,
        /// The names of all drivers.
        known: String,
    },
    /// The port has a device or another process write into packet memory, and no grant was made
    /// for that. Nothing was opened.
    #[error(
        "port {port}: it has a device or another process write into packet memory, which takes a \
         grant, and the program has made none: make one (`Registry::granting`, docs/soundness.md)"
    )]
    NoGrant {
        /// The port.
        port: String,
    },
    /// Something was asked that the device does not offer.
    #[error("port {port}: {asked} asked for, but the device offers {offered}")]
    Unsupported {
        /// The port.
        port: String,
        /// What was asked.
        asked: String,
        /// What there is.
        offered: String,
    },
    /// The system refused.
    #[error("port {port}: {what}: {error}{}", in_brackets(.hint))]
    System {
        /// The port.
        port: String,
        /// What was tried.
        what: String,
        /// What to do about it; may be empty.
        hint: String,
        /// The system's word. It is in the message, so it is no `source` to be printed again.
        error: std::io::Error,
    },
    /// The file or device holds something that cannot be used.
    #[error("port {port}: {what}")]
    Device {
        /// The port.
        port: String,
        /// What is wrong, and what to do about it.
        what: String,
    },
    /// The device could not be reached, or cannot do something.
    #[error("port {port}: {error}")]
    Bus {
        /// The port.
        port: String,
        /// What went wrong. It is in the message, so it is no `source` to be printed again.
        error: BusError,
    },
    /// The device left while the port was running.
    #[error(
        "port {port}: its device is gone: it was unplugged or deleted, or its owner wants it back; \
         start again when it is there"
    )]
    Gone {
        /// The port.
        port: String,
    },
    /// `stop` was not given all the port's queues, and only those.
    #[error(
        "port {port}: stop needs all {expected} queues that start gave out and no others, got \
         {got} of them among {given}"
    )]
    WrongQueues {
        /// The port.
        port: String,
        /// Queues that belong to the port.
        expected: usize,
        /// Queues of this port among those given.
        got: usize,
        /// Queues given.
        given: usize,
    },
}

impl PortError {
    /// Whether something was asked for that cannot be: a mistake of whoever asked, found before
    /// anything was opened. (Anything else was tried, and failed.)
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Spec(_)
                | Self::UnknownDriver { .. }
                | Self::NoGrant { .. }
                | Self::Unsupported { .. }
        )
    }
}

/// A hint behind a message, if there is one.
pub(crate) fn in_brackets(hint: &str) -> String {
    if hint.is_empty() {
        String::new()
    } else {
        format!(" ({hint})")
    }
}

/// What a port is to be set up with.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// Receive queues; 0 for a port that only sends.
    pub rx_queues: u16,
    /// Transmit queues; 0 for a port that only receives.
    pub tx_queues: u16,
    /// Descriptors or frames in each queue's ring.
    pub ring: usize,
    /// Pool that received frames are put in.
    pub pool: Mempool,
    /// Frames may leave a checksum to the device
    /// ([`Capabilities::checksum_offload`]). Where nobody asks for it nobody pays for it.
    pub checksum_offload: bool,
}

impl PortConfig {
    /// One queue each way, 1024 deep.
    #[must_use]
    pub fn new(pool: Mempool) -> Self {
        Self {
            rx_queues: 1,
            tx_queues: 1,
            ring: 1024,
            pool,
            checksum_offload: false,
        }
    }
}

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

/// One start of one port in this process. What belongs together has the same: numbers of ports are
/// for people, begin again after 65 536 of them, and pass through drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run(u64);

impl Run {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Relaxed: a number of its own, which orders nothing.
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
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

/// Whether a receive queue can still yield frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RxState {
    /// It can.
    Live,
    /// Its link is down at present.
    Down,
    /// Its recording has come to its end, for good.
    Exhausted,
    /// Its device has left, for good. (Of one that still works, but is wanted back by its owner,
    /// [`Link::gone`] tells.)
    Gone,
}

impl RxState {
    /// Whether nothing comes any more, whatever happens.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Exhausted | Self::Gone)
    }
}

/// A receive queue, owned by one poll loop.
pub struct RxQueue {
    driver: Box<dyn RxDriver>,
    run: Run,
    tally: Tally,
    origin: Origin,
    /// What charges its frames for gaps between polls, where nothing better is known.
    waited: Option<Waited>,
}

impl RxQueue {
    /// Adds frames that have arrived to the burst, as many as fit, and returns how many. Never
    /// waits. Buffers for drivers that copy are taken from `cache`.
    #[inline]
    pub fn rx<const N: usize>(&mut self, cache: &mut PoolCache, burst: &mut Burst<N>) -> usize {
        self.driver.rx(
            cache,
            &mut burst.as_mut(),
            &mut self.origin,
            &mut self.tally,
        )
    }

    /// As [`rx`](Self::rx), but takes no more than `n` frames.
    #[inline]
    pub fn rx_up_to<const N: usize>(
        &mut self,
        cache: &mut PoolCache,
        burst: &mut Burst<N>,
        n: usize,
    ) -> usize {
        self.driver.rx(
            cache,
            &mut burst.up_to(n),
            &mut self.origin,
            &mut self.tally,
        )
    }

    /// As [`rx_up_to`](Self::rx_up_to), for a loop that answers within a time: `now` is when its
    /// round began, on the clock. Where neither a device nor the kernel tells when frames
    /// [arrived](pollux_mempool::Mbuf::arrival), it is when the poll took them. If the queue has not been polled for
    /// more than 50 us, those that can have waited for so long are charged for it: their arrival is
    /// the last poll before. That is the earliest that it can have been; no frame looks fresher than
    /// it is. Poll a queue in this way always, or never.
    #[inline]
    pub fn rx_at<const N: usize>(
        &mut self,
        now: Tsc,
        cache: &mut PoolCache,
        burst: &mut Burst<N>,
        n: usize,
    ) -> usize {
        let before = burst.len();
        let asked = n.min(burst.free());
        let taken = self.rx_up_to(cache, burst, n);
        if let Some(waited) = &mut self.waited {
            waited.charge(now, asked, &mut burst[before..]);
        }
        taken
    }

    /// Where the [arrival](pollux_mempool::Mbuf::arrival) of its frames comes from.
    #[must_use]
    pub fn arrival_time(&self) -> ArrivalTime {
        self.driver.arrival_time()
    }

    /// Whether the queue can still yield frames. Cheap, but for the loop's idle rounds.
    #[must_use]
    pub fn state(&self) -> RxState {
        self.driver.state()
    }

    /// Reads counters that live outside the process (the kernel's drops) into the ledger. May
    /// enter the kernel: for housekeeping, not for each poll.
    pub fn sync_counters(&mut self) {
        self.driver.sync_counters(&mut self.tally);
    }

    /// What a loop can sleep on until frames come, if it [arms](Self::arm) the queue: a file that
    /// becomes readable, to be waited for by its edges ([`Idle`](crate::lcore::idle::Idle)), as
    /// only a poll of the queue makes that of a socket unreadable again. `None` if the device cannot
    /// wake anybody.
    #[must_use]
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.driver.event()
    }

    /// Has the device signal the [`event`](Self::event), once, when it has frames, or if some came
    /// since the last time. Poll once more after this, then sleep.
    pub fn arm(&mut self) {
        self.driver.arm();
    }

    /// Has the device leave the event alone.
    pub fn disarm(&mut self) {
        self.driver.disarm();
    }

    /// The ledger's view of this queue.
    #[must_use]
    pub fn tally(&self) -> TallyView {
        self.tally.view()
    }

    /// Port that the queue belongs to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.origin.port
    }

    /// Number of the queue on its port.
    #[must_use]
    pub fn queue(&self) -> u16 {
        self.origin.queue
    }
}

/// A transmit queue, owned by one poll loop.
pub struct TxQueue {
    driver: Box<dyn TxDriver>,
    run: Run,
    sent: Sent,
    port: u16,
    queue: u16,
}

impl TxQueue {
    /// Takes frames out of the front of the burst and sends them, as many as the device has room
    /// for; the rest stays with the caller. Returns how many were taken. Buffers that are done
    /// with go to `cache`.
    #[inline]
    pub fn tx<const N: usize>(&mut self, cache: &mut PoolCache, burst: &mut Burst<N>) -> usize {
        self.driver.tx(cache, &mut burst.as_mut(), &mut self.sent)
    }

    /// What the queue has sent.
    #[must_use]
    pub fn sent(&self) -> SentView {
        self.sent.view()
    }

    /// Port that the queue belongs to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Number of the queue on its port.
    #[must_use]
    pub fn queue(&self) -> u16 {
        self.queue
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    /// Programs print an error with all its sources behind it.
    #[test]
    fn the_system_s_word_is_told_once() {
        let error = PortError::System {
            port: "tap:x".into(),
            what: "cannot".into(),
            hint: "try again".into(),
            error: std::io::ErrorKind::TimedOut.into(),
        };
        assert_eq!(
            error.to_string(),
            "port tap:x: cannot: timed out (try again)"
        );
        assert!(error.source().is_none());
    }
}
