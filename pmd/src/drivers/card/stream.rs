//! Streams without a copy: payloads for a UDP port, in the buffers where the card has placed them.
//!
//! The card collects the payloads of each stream in a list of persistent buffers
//! (`docs/formats/clop.md`) and announces a buffer when it is full, or when its oldest payload has
//! waited for the configured time. The poller owns the buffer until it is dropped, on any thread.
//!
//! In the other direction, the card makes datagrams of payloads ([`Streams::send`]), or generates
//! packets ([`Streams::generate`]).
//!
//! ```no_run
//! # fn with<D: pollux_pmd::bus::Device>(
//! #     device: std::sync::Arc<D>,
//! #     grant: pollux_pmd::MemoryGrant,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! use pollux_pmd::drivers::card::{Form, StreamConfig, Streams, StreamsConfig};
//! use pollux_pmd::event::ClopConfig;
//!
//! let spec = "card-sim:ip=10.0.0.1".parse()?;
//! let hits = StreamConfig { port: 0, udp: 58913, form: Form::Hits, clop: ClopConfig::default() };
//! let config = StreamsConfig { streams: vec![hits], ..StreamsConfig::default() };
//! let mut streams = Streams::start(device, &spec, &config, grant)?;
//! let mut delivered = 0;
//! while let Some(announced) = streams.poll() {
//!     for payload in announced.buffer.payloads().flatten() {
//!         delivered += 1; // payload.data
//!     }
//! } // dropping the buffer returns it
//! let balance = streams.stop()?;
//! assert_eq!(balance.from_wire, delivered + balance.delivered + balance.dropped_total());
//! # Ok(()) }
//! ```

mod config;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pollux_mempool::{Burst, PoolCache};

pub use self::config::{Announced, Form, StreamConfig, StreamsConfig};
use super::control::Control;
use super::counters::{Losses, statistics};
use super::events::Events;
use super::generator::Generator;
use super::layouts::TlbFault;
use super::list::{self, List};
use super::nic::{MAX_PORTS, Nic};
use super::options::Options;
use super::registers::{clop, port};
use super::ring::{self, Ring};
use super::send::{Datagram, SendConfig, Sender};
use super::timing::Timing;
use super::tlb::{FAULTS, Tlb};
use super::tx::{Tx, TxParts};
use crate::bus::{Bus, BusError, Device};
use crate::driver::Statistics;
use crate::drivers::dma::{DeviceAddresses, DmaBuffer};
use crate::event::{ClopBuffer, ClopConfig};
use crate::grant::MemoryGrant;
use crate::ledger::{Balance, Cause, SentView, Tally, TallyView};
use crate::port::PortError;
use crate::port::bus_error;
use crate::quarantine::Quarantine;
use crate::spec::PortSpec;

/// The event queues: all streams and TLB faults; the timing input; the transmissions of each port.
const LISTS: usize = 0;
const TIMING: usize = 1;
const SENDERS: usize = 2;

/// Streams of a running card, for one poll loop.
pub struct Streams<D: Device> {
    nic: Nic<D>,
    port: String,
    controls: [Option<Control<D>>; MAX_PORTS],
    losses: Losses<D>,
    events: Events<D>,
    tlb: Tlb<D>,
    lists: Vec<List<D>>,
    /// List number of each stream.
    numbers: Vec<usize>,
    /// Stream with a list number.
    index: [Option<u8>; clop::LIST_BASE.count],
    timing: Timing<D>,
    senders: [Option<Sender<D>>; MAX_PORTS],
    tally: Tally,
    /// Memory that the card may still access.
    quarantine: Quarantine,
    /// Number of invalid events.
    refused: Arc<AtomicU64>,
}

impl<D: Device> Streams<D> {
    /// Takes over a card and configures it by `config`. The spec has the addresses of its ports, as
    /// for a port (`ip`, `mac`, `mtu`, `promisc`, `multicast`, `loop`).
    ///
    /// # Errors
    /// An invalid option value or stream, or a device that is not available, is not a card of this
    /// kind, or does not answer.
    pub fn start(
        device: Arc<D>,
        spec: &PortSpec,
        config: &StreamsConfig,
        grant: MemoryGrant,
    ) -> Result<Self, PortError> {
        let options = Options::read(spec, device.name())?;
        let name = spec.to_string();
        let error = bus_error(&name);
        let nic = Nic::new(device, grant).map_err(&error)?;
        nic.reset().map_err(&error)?;
        let quarantine = Quarantine::new(name.clone());
        let started = Self::prepare(&nic, &name, config, &quarantine).and_then(|mut running| {
            running.run(&options, config)?;
            Ok(running)
        });
        started.map_err(|what| {
            // The start's error is the one to report.
            let _ = nic.rest(&quarantine);
            error(what)
        })
    }

    /// Common parts.
    fn prepare(
        nic: &Nic<D>,
        name: &str,
        config: &StreamsConfig,
        quarantine: &Quarantine,
    ) -> Result<Self, BusError> {
        let needed = SENDERS + nic.has.tx_rings;
        if nic.has.event_queues < needed {
            return Err(nic.error(format!(
                "it has {} event queues, and streams need {needed}",
                nic.has.event_queues
            )));
        }
        let interrupts = nic.device.interrupts(nic.queue(needed) as u16);
        let interrupts = interrupts.ok().map(Arc::new);
        let buffers: usize = config.streams.iter().map(|one| one.clop.buffers).sum();
        let events = Events::new(nic, LISTS, buffers + FAULTS, interrupts, quarantine)?;
        events.set_wake(config.wake);
        let timing = Timing::new(nic, TIMING, &config.timing, quarantine)?;
        Ok(Self {
            losses: Losses::new(nic, &[], &[]),
            port: name.into(),
            controls: Default::default(),
            events,
            tlb: Tlb::new(nic, LISTS),
            lists: Vec::new(),
            numbers: Vec::new(),
            index: [None; clop::LIST_BASE.count],
            timing,
            senders: Default::default(),
            tally: Tally::new(),
            quarantine: quarantine.clone(),
            refused: Arc::default(),
            nic: nic.clone(),
        })
    }

    fn run(&mut self, options: &Options, config: &StreamsConfig) -> Result<(), BusError> {
        let ports = self.ports(options, config)?;
        for &n in &ports {
            let control = Control::set_up(&self.nic, n, options.station(n), options, 0)?;
            if let Some(place) = self.controls.get_mut(n) {
                *place = Some(control);
            }
        }
        let mut used = [0; MAX_PORTS];
        for (n, stream) in config.streams.iter().enumerate() {
            let slot = used
                .get_mut(stream.port)
                .filter(|slot| **slot < port::STREAM.count);
            let Some(slot) = slot else {
                return Err(self.nic.error("a port has 16 streams at most"));
            };
            self.add_list(n, stream, *slot)?;
            *slot += 1;
        }
        if let Some(send) = &config.send {
            self.add_senders(send, options)?;
        }
        self.losses = Losses::new(&self.nic, &ports, &self.numbers);
        self.nic.connect()?;
        for control in self.controls.iter().flatten() {
            // Pings and ARP requests are answered.
            control.send(true);
            control.receive(true);
        }
        Ok(())
    }

    /// The ports in use.
    fn ports(&self, options: &Options, config: &StreamsConfig) -> Result<Vec<usize>, BusError> {
        let receive = config.streams.iter().map(|stream| stream.port);
        let send = config
            .send
            .iter()
            .flat_map(|send| send.ports.iter().copied());
        let mut ports: Vec<_> = receive.chain(send).collect();
        if let Some(&none) = ports.iter().find(|&&port| port >= self.nic.has.ports) {
            return Err(self.nic.error(format!(
                "port {none} is to be used; it has ports 0 to {}",
                self.nic.has.ports - 1
            )));
        }
        if options.looped {
            let others: Vec<_> = ports.iter().map(|port| port ^ 1).collect();
            ports.extend(others.iter().filter(|&&port| port < self.nic.has.ports));
        }
        ports.sort_unstable();
        ports.dedup();
        Ok(ports)
    }

    /// Stream number `n`, which is number `slot` of its port.
    fn add_list(&mut self, n: usize, stream: &StreamConfig, slot: usize) -> Result<(), BusError> {
        let number = list::number(&self.nic, stream.port, slot);
        let config = ClopConfig {
            stream: number as u16,
            ..stream.clop.clone()
        };
        let list = List::new(&self.nic, &self.tlb, LISTS, &config, &self.quarantine)?;
        self.lists.push(list);
        self.numbers.push(number);
        if let Some(place) = self.index.get_mut(number) {
            *place = Some(n as u8);
        }
        let at = self.nic.port(stream.port, port::STREAM) + slot * port::STREAM.step;
        let form = (stream.form as u32) << 16;
        let word = port::STREAM_ENABLE | form | u32::from(stream.udp);
        self.nic.bus.write32(at, word);
        Ok(())
    }

    fn add_senders(&mut self, send: &SendConfig, options: &Options) -> Result<(), BusError> {
        let nic = self.nic.clone();
        let quarantine = self.quarantine.clone();
        let payloads =
            DmaBuffer::share(&*nic.device, send.pool.region(), (nic.grant, &quarantine))?;
        let mut addresses = DeviceAddresses::new();
        addresses.add(payloads.region(), payloads.addresses());
        if send.ring > ring::MOST {
            return Err(nic.error(format!(
                "a ring of {}; rings have at most {}",
                send.ring,
                ring::MOST
            )));
        }
        let size = ring::size_for(send.ring);
        for &n in &send.ports {
            let control = self.controls.get(n).cloned().flatten();
            let place = self.senders.get_mut(n).filter(|place| place.is_none());
            let (Some(control), Some(place)) = (control.filter(|_| n < nic.has.tx_rings), place)
            else {
                return Err(nic.error(format!(
                    "port {n} is to send twice, or has no ring to send by"
                )));
            };
            let queue = SENDERS + n;
            let events = Events::new(&nic, queue, size, None, &quarantine)?;
            let ring = Ring::new(&nic, n, size, queue, &quarantine)?;
            let tx = Tx::new(TxParts {
                control,
                ring,
                events,
                queue,
                addresses: addresses.clone(),
                pool: send.pool.clone(),
                longest: options.longest(),
                refused: self.refused.clone(),
                quarantine: quarantine.clone(),
            });
            *place = Some(Sender::new(tx, options.mtu));
        }
        Ok(())
    }

    /// Takes the next announced buffer. Never waits.
    #[inline]
    pub fn poll(&mut self) -> Option<Announced> {
        while let Some(event) = self.events.poll() {
            if event.kind == TlbFault::KIND && self.tlb.answer(&event) {
                continue;
            }
            let known = self.index.get(usize::from(event.stream)).copied();
            let stream = known.flatten().map(usize::from);
            let list = stream.and_then(|stream| self.lists.get_mut(stream));
            let buffer = list.and_then(|list| {
                let buffer = list.accept(&event).ok()?;
                list.release();
                Some(buffer)
            });
            let Some((stream, buffer)) = stream.zip(buffer) else {
                self.refused.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            self.count(&buffer);
            return Some(Announced { stream, buffer });
        }
        self.lists.iter_mut().for_each(List::release);
        None
    }

    /// Counts the contents of a buffer; payloads that were announced but are not present were lost
    /// by the card.
    #[inline]
    fn count(&mut self, buffer: &ClopBuffer) {
        let (mut frames, mut bytes) = (0, 0);
        for payload in buffer.payloads().flatten() {
            frames += 1;
            bytes += payload.data.len() as u64;
        }
        // A payload takes at least 16 bytes.
        let announced = buffer.event().payloads.min(buffer.event().bytes / 16);
        let missing = u64::from(announced).saturating_sub(frames);
        self.tally.count_from_wire(frames + missing, bytes);
        self.tally.count_dropped(Cause::DeviceError, missing);
    }

    /// Counts what the card has lost or consumed. Reads registers: for housekeeping.
    pub fn sync_counters(&mut self) {
        self.losses.count(&mut self.tally);
    }

    /// View of all streams' counters for a ledger. [Polled](Self::poll) payloads are from the wire;
    /// their consumer counts them as delivered, or as dropped.
    #[must_use]
    pub fn tally(&self) -> TallyView {
        self.tally.view()
    }

    /// Number of invalid events: a card that produces any is faulty.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// File descriptor that becomes readable when a buffer is announced, once this is
    /// [armed](Self::arm); `None` if the device cannot interrupt.
    #[must_use]
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.events.event()
    }

    /// Makes the card signal the [`event`](Self::event) once: when buffers are announced, moderated
    /// as by [`Wake`](super::Wake), or at once if announced buffers are waiting.
    pub fn arm(&self) {
        self.events.arm();
    }

    /// Sends payloads as datagrams from a port: takes them from the front of `burst`, as many as
    /// there are descriptors, and returns their number; none if the port does not send. The card
    /// reads them in place, and one doorbell covers them all. They count as [sent](Self::sent) when
    /// the card has read them; a call with an empty burst updates the count.
    ///
    /// A payload that is too long counts as an error. The first one to an address waits up to
    /// 100 us for the neighbour's answer, and those behind it wait as well. Without an answer it is
    /// lost, and later ones to this address are lost at once, until the card asks again (20 ms):
    /// they count as [unresolved](crate::ledger::SentView::unresolved).
    #[inline]
    pub fn send<const N: usize>(
        &mut self,
        port: usize,
        cache: &mut PoolCache,
        burst: &mut Burst<N>,
        datagram: &Datagram,
    ) -> usize {
        match self.senders.get_mut(port) {
            Some(Some(sender)) => sender.send(cache, &mut burst.as_mut(), datagram),
            _ => 0,
        }
    }

    /// Count of packets sent by a port.
    #[must_use]
    pub fn sent(&self, port: usize) -> Option<SentView> {
        Some(self.senders.get(port)?.as_ref()?.view())
    }

    /// The time, and the timing input.
    #[must_use]
    pub fn timing(&mut self) -> &mut Timing<D> {
        &mut self.timing
    }

    /// Starts the packet generator of a port; `false` if the port is not in use. Other packets of
    /// the port wait meanwhile.
    #[must_use]
    pub fn generate(&self, port: usize, generator: &Generator) -> bool {
        let control = self.controls.get(port).and_then(Option::as_ref);
        control.is_some_and(|control| {
            generator.start(control);
            true
        })
    }

    /// Stops the packet generator of a port after the current packet.
    pub fn stop_generating(&self, port: usize) {
        if let Some(Some(control)) = self.controls.get(port) {
            Generator::stop(control);
        }
    }

    /// Whether a port generates packets.
    #[must_use]
    pub fn is_generating(&self, port: usize) -> bool {
        let control = self.controls.get(port).and_then(Option::as_ref);
        control.is_some_and(Generator::is_running)
    }

    /// All counters of the card, by name. Reads registers: for housekeeping.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        statistics(&self.nic, &self.numbers)
    }

    /// Stops the card. Buffers that were not taken count as aborted.
    ///
    /// # Errors
    /// The card does not complete its reset.
    pub fn stop(mut self) -> Result<Balance, PortError> {
        self.end();
        self.senders = Default::default();
        let result = self.nic.rest(&self.quarantine);
        result.map_err(bus_error(&self.port))?;
        Ok(self.tally.view().balance())
    }

    /// Stops reception, and counts the remaining payloads.
    fn end(&mut self) {
        for control in self.controls.iter().flatten() {
            Generator::stop(control);
        }
        for sender in self.senders.iter_mut().flatten() {
            sender.finish();
        }
        for control in self.controls.iter().flatten() {
            control.end_receiving();
        }
        self.lists.iter().for_each(List::flush);
        let nic = self.nic.clone();
        // A flush needs free records in the event queue, so the events must be taken.
        nic.wait(|| {
            self.abandon();
            !self.lists.iter().any(List::is_flushing) || nic.is_gone()
        });
        self.abandon();
        self.sync_counters();
        self.losses.count_left(&mut self.tally);
    }

    fn abandon(&mut self) {
        while let Some(announced) = self.poll() {
            let payloads = announced.buffer.payloads().flatten().count();
            self.tally.count_dropped(Cause::Aborted, payloads as u64);
        }
    }
}

impl<D: Device> Drop for Streams<D> {
    /// Streams that are dropped while they run have not been stopped.
    fn drop(&mut self) {
        if !self.quarantine.is_empty() {
            // Rings first: they come to rest while the card runs.
            self.senders = Default::default();
            // The missing stop is the error to report.
            let _ = self.nic.rest(&self.quarantine);
        }
    }
}
