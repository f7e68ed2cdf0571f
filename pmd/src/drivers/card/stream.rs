//! Streams without a copy: payloads that come to a UDP port, where the card has put them.
//!
//! The card gathers the payloads of each stream in its own list of persistent buffers
//! (`docs/formats/clop.md`) and announces a buffer when it is full, or when its oldest payload has
//! waited for long enough. Whoever polls has the buffer until it is dropped, on any thread.
//!
//! ```no_run
//! # fn with<D: pollux_pmd::bus::Device>(device: std::sync::Arc<D>) -> Result<(), Box<dyn std::error::Error>> {
//! use pollux_pmd::drivers::card::{Form, StreamConfig, Streams};
//! use pollux_pmd::event::ClopConfig;
//!
//! let spec = "card-sim:ip=10.0.0.1".parse()?;
//! let hits = StreamConfig { port: 0, udp: 58913, form: Form::Hits, clop: ClopConfig::default() };
//! let mut streams = Streams::start(device, &spec, &[hits])?;
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

use std::sync::Arc;

use super::control::Control;
use super::counters::Losses;
use super::events::Events;
use super::list::{self, List};
use super::memory::Tlb;
use super::nic::Nic;
use super::options::Options;
use super::registers::{clop, port};
use crate::bus::{Bus, BusError, Device, DmaMapping};
use crate::drivers::pci::bus_error;
use crate::event::{ClopBuffer, ClopConfig};
use crate::ledger::{Balance, Cause, Tally, TallyView};
use crate::port::PortError;
use crate::spec::PortSpec;

/// The event queue of all streams.
const QUEUE: usize = 0;

/// What of a datagram is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Its payload.
    Payload,
    /// All of its frame.
    Frame,
    /// Its payload, a container of compressed hits, in the expanded form
    /// (`docs/formats/rich-hits.md`).
    Hits,
}

/// A stream.
#[derive(Clone, Debug)]
pub struct StreamConfig {
    /// Port of the card.
    pub port: usize,
    /// UDP destination port.
    pub udp: u16,
    /// What is passed on.
    pub form: Form,
    /// Its buffers, together up to 1 GiB. The number of the stream there is not looked at.
    pub clop: ClopConfig,
}

/// A buffer of a stream, which is the caller's until it is dropped.
#[derive(Debug)]
pub struct Announced {
    /// Which of the streams, in the order in which they were configured.
    pub stream: usize,
    /// The buffer. All of the payloads in it that can be read count as from the wire.
    pub buffer: ClopBuffer,
}

/// Streams of a card that runs, for one poll loop.
pub struct Streams<D: Device> {
    nic: Nic<D>,
    port: String,
    controls: Vec<Control<D>>,
    losses: Losses<D>,
    events: Events<D>,
    lists: Vec<List<D>>,
    /// Which of the lists has a number.
    index: [Option<u8>; clop::LIST_BASE.count],
    tally: Tally,
    /// Taken from the card last, when it is at rest.
    mappings: Vec<DmaMapping>,
    /// Events that announced nothing that can be.
    refused: u64,
}

impl<D: Device> Streams<D> {
    /// Takes a card over and has it receive the streams. The spec says the addresses of its ports,
    /// as for a port on it (`ip`, `mac`, `mtu`, `promisc`, `multicast`).
    ///
    /// # Errors
    /// An option's value, a stream that cannot be, or a device that cannot be had, is no such card,
    /// or does not answer.
    pub fn start(
        device: Arc<D>,
        spec: &PortSpec,
        streams: &[StreamConfig],
    ) -> Result<Self, PortError> {
        let options = Options::read(spec, device.name())?;
        let name = spec.to_string();
        let error = bus_error(&name);
        let nic = Nic::new(device).map_err(&error)?;
        nic.reset().map_err(&error)?;
        let waiting = streams.iter().map(|stream| stream.clop.buffers).sum();
        let events = Events::new(&nic, QUEUE, waiting, None).map_err(&error);
        let (events, mapping) = events?;
        let mut running = Self {
            losses: Losses::new(&nic, &[], &[]),
            nic,
            port: name.clone(),
            controls: Vec::new(),
            events,
            lists: Vec::new(),
            index: [None; clop::LIST_BASE.count],
            tally: Tally::new(),
            mappings: vec![mapping],
            refused: 0,
        };
        running.run(&options, streams).map_err(&error)?;
        Ok(running)
    }

    fn run(&mut self, options: &Options, streams: &[StreamConfig]) -> Result<(), BusError> {
        let mut tlb = Tlb::new();
        let mut used = vec![0; self.nic.has.ports];
        let mut numbers = Vec::new();
        for (n, stream) in streams.iter().enumerate() {
            let Some(slot) = used.get_mut(stream.port) else {
                return Err(self.nic.error(format!(
                    "a stream of port {}; it has ports 0 to {}",
                    stream.port,
                    self.nic.has.ports - 1
                )));
            };
            if *slot >= port::STREAM.count {
                return Err(self.nic.error("a port has 16 streams at most"));
            }
            let number = list::number(stream.port, *slot);
            let config = ClopConfig {
                stream: number as u16,
                ..stream.clop.clone()
            };
            let (list, mapping) = List::new(&self.nic, &mut tlb, QUEUE, &config)?;
            self.lists.push(list);
            self.mappings.push(mapping);
            if let Some(place) = self.index.get_mut(number) {
                *place = Some(n as u8);
            }
            let at = self.nic.port(stream.port, port::STREAM) + *slot * port::STREAM.step;
            let form = (stream.form as u32) << 16;
            let word = port::STREAM_ENABLE | form | u32::from(stream.udp);
            self.nic.bus.write32(at, word);
            *slot += 1;
            numbers.push(number);
        }
        let ports: Vec<_> = (0..used.len()).filter(|&n| used[n] > 0).collect();
        self.losses = Losses::new(&self.nic, &ports, &numbers);
        let set_up = |&n| Control::set_up(&self.nic, n, options, 0);
        self.controls = ports.iter().map(set_up).collect();
        self.nic.connect()?;
        for control in &self.controls {
            // Pings and ARP are answered.
            control.send(true);
            control.receive(true);
        }
        Ok(())
    }

    /// Takes the next buffer that has been announced. Never waits.
    #[inline]
    pub fn poll(&mut self) -> Option<Announced> {
        while let Some(event) = self.events.poll() {
            let known = self.index.get(usize::from(event.stream)).copied();
            let stream = known.flatten().map(usize::from);
            let list = stream.and_then(|stream| self.lists.get_mut(stream));
            let Some((stream, list)) = stream.zip(list) else {
                self.refused += 1;
                continue;
            };
            let Ok(buffer) = list.accept(&event) else {
                self.refused += 1;
                continue;
            };
            list.release();
            self.count(&buffer);
            return Some(Announced { stream, buffer });
        }
        self.lists.iter_mut().for_each(List::release);
        None
    }

    /// Counts what is in a buffer; what was announced and is not there, the card has lost.
    #[inline]
    fn count(&mut self, buffer: &ClopBuffer) {
        let (mut frames, mut bytes) = (0, 0);
        for payload in buffer.payloads().flatten() {
            frames += 1;
            bytes += payload.data.len() as u64;
        }
        // Of a payload there are 16 bytes at least.
        let told = buffer.event().payloads.min(buffer.event().bytes / 16);
        let missing = u64::from(told).saturating_sub(frames);
        self.tally.count_from_wire(frames + missing, bytes);
        self.tally.count_dropped(Cause::DeviceError, missing);
    }

    /// Counts what the card has lost or taken itself. Reads registers: for housekeeping.
    pub fn sync_counters(&mut self) {
        self.losses.count(&mut self.tally);
    }

    /// The ledger's view of all streams. Payloads that were [polled](Self::poll) are from the wire;
    /// their consumer counts them as delivered, or as lost.
    #[must_use]
    pub fn tally(&self) -> TallyView {
        self.tally.view()
    }

    /// Events that announced nothing that can be: a card that makes any is at fault.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Stops the card. What nobody took is counted as aborted.
    ///
    /// # Errors
    /// The card does not come back from its reset.
    pub fn stop(mut self) -> Result<Balance, PortError> {
        self.end();
        let result = self.nic.reset();
        self.nic.cut_off();
        self.mappings.clear();
        result.map_err(bus_error(&self.port))?;
        Ok(self.tally.view().balance())
    }

    /// Has the card receive nothing more, and counts what is left.
    fn end(&mut self) {
        for control in &self.controls {
            control.end_receiving();
        }
        self.lists.iter().for_each(List::flush);
        let nic = self.nic.clone();
        // A flush needs room in the event queue, and so somebody who takes what is there.
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
        if !self.mappings.is_empty() {
            self.nic.quiesce();
            self.nic.cut_off();
        }
    }
}
