//! The card's time, which payloads are stamped with, and its timing input: an external clock, start
//! and end of burst, triggers (hw/docs/operations.md, Timing input).

use pollux_mempool::time::{Ns, WireTime};
use zerocopy::FromBytes;

use super::events::Events;
use super::layouts::TimingEdge;
use super::nic::Nic;
use super::registers::{card, timing};
use crate::bus::registers::Register;
use crate::bus::{Bus, BusError, Device};
use crate::event::{EventFlags, EventRecord};
use crate::quarantine::Quarantine;

/// Configuration of the card's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimingConfig {
    /// The clock at the timing input; without one the card counts its own time.
    pub clock: Option<ExternalClock>,
    /// Time that a start of burst sets, in nanoseconds.
    pub preset: Option<WireTime>,
    /// Capacity for events that are not yet taken; 0 disables events.
    pub events: usize,
}

/// A clock at the timing input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalClock {
    /// Period between its edges, in ns / 65536.
    pub period: u32,
    /// Tolerated deviation of an edge. An earlier edge is reported as early; one that is missing
    /// after it, as lost. `None`: not monitored.
    pub tolerance: Option<Ns>,
}

/// Errors since the flags were cleared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimingFlags(u32);

impl TimingFlags {
    /// A start of burst within a burst.
    pub const UNEXPECTED_START: Self = Self(timing::FLAGS_UNEXPECTED_START);
    /// An end of burst outside a burst.
    pub const UNEXPECTED_END: Self = Self(timing::FLAGS_UNEXPECTED_END);
    /// An external clock came early: an extra pulse.
    pub const EARLY: Self = Self(timing::FLAGS_EARLY);
    /// An external clock pulse was missing.
    pub const LOST: Self = Self(timing::FLAGS_LOST);
    /// An event was lost because the queue was full.
    pub const EVENT: Self = Self(timing::FLAGS_EVENT);

    /// Whether all of `other` are set.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether none is set.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Kind of an edge of the timing input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeKind {
    /// A burst starts.
    Start,
    /// A burst ends.
    End,
    /// A trigger.
    Trigger,
    /// A flag was newly set.
    Flag,
}

/// An event of the timing input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Its kind.
    pub kind: EdgeKind,
    /// The latched time, if the card's time has been set; at a start of burst, the time before it
    /// was set.
    pub wire: Option<WireTime>,
    /// Number of the burst, from 1.
    pub burst: u32,
    /// Flags that were set then.
    pub flags: TimingFlags,
    /// External clocks so far.
    pub clocks: u64,
    /// Triggers so far.
    pub triggers: u64,
    /// Number of the event, wrapping; a gap means lost events.
    pub sequence: u32,
}

impl Edge {
    fn from_record(record: &EventRecord) -> Option<Self> {
        let read = TimingEdge::read_from_bytes(&record.payload).ok()?;
        let kind = match read.edge.get() {
            0 => EdgeKind::Start,
            1 => EdgeKind::End,
            2 => EdgeKind::Trigger,
            3 => EdgeKind::Flag,
            _ => return None,
        };
        let is_valid = record.flags.contains(EventFlags::WIRE_TIME);
        (record.kind == TimingEdge::KIND).then_some(Self {
            kind,
            wire: is_valid.then_some(record.wire),
            burst: record.index,
            flags: TimingFlags(read.flags.get()),
            clocks: read.clocks.get(),
            triggers: read.triggers.get(),
            sequence: record.sequence,
        })
    }
}

/// Times of the last edges, and their counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latched {
    /// Time of the last start of burst, before it was set.
    pub start: WireTime,
    /// Time of the last end of burst.
    pub end: WireTime,
    /// Time of the last trigger.
    pub trigger: WireTime,
    /// Number of bursts.
    pub bursts: u32,
    /// Number of external clocks.
    pub clocks: u64,
    /// Number of triggers.
    pub triggers: u64,
    /// Whether a burst is in progress.
    pub in_burst: bool,
}

/// Time of a running card.
pub struct Timing<D: Device> {
    nic: Nic<D>,
    events: Option<Events<D>>,
    /// Number of invalid events.
    refused: u64,
}

/// Parts of a period in a nanosecond.
const PARTS: u64 = 1 << 16;

impl<D: Device> Timing<D> {
    /// Configures the time of a card, with events to a queue.
    ///
    /// # Errors
    /// A clock that is too slow to be monitored, settings of another function than 0, or memory that
    /// is not available.
    pub(super) fn new(
        nic: &Nic<D>,
        queue: usize,
        config: &TimingConfig,
        quarantine: &Quarantine,
    ) -> Result<Self, BusError> {
        if !nic.is_first() && *config != TimingConfig::default() {
            return Err(nic.error("the time and its input are function 0's to set"));
        }
        let events = match config.events {
            0 => None,
            waiting => Some(Events::new(nic, queue, waiting, None, quarantine)?),
        };
        let timing = Self {
            nic: nic.clone(),
            events,
            refused: 0,
        };
        if !nic.is_first() {
            return Ok(timing);
        }
        let mut control = (nic.queue(queue) as u32) << 8;
        if timing.events.is_some() {
            control |=
                timing::CTRL_EVENT_BURST | timing::CTRL_EVENT_TRIGGER | timing::CTRL_EVENT_FLAG;
        }
        if let Some(clock) = config.clock {
            timing.write(timing::PERIOD, clock.period);
            timing.write(timing::WATCH, timing.watch(&clock)?);
            control |= timing::CTRL_FROM_CLOCK;
        }
        if let Some(preset) = config.preset {
            nic.write64(timing.at(timing::PRESET), preset.0);
            control |= timing::CTRL_SET_ON_START;
        }
        timing.write(timing::CTRL, control);
        Ok(timing)
    }

    fn at(&self, register: Register) -> usize {
        self.nic.at.timing + register.at
    }

    fn write(&self, register: Register, value: u32) {
        self.nic.bus.write32(self.at(register), value);
    }

    fn read(&self, register: Register) -> u32 {
        self.nic.bus.read32(self.at(register))
    }

    fn wire(&self, register: Register) -> WireTime {
        WireTime(self.nic.read64(self.at(register)))
    }

    /// Limits for the next external clock, in cycles of the ports' clock.
    fn watch(&self, clock: &ExternalClock) -> Result<u32, BusError> {
        let Some(tolerance) = clock.tolerance else {
            return Ok(0);
        };
        let khz = u64::from(self.nic.bus.read32(self.nic.at.card + card::NET_KHZ.at));
        let expect = (u64::from(clock.period) * khz).div_ceil(PARTS * 1_000_000);
        let tolerance = u64::from(self.nic.cycles(card::NET_KHZ, tolerance));
        match (u16::try_from(expect), u16::try_from(tolerance)) {
            (Ok(expect @ 1..), Ok(tolerance)) => Ok(u32::from(tolerance) << 16 | u32::from(expect)),
            _ => Err(self.nic.error(format!(
                "a clock of {expect} cycles of 6.4 ns, give or take {tolerance}: it can watch \
                 clocks of up to 65535; leave out the tolerance"
            ))),
        }
    }

    /// Sets the time, which payloads are stamped with from then on.
    pub fn set(&self, time: WireTime) {
        self.nic.write64(self.at(timing::SET), time.0);
    }

    /// The time at which the card was read; `None` before it was set.
    #[must_use]
    pub fn now(&self) -> Option<WireTime> {
        let is_set = self.read(timing::STATUS) & timing::STATUS_VALID != 0;
        is_set.then(|| self.wire(timing::NOW))
    }

    /// The latched values.
    #[must_use]
    pub fn latched(&self) -> Latched {
        Latched {
            start: self.wire(timing::START),
            end: self.wire(timing::END),
            trigger: self.wire(timing::TRIGGER),
            bursts: self.read(timing::BURSTS),
            clocks: self.nic.read64(self.at(timing::CLOCKS)),
            triggers: self.nic.read64(self.at(timing::TRIGGERS)),
            in_burst: self.read(timing::STATUS) & timing::STATUS_BURST != 0,
        }
    }

    /// The errors since the last call; clears them.
    pub fn take_flags(&self) -> TimingFlags {
        let flags = self.read(timing::FLAGS);
        self.write(timing::FLAGS, flags);
        TimingFlags(flags)
    }

    /// The next event. Never waits.
    #[inline]
    pub fn poll(&mut self) -> Option<Edge> {
        while let Some(record) = self.events.as_mut()?.poll() {
            match Edge::from_record(&record) {
                None => self.refused += 1,
                edge => return edge,
            }
        }
        None
    }

    /// Number of invalid events: a card that produces any is faulty.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }
}
