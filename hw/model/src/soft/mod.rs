//! The card in software: the golden model that its gateware is held to, seen from registers, memory
//! and wires. What takes the gateware cycles happens here at once, but for what the wire, a timeout
//! or a timer makes wait; so nothing here says how fast the card is.

mod events;
mod frame;
mod hits;
mod lists;
mod msix;
mod parse;
mod ports;
mod rings;
mod send;
mod store;
mod timing;
mod tlb;

use std::collections::HashMap;

use self::events::{Queue, Record};
use self::lists::List;
use self::msix::Vectors;
use self::ports::Port;
use self::rings::Ring;
use self::store::{Place, Store, WINDOW};
use self::timing::Timing;
use self::tlb::Faults;
use crate::registers::{card, clop, event, host, port, timing as timing_block, tx};
use crate::simulated::{Host, LinkSignal, ReadError, SimulatedCard, TimingInput, WireFrame};

/// A cycle of the core, and of the ports, in picoseconds.
const CORE_PS: u64 = 4000;
const NET_PS: u64 = 6400;

/// Ports.
const PORTS: usize = 4;

/// Longest payload of a write, and longest read: what the host of PCIe Gen3 commonly sets.
const MAX_PAYLOAD: usize = 256;
const MAX_READ: usize = 512;

/// No request crosses a page (PCIe 4.0 section 2.2.7).
const PAGE: u64 = 4096;

/// A card that is a program.
pub struct SoftCard {
    store: Store,
    now: u64,
    /// When it was reset last: stamps count from there.
    epoch: u64,
    bus_master: bool,
    msix: bool,
    ports: Vec<Port>,
    queues: [Queue; 8],
    vectors: Vectors,
    /// An event, and its queue, that the host bus has not taken.
    on_its_way: Option<(usize, Record)>,
    lists: Vec<List>,
    rings: Vec<Ring>,
    arp_age: Vec<HashMap<usize, u64>>,
    timing: Timing,
    /// Pulses at the connector that have not been looked at.
    pulses: Vec<TimingInput>,
    faults: Faults,
    /// Until when the host may still answer a read that it does not answer.
    unanswered: Option<u64>,
    /// A reset waits for that.
    resetting: bool,
}

impl Default for SoftCard {
    fn default() -> Self {
        Self::new()
    }
}

impl SoftCard {
    /// A card, as after power.
    #[must_use]
    pub fn new() -> Self {
        Self {
            store: Store::new(),
            now: 0,
            epoch: 0,
            bus_master: false,
            msix: false,
            ports: (0..PORTS).map(|_| Port::default()).collect(),
            queues: [Queue::default(); 8],
            vectors: Vectors::default(),
            on_its_way: None,
            lists: vec![List::default(); clop::LIST_BASE.count],
            rings: (0..PORTS).map(|_| Ring::default()).collect(),
            arp_age: vec![HashMap::new(); PORTS],
            timing: Timing::default(),
            pulses: Vec::new(),
            faults: Faults::default(),
            unanswered: None,
            resetting: false,
        }
    }

    /// The stamp counter.
    fn stamp(&self) -> u64 {
        self.stamp_at(self.now)
    }

    /// What it was at a moment, in picoseconds.
    fn stamp_at(&self, moment: u64) -> u64 {
        moment.saturating_sub(self.epoch) / NET_PS
    }

    /// Whether it has been told to begin no request.
    fn is_quiet(&self) -> bool {
        self.resetting || self.store.get(host::THIS.at + host::CTRL.at) & 1 == 1
    }

    fn host_count(&mut self, register: crate::Register) {
        self.store.count(host::THIS.at + register.at, 1);
    }

    /// Writes memory, in requests of the host's limits.
    fn dma_write(&mut self, host: &mut dyn Host, mut at: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let page = (PAGE - at % PAGE) as usize;
            let (piece, rest) = bytes.split_at(bytes.len().min(page).min(MAX_PAYLOAD));
            if self.bus_master {
                self.host_count(host::WRITES);
                host.write(at, piece);
            } else {
                self.host_count(host::WR_DISCARDED);
            }
            at = at.wrapping_add(piece.len() as u64);
            bytes = rest;
        }
    }

    /// Reads memory. A read that is not answered is [open](Self::is_waiting) from then on.
    fn dma_read(
        &mut self,
        host: &mut dyn Host,
        mut at: u64,
        len: usize,
    ) -> Result<Vec<u8>, ReadError> {
        let mut bytes = vec![0; len];
        let mut left = &mut bytes[..];
        if !self.bus_master {
            return Err(ReadError::Unsupported);
        }
        while !left.is_empty() {
            let page = (PAGE - at % PAGE) as usize;
            let n = left.len().min(page).min(MAX_READ);
            let (piece, rest) = left.split_at_mut(n);
            self.host_count(host::READS);
            if let Err(error) = host.read(at, piece) {
                match error {
                    ReadError::Unsupported => self.host_count(host::RD_UNSUPPORTED),
                    ReadError::Abort => self.host_count(host::RD_ABORT),
                    ReadError::Poisoned => self.host_count(host::RD_POISONED),
                    ReadError::Unanswered => {
                        let timeout = self.store.get(host::THIS.at + host::TIMEOUT.at);
                        self.unanswered = Some(self.now + u64::from(timeout) * CORE_PS);
                    }
                }
                return Err(error);
            }
            at = at.wrapping_add(n as u64);
            left = rest;
        }
        Ok(bytes)
    }

    /// Whether a read waits for its timeout. As answers come in one order, all reads behind it wait
    /// as well.
    fn is_waiting(&self) -> bool {
        self.unanswered.is_some()
    }

    /// Gives a read up that was not answered in time.
    fn give_up(&mut self) {
        if self
            .unanswered
            .take_if(|until| *until <= self.now)
            .is_some()
        {
            self.host_count(host::RD_TIMEOUT);
            if self.resetting {
                self.store.reset();
                self.clear();
            }
        }
    }

    /// Does all that can be done at this moment.
    fn work(&mut self, host: &mut dyn Host) {
        self.send_on(host);
        for n in 0..PORTS {
            self.drain(host, n);
            self.work_ring(host, n);
            self.work_sender(n);
            self.transmit(n);
        }
        self.tell_faults(host);
        self.tell_timing(host);
        self.interrupt(host);
    }

    /// The lists that somebody uses.
    fn lists_in_use(&self) -> impl Iterator<Item = usize> + use<'_> {
        (0..self.lists.len()).filter(|&list| {
            let control = self.store.get(clop::THIS.at + clop::LIST_CTRL.of(list));
            control & 1 == 1
        })
    }

    /// When something is due next.
    fn due(&self) -> Option<u64> {
        let lists = self.lists_in_use().filter_map(|list| self.list_due(list));
        let ports = (0..PORTS).flat_map(|n| {
            let port = &self.ports[n];
            let begins = (!port.out.is_empty()).then_some(port.out_free.max(port.paused));
            [port.arrives, begins, self.sender_due(n)]
        });
        let interrupts = (0..self.queues.len()).filter_map(|n| self.interrupt_due(n));
        lists
            .chain(ports.flatten())
            .chain(interrupts)
            .chain(self.timing_due())
            .chain(self.unanswered)
            .filter(|&due| due > self.now)
            .min()
    }

    /// All that is due now.
    fn tick(&mut self, host: &mut dyn Host) {
        self.give_up();
        self.look_for_clock(host);
        for input in std::mem::take(&mut self.pulses) {
            self.timing_pulse(host, input);
        }
        for n in 0..PORTS {
            while let Some(at) = self.ports[n].arrives.filter(|&at| at <= self.now) {
                let Some(frame) = self.ports[n].coming.pop_front() else {
                    self.ports[n].arrives = None;
                    break;
                };
                let next = self.ports[n].coming.front();
                let next = next.map(|frame| at + Port::duration(frame.bytes.len()));
                self.ports[n].arrives = next;
                self.receive(n, frame);
            }
            self.expire(n);
        }
        self.work(host);
        let lists: Vec<_> = self.lists_in_use().collect();
        for list in lists {
            self.look(host, list);
        }
        self.interrupt(host);
    }

    /// Everything but registers, time and wires is as after power.
    fn clear(&mut self) {
        let mut fresh = Self::new();
        std::mem::swap(&mut fresh.store, &mut self.store);
        for (port, old) in fresh.ports.iter_mut().zip(self.ports.drain(..)) {
            port.coming = old.coming;
            port.arrives = old.arrives;
            port.signal = old.signal;
            port.sent = old.sent;
        }
        (fresh.now, fresh.epoch) = (self.now, self.now);
        (fresh.bus_master, fresh.msix) = (self.bus_master, self.msix);
        fresh.vectors = self.vectors.clone();
        fresh.vectors.forget();
        *self = fresh;
    }

    /// What a register holds.
    fn get(&self, at: usize) -> u32 {
        let Some(Place {
            kind,
            instance,
            register,
            n,
            ..
        }) = Store::place(at)
        else {
            return 0;
        };
        if self.resetting && ![card::THIS.kind, host::THIS.kind].contains(&kind) {
            return 0;
        }
        if kind == card::THIS.kind && register.at == card::STATUS.at {
            return self.resetting.into();
        }
        let half = |value: u64, low: usize| (value >> (8 * (register.at - low))) as u32;
        if kind == card::THIS.kind && (card::STAMP.at..=card::STAMP_HIGH.at).contains(&register.at)
        {
            return half(self.stamp(), card::STAMP.at);
        }
        if kind == host::THIS.kind && register.at == host::STATUS.at {
            // All that it begins is done at once, but for that.
            let bits = [!self.is_waiting(), self.bus_master, self.msix];
            let bits = bits.iter().enumerate();
            let bits = bits.fold(0, |word, (i, &bit)| word | u32::from(bit) << i);
            return bits | MAX_PAYLOAD.ilog2().saturating_sub(7) << 4 | (MAX_READ.ilog2() - 7) << 8;
        }
        if kind == timing_block::THIS.kind {
            let now = timing_block::NOW.at..=timing_block::NOW_HIGH.at;
            if now.contains(&register.at) {
                return half(self.timing_now(), timing_block::NOW.at);
            }
            if register.at == timing_block::STATUS.at {
                return self.timing_status();
            }
        }
        if kind == port::THIS.kind && register.at == port::MAC_STATUS.at {
            return self.mac_status(instance);
        }
        if kind == tx::THIS.kind
            && (register.at == tx::RING_CONSUMER.at || register.at == tx::RING_STATUS.at)
        {
            return self.ring_status(n, register.at);
        }
        self.store.get(at)
    }

    /// The host writes some bytes of a register.
    fn set(&mut self, at: usize, value: u32, bytes: u32) {
        let Some(Place {
            kind,
            instance,
            register,
            n,
            ..
        }) = Store::place(at)
        else {
            return;
        };
        if self.resetting && ![card::THIS.kind, host::THIS.kind].contains(&kind) {
            return;
        }
        let before = self.store.get(at);
        if !self.store.write(at, value, bytes) {
            return;
        }
        let (now, value) = (self.store.get(at), value & bytes);
        match kind {
            kind if kind == card::THIS.kind && register.at == card::CTRL.at && value & 1 == 1 => {
                self.resetting = self.is_waiting();
                if !self.resetting {
                    self.store.reset();
                    self.clear();
                }
            }
            kind if kind == timing_block::THIS.kind => self.timing_written(register.at, before),
            kind if kind == event::THIS.kind => self.queue_written(n, register.at, before, now),
            kind if kind == tx::THIS.kind => self.ring_written(n, register.at, before, now),
            kind if kind == clop::THIS.kind => self.list_written(n, register.at, before, now),
            kind if kind == port::THIS.kind => self.port_written(instance, register.at, value),
            _ => {}
        }
    }
}

/// The bits of a word that an access of so many bytes is to.
fn enabled(at: usize, width: usize) -> u32 {
    u32::MAX >> (32 - 8 * width.clamp(1, 4)) << (8 * (at & 3))
}

impl SimulatedCard for SoftCard {
    fn read(&mut self, host: &mut dyn Host, bar: u8, at: usize, width: usize) -> u32 {
        self.work(host);
        let word = match bar {
            0 if at < WINDOW => self.get(at & !3),
            msix::BAR => self.vectors.get(at & !3),
            _ => 0,
        };
        (word & enabled(at, width)) >> (8 * (at & 3))
    }

    fn write(&mut self, host: &mut dyn Host, bar: u8, at: usize, width: usize, value: u32) {
        let (word, bytes) = (at & !3, enabled(at, width));
        let value = value << (8 * (at & 3));
        match bar {
            0 if at < WINDOW => self.set(word, value, bytes),
            msix::BAR => self.vectors.set(word, value, bytes),
            _ => return,
        }
        self.work(host);
        if bar == 0
            && let Some(Place { kind, n, .. }) = Store::place(word)
            && kind == clop::THIS.kind
        {
            self.look(host, n);
        }
    }

    fn advance(&mut self, host: &mut dyn Host, ps: u64) {
        let end = self.now + ps;
        self.tick(host);
        while let Some(due) = self.due().filter(|&due| due <= end) {
            self.now = due;
            self.tick(host);
        }
        self.now = end;
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn set_bus_master(&mut self, _host: &mut dyn Host, on: bool) {
        self.bus_master = on;
    }

    fn set_msix(&mut self, host: &mut dyn Host, on: bool) {
        self.msix = on;
        if on {
            // Whoever switches it on has programmed the vectors before.
            self.vectors.program();
        }
        self.interrupt(host);
    }

    fn reset(&mut self, _host: &mut dyn Host) {
        self.bus_master = false;
        self.msix = false;
        self.store.power();
        self.clear();
        self.vectors = Vectors::default();
    }

    fn put(&mut self, which: usize, frame: WireFrame) {
        // A port that hears the other of its pair does not hear its wire.
        if which < PORTS && self.port_get(which, port::MAC_CTRL) & 4 == 0 {
            self.arrive(which, frame);
        }
    }

    fn coming(&self, port: usize) -> usize {
        self.ports.get(port).map_or(0, |port| port.coming.len())
    }

    fn take(&mut self, port: usize) -> Option<WireFrame> {
        self.ports.get_mut(port)?.sent.pop_front()
    }

    fn set_signal(&mut self, port: usize, signal: LinkSignal) {
        if let Some(port) = self.ports.get_mut(port) {
            port.signal = signal;
        }
    }

    fn pulse(&mut self, input: TimingInput) {
        self.pulses.push(input);
    }

    fn send_stray_completion(&mut self, _tag: u16) {
        self.host_count(host::RD_UNEXPECTED);
    }
}
