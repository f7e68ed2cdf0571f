//! The card's time, which payloads are stamped with, and its timing input: an external clock, start
//! and end of burst, triggers (hw/docs/operations.md, Timing input).

use pollux_mempool::time::{Ns, WireTime};
use zerocopy::FromBytes;

use super::events::Events;
use super::layouts::TimingEdge;
use super::nic::Nic;
use super::registers::{card, timing};
use crate::bus::registers::Register;
use crate::bus::{Bus, BusError, Device, DmaMapping};
use crate::event::{EventFlags, EventRecord};

/// How a card is to tell the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimingConfig {
    /// The clock at its timing input; without one it counts its own time.
    pub clock: Option<ExternalClock>,
    /// What a start of burst sets the time to, in nanoseconds.
    pub preset: Option<WireTime>,
    /// Events that may wait to be taken; with 0 none are made.
    pub events: usize,
}

/// A clock at the timing input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalClock {
    /// From one of its edges to the next, in ns / 65536.
    pub period: u32,
    /// How much sooner or later an edge may come; one that comes sooner is told as early, one that
    /// does not come by then as lost. None: nobody looks.
    pub tolerance: Option<Ns>,
}

/// What has gone wrong since the flags were cleared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimingFlags(u32);

impl TimingFlags {
    /// A start of burst came within a burst.
    pub const UNEXPECTED_START: Self = Self(timing::FLAGS_UNEXPECTED_START);
    /// An end of burst came outside one.
    pub const UNEXPECTED_END: Self = Self(timing::FLAGS_UNEXPECTED_END);
    /// An external clock came early: a pulse too many.
    pub const EARLY: Self = Self(timing::FLAGS_EARLY);
    /// An external clock stayed away.
    pub const LOST: Self = Self(timing::FLAGS_LOST);
    /// An event found no room.
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

/// What came by the timing input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeKind {
    /// A burst starts.
    Start,
    /// A burst ends.
    End,
    /// A trigger.
    Trigger,
    /// A flag was set that was not set before.
    Flag,
}

/// An event of the timing input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// What it was.
    pub kind: EdgeKind,
    /// The time that was latched, if the card's time has been set; at a start of burst, before
    /// that set it.
    pub wire: Option<WireTime>,
    /// Number of the burst, from 1.
    pub burst: u32,
    /// Flags that were set then.
    pub flags: TimingFlags,
    /// External clocks so far.
    pub clocks: u64,
    /// Triggers so far.
    pub triggers: u64,
    /// Number of the event, wrapping: one that is missing was lost.
    pub sequence: u32,
}

impl Edge {
    fn from_record(record: &EventRecord) -> Option<Self> {
        let told = TimingEdge::read_from_bytes(&record.payload).ok()?;
        let kind = match told.edge.get() {
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
            flags: TimingFlags(told.flags.get()),
            clocks: told.clocks.get(),
            triggers: told.triggers.get(),
            sequence: record.sequence,
        })
    }
}

/// The times of the last edges, and how many there have been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latched {
    /// Of the last start of burst, before that set the time.
    pub start: WireTime,
    /// Of the last end of burst.
    pub end: WireTime,
    /// Of the last trigger.
    pub trigger: WireTime,
    /// Bursts.
    pub bursts: u32,
    /// External clocks.
    pub clocks: u64,
    /// Triggers.
    pub triggers: u64,
    /// Whether there is a burst now.
    pub in_burst: bool,
}

/// The time of a card that runs.
pub struct Timing<D: Device> {
    nic: Nic<D>,
    events: Option<Events<D>>,
    /// Events that told nothing that can be.
    refused: u64,
}

/// Parts of a period in a nanosecond.
const PARTS: u64 = 1 << 16;

impl<D: Device> Timing<D> {
    /// Has a card tell the time so, with events by a queue. The mapping is to be kept as long as the
    /// card runs.
    ///
    /// # Errors
    /// A clock that is too slow to be watched, or memory that cannot be had.
    pub(super) fn new(
        nic: &Nic<D>,
        queue: usize,
        config: &TimingConfig,
    ) -> Result<(Self, Option<DmaMapping>), BusError> {
        let (events, mapping) = match config.events {
            0 => (None, None),
            waiting => {
                let (events, mapping) = Events::new(nic, queue, waiting, None)?;
                (Some(events), Some(mapping))
            }
        };
        let timing = Self {
            nic: nic.clone(),
            events,
            refused: 0,
        };
        let mut control = (queue as u32) << 8;
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
        Ok((timing, mapping))
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

    /// When an external clock is expected, in cycles of the ports.
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

    /// Sets the time, from which on payloads are stamped with it.
    pub fn set(&self, time: WireTime) {
        self.nic.write64(self.at(timing::SET), time.0);
    }

    /// The time now, as it stood when the card was asked; none before it was set.
    #[must_use]
    pub fn now(&self) -> Option<WireTime> {
        let is_set = self.read(timing::STATUS) & timing::STATUS_VALID != 0;
        is_set.then(|| self.wire(timing::NOW))
    }

    /// What has been latched.
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

    /// What has gone wrong, all of which is forgotten with this.
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

    /// Events that told nothing that can be: a card that makes any is at fault.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }
}
