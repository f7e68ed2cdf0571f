//! The software card: the golden model of the gateware, as seen from registers, memory
//! and wires. It does at once what takes the gateware cycles, except for waits of the wire, a timeout
//! or a timer; so it does not model the card's speed.

mod events;
mod frame;
mod hits;
mod lists;
mod msix;
mod owners;
mod parse;
mod ports;
mod record;
mod rings;
mod send;
mod soft_card;
mod state;
mod store;
mod timing;
mod tlb;

use self::msix::Vectors;
pub use self::soft_card::SoftCard;
use self::soft_card::{MAX_PAYLOAD, MAX_READ};
use self::state::{PORTS, Port};
use self::store::{Place, Store, WINDOW};
use crate::registers::{
    card, clop, event, functions, host, port, timing as timing_block, tlb as tlb_block, tx,
};
use crate::simulated::{FUNCTIONS, Host, LinkSignal, SimulatedCard, TimingInput, WireFrame};

/// Kinds of the blocks that a reset of the card keeps.
const KEPT: [u32; 3] = [card::THIS.kind, host::THIS.kind, functions::THIS.kind];

impl SoftCard {
    /// Does all that is possible at this moment.
    fn work(&mut self, host: &mut dyn Host) {
        self.send_on(host);
        for n in 0..PORTS {
            self.drain(host, n);
            self.work_ring(host, n);
            self.work_sender(n);
            self.tell_lost(host, n);
            self.transmit(n);
        }
        self.tell_faults(host);
        self.tell_timing(host);
        self.interrupt(host);
    }

    /// The lists in use.
    fn lists_in_use(&self) -> impl Iterator<Item = usize> + use<'_> {
        (0..self.lists.len()).filter(|&list| {
            let control = self.store.get(clop::THIS.at + clop::LIST_CTRL.of(list));
            control & 1 == 1
        })
    }

    /// Time of the next action.
    fn due(&self) -> Option<u64> {
        let lists = self.lists_in_use().filter_map(|list| self.list_due(list));
        let ports = (0..PORTS).flat_map(|n| {
            let port = &self.ports[n];
            let begins = (!port.out.is_empty()).then_some(port.out_free.max(port.paused));
            let missing = port.waiting.as_ref().and_then(|payload| payload.until);
            [port.arrives, begins, self.sender_due(n), missing]
        });
        let interrupts = self.armed.iter().filter_map(|&n| self.interrupt_due(n));
        lists
            .chain(ports.flatten())
            .chain(interrupts)
            .chain(self.timing_due())
            .chain(self.unanswered)
            .filter(|&due| due > self.now)
            .min()
    }

    /// All actions that are due.
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

    /// Everything except registers, time and wires has its power-on state.
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
        (fresh.function, fresh.bus_master, fresh.msix) =
            (self.function, self.bus_master, self.msix);
        fresh.vectors = self.vectors.clone();
        fresh.vectors.forget();
        *self = fresh;
    }

    /// The value of a register.
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
        if self.resetting && !KEPT.contains(&kind) {
            return 0;
        }
        if kind == card::THIS.kind && register.at == card::FUNCTION.at {
            return self.function.into();
        }
        if kind == functions::THIS.kind && register.at == functions::FUNCTION_STATUS.at {
            let bits = [0, self.bus_master, self.msix].map(|bits| u32::from(bits >> n & 1));
            return bits[1] << 1 | bits[2] << 2;
        }
        if kind == card::THIS.kind && register.at == card::STATUS.at {
            // The clock of its ports runs.
            return 2 | u32::from(self.resetting);
        }
        let half = |value: u64, low: usize| (value >> (8 * (register.at - low))) as u32;
        if kind == card::THIS.kind && (card::STAMP.at..=card::STAMP_HIGH.at).contains(&register.at)
        {
            return half(self.stamp(), card::STAMP.at);
        }
        if kind == host::THIS.kind && register.at == host::STATUS.at {
            // Every other request completes at once.
            let bits = [!self.is_waiting(), self.is_master(0), self.msix & 1 == 1];
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
        if self.resetting && !KEPT.contains(&kind) {
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
            kind if kind == functions::THIS.kind
                && register.at == functions::FUNCTION_CTRL.at
                && value & 1 == 1 =>
            {
                self.forget(n as u8);
            }
            kind if kind == timing_block::THIS.kind => self.timing_written(register.at, before),
            kind if kind == tlb_block::THIS.kind => self.tlb_written(n, register.at, now),
            kind if kind == event::THIS.kind => self.queue_written(n, register.at, before, now),
            kind if kind == tx::THIS.kind => self.ring_written(n, register.at, before, now),
            kind if kind == clop::THIS.kind => self.list_written(n, register.at, before, now),
            kind if kind == port::THIS.kind => self.port_written(instance, register.at, value),
            _ => {}
        }
    }
}

/// The bits of a word that an access of so many bytes covers.
fn enabled(at: usize, width: usize) -> u32 {
    u32::MAX >> (32 - 8 * width.clamp(1, 4)) << (8 * (at & 3))
}

impl SimulatedCard for SoftCard {
    fn act_as(&mut self, function: u8) {
        self.function = function % FUNCTIONS as u8;
    }

    fn read(&mut self, host: &mut dyn Host, bar: u8, at: usize, width: usize) -> u32 {
        self.work(host);
        let word = match bar {
            _ if !self.is_allowed(false, bar, at & !3) => 0,
            0 if at < WINDOW => self.get(at & !3),
            msix::BAR => self.vectors.get(at & !3, &self.vectors_of(self.function)),
            _ => 0,
        };
        (word & enabled(at, width)) >> (8 * (at & 3))
    }

    fn write(&mut self, host: &mut dyn Host, bar: u8, at: usize, width: usize, value: u32) {
        let (word, bytes) = (at & !3, enabled(at, width));
        let value = value << (8 * (at & 3));
        let (value, bytes) = self.stamped(bar, word, value, bytes);
        match bar {
            _ if !self.is_allowed(true, bar, word) => return,
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
        let bit = 1 << self.function;
        self.bus_master = self.bus_master & !bit | u8::from(on) << self.function;
    }

    fn set_msix(&mut self, host: &mut dyn Host, vectors: u16) {
        let bit = 1 << self.function;
        self.msix = self.msix & !bit | u8::from(vectors > 0) << self.function;
        // The caller has programmed the vectors before.
        let own = self.vectors_of(self.function);
        self.vectors.program(&own, vectors);
        self.interrupt(host);
    }

    fn reset(&mut self, _host: &mut dyn Host) {
        if self.function > 0 {
            let bit = 1 << self.function;
            (self.bus_master, self.msix) = (self.bus_master & !bit, self.msix & !bit);
            self.forget(self.function);
            return;
        }
        (self.bus_master, self.msix) = (0, 0);
        self.store.power();
        self.clear();
        self.vectors = Vectors::default();
    }

    fn put(&mut self, which: usize, frame: WireFrame) {
        // A looped port does not receive from its wire.
        if which < PORTS && !self.is_looped(which) {
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
