//! Driver of the card whose gateware is in `hw/`: four ports of 10 Gb/s. `hw/docs/operations.md`
//! describes the way of a frame through it, hop by hop. Registers and memory layouts are generated
//! from the same sources as in the gateware (`scripts/regen`).
//!
//! | | | module |
//! | --- | --- | --- |
//! | registers, layouts | as tables | `registers.rs`, `memory_registers.rs`, `layouts.rs` |
//! | `Nic` | the card as a whole: what it is, its blocks, reset, rest | `nic.rs` |
//! | `Control` | a port: its switches, and its link | `control.rs` |
//! | `Tlb` | pages of the card's TLB, and misses | `tlb.rs` |
//! | `List`, `Events` | buffers that it fills, and how it announces them | `list.rs`, `events.rs` |
//! | `Arrivals` | when frames came | `arrivals.rs` |
//! | `Rx`, `Tx` | whole frames | `rx.rs`, `tx.rs`, `ring.rs` |
//! | `Streams` | payloads without a copy, one way and the other | `stream.rs`, `send.rs` |
//! | `Timing` | the card's time, and its timing input | `timing.rs` |
//! | `Generator` | packets without a host | `generator.rs` |
//! | `Losses` | statistics | `counters.rs` |
//! | `Options` | what a spec says | `options.rs` |
//!
//! # As a port
//!
//! The whole card is one port: receive queue and transmit queue number n belong to its link n.
//! Received frames arrive in the default list of their link and are copied once, into buffers of
//! the pool; the card reads sent frames in place.
//!
//! The spec sets how long frames and interrupts are held back, and the meaning of the timing input.
//! Bursts, triggers, clocks and their errors are counted ([`Driver::statistics`]); their events are
//! for users of streams.
//!
//! Payloads of selected UDP ports are received without a copy as [`Streams`], in buffers that the
//! card fills; payloads sent in this way get their headers from the card.
//!
//! # The device is not trusted
//!
//! The device may write its event queues, its lists and the pool's region at any time, and its
//! registers may have any value. A buffer is accepted if it is the next one and is owned by the
//! card ([`DeviceClop`](crate::event)); each record in it is read once and checked against its end.
//! A shadow array knows the frames in flight; an event that claims more is refused and counted.
//! Every wait for a register ends.

mod arrivals;
mod control;
mod counters;
mod events;
mod generator;
#[allow(dead_code, reason = "made whole, whatever the driver needs of it")]
mod layouts;
mod list;
#[allow(dead_code, reason = "made whole, whatever the driver needs of it")]
mod memory_registers;
mod nic;
pub(super) mod options;
#[allow(dead_code, reason = "made whole, whatever the driver needs of it")]
mod registers;
mod ring;
mod rx;
mod send;
mod stream;
mod timing;
mod tlb;
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
use self::nic::{DEFAULT_LIST, Nic};
use self::options::{ETHERNET, Options};
use self::registers::{card, host, port};
use self::ring::Ring;
use self::rx::{Rx, RxParts};
use self::tlb::Tlb;
use self::tx::{Tx, TxParts};
use super::dma::{DeviceAddresses, DmaBuffer};
use crate::bus::registers::{Dump, Register};
use crate::bus::{BusError, Device};
use crate::driver::{Capabilities, Driver, Link, Queues, RxDriver, Statistics, TxDriver};
use crate::event::{ClopConfig, Framing};
use crate::grant::MemoryGrant;
use crate::net::MacAddr;
use crate::port::bus_error;
use crate::port::{PortConfig, PortError, QueueSupport};
use crate::quarantine::Quarantine;
use crate::quarantine::quarantined;
use crate::spec::PortSpec;

/// Vendor ID on the bus. No vendor has assigned IDs: these are among those for simulated devices,
/// and a board has its maker's.
pub const VENDOR: u16 = 0x1234;
/// Device ID for [`VENDOR`].
pub const DEVICE: u16 = 0x504c;

/// Minimum length of a buffer of a default list in bytes; a buffer holds at least two of the
/// longest frames.
const BUFFER: usize = 16 << 10;

/// Bytes of a list for each frame of the requested ring.
const PER_FRAME: usize = 2048;

/// Bytes of a list that the shortest frame takes, with its record.
const LEAST_SPACE: usize = 80;

/// Minimum number of buffers of a list.
const BUFFERS: usize = 8;

/// The receive queue that receives TLB faults.
const FAULTS_TO: usize = 0;

/// Identifies a device and takes it over.
///
/// # Errors
/// An invalid option value, or a device that is not available, is not a card of this kind, or does
/// not answer.
pub fn open<D: Device>(
    device: Arc<D>,
    spec: &PortSpec,
    grant: MemoryGrant,
) -> Result<Box<dyn Driver>, PortError> {
    let options = Options::read(spec, device.name())?;
    let port = spec.to_string();
    let nic = Nic::new(device, grant).map_err(bus_error(&port))?;
    // A previous owner may have been killed during reception.
    let quarantine = Quarantine::new(port.clone());
    nic.rest(&quarantine).map_err(bus_error(&port))?;
    Ok(Box::new(Card {
        nic,
        port,
        options,
        watch: Watch::default(),
        refused: Arc::default(),
        lists: Vec::new(),
        controls: Vec::new(),
        quarantine,
    }))
}

struct Card<D: Device> {
    nic: Nic<D>,
    port: String,
    options: Options,
    watch: Watch,
    /// Number of invalid events since the port was opened.
    refused: Arc<AtomicU64>,
    /// The lists of a running card.
    lists: Vec<usize>,
    /// Its started ports, whose state [`Driver::link`] reads.
    controls: Vec<Control<D>>,
    /// Memory that the card may still write: of the run that began last.
    quarantine: Quarantine,
}

impl<D: Device> Card<D> {
    fn tx_queues(&self) -> usize {
        let has = self.nic.has;
        has.tx_rings.min(has.event_queues.saturating_sub(has.ports))
    }

    /// Starts the card. Event queue n belongs to receive queue n; the queues of transmit queues
    /// follow those of all ports.
    fn run(
        &self,
        config: &PortConfig,
        lists: &mut Vec<usize>,
    ) -> Result<(Queues, Vec<Control<D>>), BusError> {
        let (nic, quarantine) = (&self.nic, &self.quarantine);
        let interrupts = nic
            .device
            .interrupts(nic.queue(nic.has.ports + self.tx_queues()) as u16);
        let interrupts = interrupts.ok().map(Arc::new);
        let mut addresses = DeviceAddresses::new();
        for pool in config.pools() {
            let frames = DmaBuffer::share(&*nic.device, pool.region(), (nic.grant, quarantine))?;
            addresses.add(frames.region(), frames.addresses());
        }
        let (rx_queues, tx_queues) = (config.rx_queues.into(), config.tx_queues.into());
        let catch = port::NET_CTRL_CATCH_UDP | port::NET_CTRL_CATCH_OTHER;
        let mut ports = usize::max(rx_queues, tx_queues);
        if self.options.looped {
            // Both of a pair.
            ports = ports.next_multiple_of(2).min(nic.has.ports);
        }
        let controls = (0..ports)
            .map(|n| Control::set_up(nic, n, self.options.mac, &self.options, catch))
            .collect::<Result<Vec<_>, _>>()?;
        // Edges are counted; their events are for users of streams.
        Timing::new(nic, 0, &self.options.timing, quarantine)?;
        let tlb = Tlb::new(nic, FAULTS_TO);
        let mut rx = Vec::new();
        let mut tx: Vec<Box<dyn TxDriver>> = Vec::new();
        for (n, control) in controls.iter().enumerate().take(rx_queues) {
            let number = list::number(nic, n, DEFAULT_LIST);
            let memory = self.memory(number, config.rx_ring(n as u16));
            let waiting = memory.buffers + tlb::FAULTS;
            let events = Events::new(nic, n, waiting, interrupts.clone(), quarantine)?;
            events.set_wake(self.options.wake);
            let list = List::new(nic, &tlb, n, &memory, quarantine)?;
            lists.push(number);
            rx.push(RxParts {
                control: control.clone(),
                arrivals: self.arrivals(&memory),
                events,
                list,
                tlb: None,
                losses: Losses::new(nic, &[n], &[number]),
                pool: config.rx_pool(n as u16).clone(),
                longest: self.options.longest(),
                filter_address: self.filter_address(n),
                refused: self.refused.clone(),
            });
        }
        if let Some(queue) = rx.get_mut(FAULTS_TO) {
            queue.tlb = Some(tlb);
        }
        for (n, control) in controls.iter().enumerate().take(tx_queues) {
            let (size, queue) = (ring::size_for(config.tx_ring(n as u16)), nic.has.ports + n);
            let events = Events::new(nic, queue, size, None, quarantine)?;
            let ring = Ring::new(nic, n, size, queue, quarantine)?;
            tx.push(Box::new(Tx::new(TxParts {
                control: control.clone(),
                ring,
                events,
                queue,
                addresses: addresses.clone(),
                pool: config.tx_pool(n as u16).clone(),
                longest: self.options.longest(),
                refused: self.refused.clone(),
                quarantine: quarantine.clone(),
            })));
        }
        nic.connect()?;
        // Nothing after this can fail, so a failed start leaves nothing running.
        for control in controls.iter().take(tx_queues) {
            control.send(true);
        }
        for control in controls.iter().take(rx_queues) {
            control.receive(true);
        }
        let boxed = |parts| Box::new(Rx::new(parts)) as Box<dyn RxDriver>;
        let rx = rx.into_iter().map(boxed).collect();
        Ok((Queues { rx, tx }, controls))
    }

    /// Address to filter by in software; `None` where the card filters. A port without an IPv4
    /// address is promiscuous in the card: only then does the card pass on packets to any IPv4
    /// address.
    fn filter_address(&self, port: usize) -> Option<MacAddr> {
        let all = self.options.promiscuous || self.options.ips.get(port).is_some();
        (!all).then_some(self.options.mac)
    }

    /// Memory of the list of a receive queue.
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

    /// Converter for the arrival times of a list's frames, if the card stamps them.
    fn arrivals(&self, memory: &ClopConfig) -> Option<Arrivals<D::Clock>> {
        let frames = memory.buffers * memory.size / LEAST_SPACE;
        let clock = self.nic.clock.clone();
        let is_stamped = self.options.timing.preset.is_some();
        is_stamped.then(|| Arrivals::new(clock, frames, memory.timeout))
    }

    /// Stops the card and revokes its access to memory.
    fn rest(&mut self) -> Result<(), PortError> {
        self.lists.clear();
        self.controls.clear();
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
        if let Some(ring) = config.rings().find(|&ring| ring > ring::MOST) {
            return Err(PortError::Unsupported {
                port: self.port.clone(),
                asked: format!("a ring of {ring}"),
                offered: format!("rings of at most {}", ring::MOST),
            });
        }
        Ok(())
    }

    fn queue_support(&self) -> QueueSupport {
        QueueSupport {
            numa_node: false,
            ..QueueSupport::ALL
        }
    }

    fn start(&mut self, config: &PortConfig, _port: u16) -> Result<Queues, PortError> {
        self.nic.reset().map_err(bus_error(&self.port))?;
        // The rest of an earlier run.
        self.quarantine.settle(self.nic.cut_off());
        self.quarantine = Quarantine::new(self.port.clone());
        let mut lists = Vec::new();
        let started = self.run(config, &mut lists);
        self.lists = lists;
        match started {
            Ok((queues, controls)) => {
                self.controls = controls;
                Ok(queues)
            }
            Err(error) => {
                // The start's error is the one to report.
                let _ = self.rest();
                Err(bus_error(&self.port)(error))
            }
        }
    }

    fn stop(&mut self) -> Result<(), PortError> {
        self.rest()
    }

    fn link(&self) -> Link {
        self.controls.iter().for_each(Control::look);
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
        let card = [
            (self.nic.at.card, card::REGISTERS),
            (self.nic.at.host, host::REGISTERS),
        ];
        // The host bus is function 0's.
        let blocks = card
            .into_iter()
            .take(if self.nic.is_first() { 2 } else { 1 });
        let ports = self.nic.at.ports.iter().take(self.nic.has.ports);
        let ports = ports.map(|&at| (at, port::REGISTERS));
        let dump = |(base, table): (usize, &[Register])| {
            // All except tables of many rows.
            let table: Vec<_> = table
                .iter()
                .filter(|one| one.count <= 16)
                .copied()
                .collect();
            let (bus, table) = (&self.nic.bus, &table);
            Dump { bus, base, table }.to_string()
        };
        blocks.chain(ports).map(dump).collect()
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
