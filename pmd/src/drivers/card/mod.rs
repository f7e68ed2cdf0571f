//! The card whose gateware is in `hw/`: four ports of 10 Gb/s. How a frame goes through it, hop by
//! hop, is in `hw/docs/operations.md`; registers, and what it reads and writes in memory, come from
//! the sources that its gateware comes from too (`scripts/regen`).
//!
//! | | | module |
//! | --- | --- | --- |
//! | registers, layouts | as tables | `registers.rs`, `layouts.rs` |
//! | `Nic` | the card as a whole: what it is, its blocks, reset, rest | `nic.rs` |
//! | `Control` | a port: its switches, and its link | `control.rs` |
//! | `Tlb` | what the card reaches, and misses | `memory.rs` |
//! | `List`, `Events` | buffers that it fills, and how it announces them | `list.rs`, `events.rs` |
//! | `Arrivals` | when frames came | `arrivals.rs` |
//! | `Rx`, `Tx` | whole frames | `rx.rs`, `tx.rs`, `ring.rs` |
//! | `Streams` | payloads without a copy, one way and the other | `stream.rs`, `send.rs` |
//! | `Timing` | the card's time, and its timing input | `timing.rs` |
//! | `Generator` | packets without a host | `generator.rs` |
//! | `Losses` | statistics | `counters.rs` |
//! | `Options` | what a spec says | `options.rs` |
//! | `Model` | the card in software (`hw/model`), for the tests | `model.rs` |
//!
//! # As a port
//!
//! All of the card is one port here: receive queue and transmit queue number n are those of its
//! wire n. Frames that are received come by the catch-all list of their wire and are copied once,
//! into buffers of the pool; those that are sent are read by the card from where they are.
//!
//! The spec says how long frames and loops are held back, and what the timing input means. Bursts,
//! triggers, clocks and what is wrong with them are counted ([`Driver::statistics`]); events of them
//! are for who has streams.
//!
//! Payloads of chosen UDP ports come without a copy as [`Streams`], in buffers that the card fills;
//! payloads that are sent so get their headers from the card.
//!
//! # The device is not trusted
//!
//! It may write its event queues, its lists and the pool's region at any time, and its registers
//! may say anything. A buffer is taken when it is the next one and the card's to give
//! ([`DeviceClop`](crate::event)); records in it are read once and held against its end. Frames
//! that are on their way are known from a shadow; an event that says more than that is refused and
//! counted. Each wait for a register ends.

mod arrivals;
mod control;
mod counters;
mod events;
mod generator;
#[cfg(any(test, fuzzing))]
pub mod hostile;
#[allow(dead_code, reason = "made whole, whatever the driver needs of it")]
mod layouts;
mod list;
mod memory;
#[cfg(any(test, fuzzing))]
mod model;
mod nic;
pub(super) mod options;
#[allow(dead_code, reason = "made whole, whatever the driver needs of it")]
mod registers;
mod ring;
mod rx;
mod send;
mod stream;
#[cfg(test)]
mod tests;
mod timing;
mod tx;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use self::events::Wake;
pub use self::generator::Generator;
pub use self::send::{Datagram, DatagramChecksum, SendConfig};
pub use self::stream::{Announced, Form, StreamConfig, Streams, StreamsConfig};
pub use self::timing::{Edge, EdgeKind, ExternalClock, Latched, Timing, TimingConfig, TimingFlags};

use self::arrivals::Arrivals;
use self::control::{Control, Watch};
use self::counters::{Losses, statistics};
use self::events::Events;
use self::list::List;
use self::memory::Tlb;
use self::nic::{CATCH_ALL, Nic};
use self::options::{ETHERNET, Options};
use self::registers::{card, host, port};
use self::ring::Ring;
use self::rx::{Rx, RxParts};
use self::tx::{Tx, TxParts};
use super::dma::DeviceAddresses;
use crate::bus::registers::{Dump, Register};
use crate::bus::{BusError, Device};
use crate::driver::{Capabilities, Driver, Link, Queues, RxDriver, Statistics, TxDriver};
use crate::event::{ClopConfig, Framing};
use crate::grant::MemoryGrant;
use crate::net::MacAddr;
use crate::port::bus_error;
use crate::port::{PortConfig, PortError};
use crate::quarantine::Quarantine;
use crate::quarantine::quarantined;
use crate::spec::PortSpec;

/// What the card says that it is on the bus. No vendor has given it numbers: these are among those
/// that simulated devices use, and a board has its maker's.
pub(super) const VENDOR: u16 = 0x1234;
pub(super) const DEVICE: u16 = 0x504c;

/// Least bytes of a buffer of a catch-all list; it holds two of the longest frames at least.
const BUFFER: usize = 16 << 10;

/// Bytes of a list for each frame of the ring that was asked for.
const PER_FRAME: usize = 2048;

/// Bytes of a list that the shortest frame takes, with its record.
const LEAST_SPACE: usize = 80;

/// Least buffers of a list.
const BUFFERS: usize = 8;

/// The receive queue that is told of faults of the TLB.
const FAULTS_TO: usize = 0;

/// Looks at a device and takes it over.
///
/// # Errors
/// An option's value, or a device that cannot be had, is no such card, or does not answer.
pub fn open<D: Device>(
    device: Arc<D>,
    spec: &PortSpec,
    grant: MemoryGrant,
) -> Result<Box<dyn Driver>, PortError> {
    let options = Options::read(spec, device.name())?;
    let port = spec.to_string();
    let nic = Nic::new(device, grant).map_err(bus_error(&port))?;
    // Whoever had it before may have been killed while it was receiving.
    let quarantine = Quarantine::new(port.clone());
    nic.rest(&quarantine).map_err(bus_error(&port))?;
    Ok(Box::new(Card {
        nic,
        port,
        options,
        watch: Watch::default(),
        refused: Arc::default(),
        lists: Vec::new(),
        quarantine,
    }))
}

struct Card<D: Device> {
    nic: Nic<D>,
    port: String,
    options: Options,
    watch: Watch,
    /// Events that told nothing that can be, since it was opened.
    refused: Arc<AtomicU64>,
    /// The lists of a card that runs.
    lists: Vec<usize>,
    /// What it was lent, and what it may still write: of the run that began last.
    quarantine: Quarantine,
}

impl<D: Device> Card<D> {
    fn tx_queues(&self) -> usize {
        let has = self.nic.has;
        has.tx_rings.min(has.event_queues.saturating_sub(has.ports))
    }

    /// Has the card run. Event queue n is that of receive queue n; behind those of all ports come
    /// those of the transmit queues.
    fn run(&self, config: &PortConfig, lists: &mut Vec<usize>) -> Result<Queues, BusError> {
        let (nic, quarantine) = (&self.nic, &self.quarantine);
        let interrupts = nic.device.interrupts(nic.has.event_queues as u16);
        let interrupts = interrupts.ok().map(Arc::new);
        let frames = nic.device.map(config.pool.region(), nic.grant)?;
        let mut addresses = DeviceAddresses::new();
        addresses.add(config.pool.region(), frames.addresses());
        quarantine.lend(frames);
        let (rx_queues, tx_queues) = (config.rx_queues.into(), config.tx_queues.into());
        let catch = port::NET_CTRL_CATCH_UDP | port::NET_CTRL_CATCH_OTHER;
        let mut ports = usize::max(rx_queues, tx_queues);
        if self.options.looped {
            // Both of a pair.
            ports = ports.next_multiple_of(2).min(nic.has.ports);
        }
        let controls: Vec<_> = (0..ports)
            .map(|n| Control::set_up(nic, n, self.options.mac, &self.options, catch))
            .collect();
        // Its edges are counted; events of them are for who has streams.
        Timing::new(nic, 0, &self.options.timing)?;
        let mut tlb = Tlb::new(nic, FAULTS_TO);
        let mut rx = Vec::new();
        let mut tx: Vec<Box<dyn TxDriver>> = Vec::new();
        for (n, control) in controls.iter().enumerate().take(rx_queues) {
            let number = list::number(n, CATCH_ALL);
            let memory = self.memory(number, config.ring);
            let waiting = memory.buffers + memory::FAULTS;
            let (events, mapping) = Events::new(nic, n, waiting, interrupts.clone())?;
            events.set_wake(self.options.wake);
            quarantine.lend(mapping);
            let (list, mapping) = List::new(nic, &mut tlb, n, &memory)?;
            quarantine.lend(mapping);
            lists.push(number);
            rx.push(RxParts {
                control: control.clone(),
                arrivals: self.arrivals(&memory),
                events,
                list,
                tlb: None,
                losses: Losses::new(nic, &[n], &[number]),
                pool: config.pool.clone(),
                longest: self.options.longest(),
                station: self.station(n),
                refused: self.refused.clone(),
            });
        }
        if let Some(told) = rx.get_mut(FAULTS_TO) {
            told.tlb = Some(tlb);
        }
        for (n, control) in controls.iter().enumerate().take(tx_queues) {
            let (size, queue) = (ring::size_for(config.ring), nic.has.ports + n);
            let (events, mapping) = Events::new(nic, queue, size, None)?;
            quarantine.lend(mapping);
            let (ring, mapping) = Ring::new(nic, n, size, queue)?;
            quarantine.lend(mapping);
            tx.push(Box::new(Tx::new(TxParts {
                control: control.clone(),
                ring,
                events,
                queue,
                addresses: addresses.clone(),
                pool: config.pool.clone(),
                longest: self.options.longest(),
                refused: self.refused.clone(),
                quarantine: quarantine.clone(),
            })));
        }
        nic.connect()?;
        // Nothing behind this can fail, so a failed start has nothing running.
        for control in controls.iter().take(tx_queues) {
            control.send(true);
        }
        for control in controls.iter().take(rx_queues) {
            control.receive(true);
        }
        let boxed = |parts| Box::new(Rx::new(parts)) as Box<dyn RxDriver>;
        let rx = rx.into_iter().map(boxed).collect();
        Ok(Queues { rx, tx })
    }

    /// Whose frames are received on a port whose card takes those of all: packets to any address
    /// are passed on only together with frames to any station.
    fn station(&self, port: usize) -> Option<MacAddr> {
        let all = self.options.promiscuous || self.options.ips.get(port).is_some();
        (!all).then_some(self.options.mac)
    }

    /// The list of a receive queue.
    fn memory(&self, number: usize, ring: usize) -> ClopConfig {
        let record = 16;
        let two = 2 * (self.options.longest() + record);
        let size = BUFFER.max(two.next_power_of_two());
        ClopConfig {
            stream: number as u16,
            buffers: (ring * PER_FRAME / size).next_power_of_two().max(BUFFERS),
            size,
            timeout: self.options.hold,
            framing: Framing::Records,
            memory: self.nic.device.memory(),
        }
    }

    /// What tells when the frames of a list came, if the card stamps them.
    fn arrivals(&self, memory: &ClopConfig) -> Option<Arrivals<D::Clock>> {
        let frames = memory.buffers * memory.size / LEAST_SPACE;
        let clock = self.nic.clock.clone();
        let is_stamped = self.options.timing.preset.is_some();
        is_stamped.then(|| Arrivals::new(clock, frames, memory.timeout))
    }

    /// Brings the card to rest, and takes its memory away from it.
    fn rest(&mut self) -> Result<(), PortError> {
        self.lists.clear();
        let result = self.nic.rest(&self.quarantine);
        result.map_err(bus_error(&self.port))
    }
}

impl<D: Device> Driver for Card<D> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_rx_queues: self.nic.has.ports.min(self.nic.has.event_queues) as u16,
            max_tx_queues: self.tx_queues() as u16,
            mac: Some(self.options.mac),
            max_frame: self.options.mtu + ETHERNET,
            checksum_offload: false,
            wire_time: self.options.timing.preset.is_some(),
            recorded: false,
            kernel_backed: false,
        }
    }

    fn validate(&self, config: &PortConfig) -> Result<(), PortError> {
        if config.ring > ring::MOST {
            return Err(PortError::Unsupported {
                port: self.port.clone(),
                asked: format!("a ring of {}", config.ring),
                offered: format!("rings of at most {}", ring::MOST),
            });
        }
        Ok(())
    }

    fn start(&mut self, config: &PortConfig, _port: u16) -> Result<Queues, PortError> {
        self.nic.reset().map_err(bus_error(&self.port))?;
        // What an earlier run has left behind.
        self.quarantine.settle(self.nic.cut_off());
        self.quarantine = Quarantine::new(self.port.clone());
        let mut lists = Vec::new();
        let started = self.run(config, &mut lists);
        self.lists = lists;
        started.map_err(|error| {
            // That it could not be started is what there is to tell.
            let _ = self.rest();
            bus_error(&self.port)(error)
        })
    }

    fn stop(&mut self) -> Result<(), PortError> {
        self.rest()
    }

    fn link(&self) -> Link {
        self.watch.look(&Control::new(&self.nic, 0, 0))
    }

    fn statistics(&self) -> Statistics {
        if self.nic.is_gone() {
            return Statistics::new();
        }
        let mut all = statistics(&self.nic, &self.lists);
        let refused = self.refused.load(Ordering::Relaxed);
        all.push(("events_refused".into(), refused));
        all.push(quarantined(&self.quarantine));
        all
    }

    fn registers(&self) -> String {
        let blocks = [
            (self.nic.at.card, card::REGISTERS),
            (self.nic.at.host, host::REGISTERS),
        ];
        let ports = self.nic.at.ports.iter().take(self.nic.has.ports);
        let ports = ports.map(|&at| (at, port::REGISTERS));
        let dump = |(base, table): (usize, &[Register])| {
            // But for tables of many rows.
            let table: Vec<_> = table
                .iter()
                .filter(|one| one.count <= 16)
                .copied()
                .collect();
            let (bus, table) = (&self.nic.bus, &table);
            Dump { bus, base, table }.to_string()
        };
        blocks.into_iter().chain(ports).map(dump).collect()
    }
}

impl<D: Device> Drop for Card<D> {
    /// A port that is dropped while it runs has not been stopped.
    fn drop(&mut self) {
        if !self.quarantine.is_empty() {
            let _ = self.rest();
        }
    }
}
