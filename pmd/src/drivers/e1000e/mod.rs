//! Intel's 82574L, the NIC that its kernel driver and QEMU call e1000e: 1 Gb/s, two queues each
//! way. Sections are those of the Intel 82574 GbE Controller Family Datasheet, revision 3.4.
//!
//! | | | module |
//! | --- | --- | --- |
//! | registers | as a table | `registers.rs` |
//! | `Nic` | the device as a whole: reset, address, PHY, link, rest | `nic.rs` |
//! | setup | filters, RSS, rings, before frames can pass | `setup.rs` |
//! | `Rx`, `Tx` | the queues, and descriptors in memory, which others of Intel's NICs share | `intel/` |
//! | `RxQueue`, `TxQueue` | what the queues ask of this device | `queues.rs` |
//! | `Counters` | statistics | `counters.rs` |
//!
//! # The device is not trusted
//!
//! It may write its rings and the pool's region at any time, and its registers may say anything.
//! What was posted is known from shadows; a length that was not posted, or a frame that never
//! ends, costs that frame, which is counted as [`Cause::DeviceError`](crate::Cause::DeviceError).
//! Each wait for a register ends. Frames on their way that the device never reports are counted as
//! errors of the sender at the end.
//!
//! # Errata
//!
//! A start sets the bits that the device needs against unreliable PCIe completions
//! (`setup::set_required_bits`): the reset before it has cleared what the kernel's driver had set.
//! ASPM (L0s and L1) must be off for the device's link. That is done in configuration space, at both
//! ends of the link: the kernel's driver does it when it is bound, this one cannot.
//!
//! # A queue that is dropped
//!
//! Its buffers are in the port's quarantine until the device is proven to be at rest. The other
//! queues go on. A transmit queue is switched off (TARC). A receive queue has no switch of its own:
//! its flows go to the other, and what the device has for it already is lost in it, as are frames
//! without IP, which are always queue 0's. Once the ring of a dropped queue 0 is full of them, they
//! hold back all that comes behind them (section 7.1.11): poll queue 0 as long as the port runs.

mod counters;
mod nic;
mod queues;
#[doc(hidden)]
pub mod registers;
mod setup;

use std::sync::Arc;

use self::counters::{Counters, LOST};
use self::nic::Nic;
use self::queues::{RxQueue, TxQueue};
use self::registers::REGISTERS;
use super::intel::counters::Losses;
use super::intel::descriptors::{Extended, Format, Legacy, LegacyTx, MAX_RING, OffloadTx};
use super::intel::link::{Watched, rx_state};
use super::intel::memory::Memory;
use super::intel::rx::{Rx, RxParts};
use super::intel::tx::{Tx, TxParts};
use crate::bus::registers::Dump;
use crate::bus::{Device, Interrupts};
use crate::driver::filter::Filter;
use crate::driver::rss::{RSS_KEY, RSS_TABLE, Rss, RssSupport};
use crate::driver::{Capabilities, Driver, Link, Queues, RxDriver, Statistics, TxDriver};
use crate::drivers::intel;
use crate::grant::MemoryGrant;
use crate::net::MacAddr;
use crate::port::bus_error;
use crate::port::{PortConfig, PortError, QueueSupport, RxState, SharedRxState};
use crate::quarantine::Quarantine;
use crate::quarantine::quarantined;
use crate::spec::PortSpec;

/// The options that its specs have.
pub(crate) const OPTIONS: &[&str] = &[
    "mtu",
    "promisc",
    "unicast",
    "multicast",
    "descriptors",
    RSS_KEY.key,
    RSS_TABLE.key,
];

/// Most queues each way (section 7.1.8).
const QUEUES: u16 = 2;

/// Longest packet: what is left of the largest frame of 9234 bytes without header, a tag of a VLAN
/// and CRC.
const MAX_MTU: usize = 9212;

/// Bytes of an Ethernet header, and of a VLAN's tag.
const ETHERNET: usize = 14;
const TAG: usize = 4;

/// Looks at a device and takes it over.
///
/// # Errors
/// An option's value, or a device that cannot be had or does not answer.
pub fn open<D: Device>(
    device: Arc<D>,
    spec: &PortSpec,
    grant: MemoryGrant,
) -> Result<Box<dyn Driver>, PortError> {
    let mtu = spec.number("mtu", 68..=MAX_MTU)?.unwrap_or(1500);
    let filter = Filter::from_spec(spec)?;
    let rss = Rss::from_spec(spec)?;
    let stations = filter.unicast.len();
    if stations > setup::MOST_STATIONS {
        return Err(PortError::Unsupported {
            port: spec.to_string(),
            asked: format!("{stations} addresses beside its own"),
            offered: format!("{}, or promisc=on", setup::MOST_STATIONS),
        });
    }
    let words = [("extended", false), ("legacy", true)];
    let legacy = spec.choice("descriptors", words)?;
    let port = spec.to_string();
    let nic = Nic::new(device).map_err(bus_error(&port))?;
    // The previous owner may have left the device running, and with another address.
    let quarantine = Quarantine::new(port.clone());
    nic.stop(&quarantine).map_err(bus_error(&port))?;
    let mac = nic.mac().map_err(bus_error(&port))?;
    Ok(Box::new(E1000e {
        nic,
        port,
        mac,
        mtu,
        filter,
        rss,
        legacy,
        counters: Arc::new(Counters::new()),
        link: Watched::new(),
        state: SharedRxState::default(),
        interrupts: None,
        grant,
        quarantine,
    }))
}

/// Data room of the smallest buffers that frames are received into.
fn smallest_room(config: &PortConfig) -> usize {
    let room = (0..config.rx_queues).map(|queue| config.rx_pool(queue).data_room());
    room.min().unwrap_or(config.pool.data_room())
}

struct E1000e<D: Device> {
    nic: Nic<D>,
    port: String,
    mac: MacAddr,
    mtu: usize,
    filter: Filter,
    rss: Rss,
    legacy: bool,
    counters: Arc<Counters>,
    link: Watched,
    /// State of the queues at the last [`Driver::link`].
    state: SharedRxState,
    /// While it runs.
    interrupts: Option<Arc<Interrupts>>,
    grant: MemoryGrant,
    /// What it was lent, and what it may still write: of the run that began last.
    quarantine: Quarantine,
}

impl<D: Device> E1000e<D> {
    fn unsupported(&self, asked: String, offered: String) -> PortError {
        PortError::Unsupported {
            port: self.port.clone(),
            asked,
            offered,
        }
    }

    /// Bytes of the longest frame, a tag included.
    fn longest(&self) -> usize {
        self.mtu + ETHERNET + TAG
    }

    /// Has the device run, with its rings in fresh memory.
    fn run<F: Format>(
        &self,
        config: &PortConfig,
    ) -> Result<(Queues, Option<Arc<Interrupts>>), PortError> {
        let Self { nic, port, .. } = self;
        let (bus, error) = (&nic.bus, bus_error(port));
        let (rx_queues, tx_queues) = (config.rx_queues.into(), usize::from(config.tx_queues));
        let lent = (self.grant, &self.quarantine);
        let memory = Memory::new(&*nic.device, config, lent).map_err(&error)?;
        let ring = |index| memory.ring(&*nic.device, index).map_err(&error);
        // The size of buffers is one register for both queues (RCTL, section 10.2.5.1).
        let room = smallest_room(config);
        let (room, how) = setup::buffer_size(room).ok_or_else(|| self.small_room(room))?;

        setup::set_required_bits(bus);
        self.counters.clear(bus);
        setup::set_offloads(bus, F::EXTENDED, rx_queues > 1);
        if rx_queues > 1 {
            setup::set_rss(bus, &config.rss.or(&self.rss));
        }
        let how = how | setup::set_filter(bus, self.mac, &self.filter);
        let interrupts = nic.device.interrupts(QUEUES).ok().map(Arc::new);
        if interrupts.is_some() {
            setup::set_vectors(bus);
        }
        let mut rx = Vec::new();
        for queue in 0..rx_queues {
            let control = RxQueue {
                nic: nic.clone(),
                queue,
                state: self.state.clone(),
                shared: rx_queues > 1,
                counters: self.counters.clone(),
                losses: Losses::after(&self.counters.single, LOST),
                interrupts: interrupts.clone(),
            };
            let parts = RxParts {
                control,
                clock: nic.clock.clone(),
                ring: ring(queue)?,
                addresses: memory.addresses(),
                pool: config.rx_pool(queue as u16).clone(),
                room,
                longest: self.longest(),
                quarantine: self.quarantine.clone(),
            };
            setup::set_rx_ring(bus, queue, &parts.ring);
            rx.push(Rx::<_, _, F>::new(parts));
        }
        let mut tx: Vec<Box<dyn TxDriver>> = Vec::new();
        for queue in 0..tx_queues {
            let control = TxQueue {
                nic: nic.clone(),
                queue,
            };
            let parts = TxParts {
                control,
                clock: nic.clock.clone(),
                ring: ring(rx_queues + queue)?,
                addresses: memory.addresses(),
                pool: config.tx_pool(queue as u16).clone(),
                longest: self.longest(),
                quarantine: self.quarantine.clone(),
            };
            setup::set_tx_ring(bus, queue, &parts.ring);
            tx.push(if config.checksum_offload {
                Box::new(Tx::<_, _, OffloadTx>::new(parts))
            } else {
                Box::new(Tx::<_, _, LegacyTx>::new(parts))
            });
        }
        nic.set_link_up().map_err(&error)?;
        nic.device.set_bus_master(true).map_err(&error)?;
        if tx_queues > 0 {
            setup::enable_tx(bus);
        }
        if rx_queues > 0 {
            setup::enable_rx(bus, how, self.mtu > 1500);
        }
        // The tail of a ring is moved when the device receives (section 4.6.5).
        rx.iter_mut().for_each(Rx::fill);
        let boxed = |rx| -> Box<dyn RxDriver> { Box::new(rx) };
        let rx = rx.into_iter().map(boxed).collect();
        Ok((Queues { rx, tx }, interrupts))
    }

    fn small_room(&self, room: usize) -> PortError {
        let asked = format!("a pool with buffers of {room} bytes");
        self.unsupported(asked, "buffers of 256 bytes and more".into())
    }

    /// Brings the device to rest, and takes its memory away from it.
    fn rest(&mut self) -> Result<(), PortError> {
        self.interrupts = None;
        let result = self.nic.stop(&self.quarantine);
        result.map_err(bus_error(&self.port))
    }
}

impl<D: Device> Driver for E1000e<D> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_rx_queues: QUEUES,
            max_tx_queues: QUEUES,
            mac: Some(self.mac),
            max_frame: self.mtu + ETHERNET,
            checksum_offload: true,
            wire_time: false,
            recorded: false,
            kernel_backed: false,
        }
    }

    fn queue_support(&self) -> QueueSupport {
        QueueSupport::ALL
    }

    fn validate(&self, config: &PortConfig) -> Result<(), PortError> {
        let room = smallest_room(config);
        if let Some(ring) = config.rings().find(|&ring| ring > MAX_RING) {
            let asked = format!("a ring of {ring}");
            return Err(self.unsupported(asked, format!("rings of at most {MAX_RING}")));
        }
        if setup::buffer_size(room).is_none() {
            return Err(self.small_room(room));
        }
        if self.legacy && config.rx_queues > 1 {
            let asked = "several receive queues with descriptors=legacy".into();
            return Err(self.unsupported(asked, "one, or descriptors=extended".into()));
        }
        match self.rss.refusal(config.rx_queues, self.rss_support()) {
            Some((asked, offered)) => Err(self.unsupported(asked, offered)),
            None => Ok(()),
        }
    }

    fn rss_support(&self) -> Option<RssSupport> {
        Some(intel::RSS)
    }

    fn start(&mut self, config: &PortConfig, _port: u16) -> Result<Queues, PortError> {
        self.nic.reset().map_err(bus_error(&self.port))?;
        // What an earlier run has left behind.
        self.quarantine.settle(self.nic.device.cut_off());
        self.quarantine = Quarantine::new(self.port.clone());
        let run = if self.legacy {
            Self::run::<Legacy>
        } else {
            Self::run::<Extended>
        };
        self.state.set(RxState::Live);
        match run(self, config) {
            Ok((queues, interrupts)) => {
                self.interrupts = interrupts;
                Ok(queues)
            }
            Err(error) => {
                // That it could not be started is what there is to tell.
                let _ = self.rest();
                Err(error)
            }
        }
    }

    fn end_receiving(&mut self) {
        self.nic.end_receiving();
    }

    fn stop(&mut self) -> Result<(), PortError> {
        // A reset clears them.
        self.counters.statistics(&self.nic.bus);
        self.rest()
    }

    fn link(&self) -> Link {
        let gone = self.nic.device.is_gone();
        self.state.set(rx_state(self.nic.status(), false));
        let (status, told) = (|| self.nic.status(), || self.nic.has_link_changed());
        self.link.look(status, told, gone, gone)
    }

    fn statistics(&self) -> Statistics {
        let mut all = self.counters.statistics(&self.nic.bus);
        all.push(quarantined(&self.quarantine));
        all
    }

    fn registers(&self) -> String {
        let (bus, table) = (&self.nic.bus, REGISTERS);
        Dump {
            bus,
            base: 0,
            table,
        }
        .to_string()
    }
}

impl<D: Device> Drop for E1000e<D> {
    /// A port that is dropped while it runs has not been stopped.
    fn drop(&mut self) {
        if !self.quarantine.is_empty() {
            let _ = self.rest();
        }
    }
}
