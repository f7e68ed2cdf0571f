//! The time stamp of payloads, and the timing input.

use super::record::{Record, put};
use super::soft_card::{NET_PS, SoftCard};
use crate::layouts::{
    EVENT_RECORD_FLAGS, EVENT_RECORD_INDEX, EVENT_RECORD_KIND, EVENT_RECORD_SEQUENCE,
    EVENT_RECORD_WIRE, TIMING_EDGE_CLOCKS, TIMING_EDGE_EDGE, TIMING_EDGE_FLAGS, TIMING_EDGE_KIND,
    TIMING_EDGE_STAGES, TIMING_EDGE_TRIGGERS,
};
use crate::registers::timing;
use crate::simulated::{Host, TimingInput};

/// Cycles with events that wait until their queue has room (hw/docs/operations.md, A full queue).
const WAITING: usize = 8;

/// Flags.
const UNEXPECTED_START: u32 = 1;
const UNEXPECTED_END: u32 = 2;
const EARLY: u32 = 4;
const LOST: u32 = 8;
const NO_ROOM: u32 = 16;

/// Common fields of the events of one moment.
#[derive(Clone, Copy)]
struct Moment {
    wire: u64,
    valid: bool,
    flags: u32,
}

fn at(register: crate::Register) -> usize {
    timing::THIS.at + register.at
}

impl SoftCard {
    /// The time that has passed until a moment, in units of ns / 65536, by the card's own clock.
    fn own_time(&self, control: u32, moment: u64) -> u128 {
        let by_clock = control & 1 == 1;
        let passed = moment.saturating_sub(self.timing.since);
        let passed = u128::from(passed) * 65536 / 1000;
        if by_clock { 0 } else { passed }
    }

    fn timing_at(&self, moment: u64) -> u64 {
        let passed = self.own_time(self.store.get(at(timing::CTRL)), moment);
        ((self.timing.time + passed) >> 16) as u64
    }

    /// The present time stamp, in ns, whether it has been set or not.
    pub(super) fn timing_now(&self) -> u64 {
        self.timing_at(self.now)
    }

    /// The time stamp of a payload that began at a moment, in picoseconds, if it is valid.
    pub(super) fn wire_at(&self, moment: u64) -> Option<u64> {
        self.timing.valid.then(|| self.timing_at(moment))
    }

    fn set_time(&mut self, ns: u64) {
        self.timing.time = u128::from(ns) << 16;
        self.timing.since = self.now;
        self.timing.valid = true;
    }

    /// A register was written.
    pub(super) fn timing_written(&mut self, register: usize, before: u32) {
        if register == timing::CTRL.at {
            // The time until now has passed by the previous clock.
            self.timing.time += self.own_time(before, self.now);
            self.timing.since = self.now;
        }
        if register == timing::SET_HIGH.at {
            let ns = self.store.get64(at(timing::SET));
            self.set_time(ns);
        }
        if register == timing::WATCH.at && before as u16 == 0 {
            (self.timing.clock_at, self.timing.is_known) = (self.now, false);
        }
    }

    /// Whether it has been set, and whether a burst is in progress.
    pub(super) fn timing_status(&self) -> u32 {
        u32::from(self.timing.valid) | u32::from(self.timing.in_burst) << 1
    }

    /// When the external clock is expected, and its tolerance, in picoseconds.
    fn watch(&self) -> Option<(u64, u64)> {
        let watch = u64::from(self.store.get(at(timing::WATCH)));
        let (expect, tolerance) = (watch & 0xffff, watch >> 16);
        (expect > 0).then_some((expect * NET_PS, tolerance * NET_PS))
    }

    /// When an external clock counts as missing, in picoseconds.
    pub(super) fn timing_due(&self) -> Option<u64> {
        let (expect, tolerance) = self.watch()?;
        Some(self.timing.clock_at + expect + tolerance + NET_PS)
    }

    /// Checks for a missing external clock.
    pub(super) fn look_for_clock(&mut self, host: &mut dyn Host) {
        while let Some(due) = self.timing_due().filter(|&due| due <= self.now)
            && let Some((expect, _)) = self.watch()
        {
            debug_assert!(due > self.timing.clock_at);
            self.timing.clock_at += expect;
            self.timing.is_known = false;
            self.store.count(at(timing::LOST), 1);
            self.tell_edges(host, &[], LOST);
        }
    }

    /// A pulse at the connector.
    pub(super) fn timing_pulse(&mut self, host: &mut dyn Host, input: TimingInput) {
        let control = self.store.get(at(timing::CTRL));
        let now = self.timing_now();
        match input {
            TimingInput::Clock => self.external_clock(host, control),
            TimingInput::Start => {
                self.store.set64(at(timing::START), now);
                let bursts = self.store.get(at(timing::BURSTS));
                self.store.set(at(timing::BURSTS), bursts.wrapping_add(1));
                let wrong = if self.timing.in_burst {
                    UNEXPECTED_START
                } else {
                    0
                };
                self.timing.in_burst = true;
                self.tell_edges(host, &[(0, 4)], wrong);
                if control & 2 != 0 {
                    let preset = self.store.get64(at(timing::PRESET));
                    self.set_time(preset);
                }
            }
            TimingInput::End => {
                self.store.set64(at(timing::END), now);
                let wrong = if self.timing.in_burst {
                    0
                } else {
                    UNEXPECTED_END
                };
                self.timing.in_burst = false;
                self.tell_edges(host, &[(1, 4)], wrong);
            }
            TimingInput::Trigger => {
                self.store.set64(at(timing::TRIGGER), now);
                self.store.count(at(timing::TRIGGERS), 1);
                self.tell_edges(host, &[(2, 8)], 0);
            }
        }
    }

    fn external_clock(&mut self, host: &mut dyn Host, control: u32) {
        self.store.count(at(timing::CLOCKS), 1);
        if control & 1 == 1 {
            self.timing.time += u128::from(self.store.get(at(timing::PERIOD)));
        }
        let waited = self.now - self.timing.clock_at;
        let early = |(expect, tolerance)| self.timing.is_known && waited + tolerance < expect;
        if self.watch().is_some_and(early) {
            self.store.count(at(timing::EARLY), 1);
            self.tell_edges(host, &[], EARLY);
        }
        (self.timing.clock_at, self.timing.is_known) = (self.now, true);
    }

    /// Sets flags, and reports edges, each with the bit that enables its event, and flags that
    /// were not set before.
    fn tell_edges(&mut self, host: &mut dyn Host, edges: &[(u32, u32)], wrong: u32) {
        let control = self.store.get(at(timing::CTRL));
        let before = self.store.get(at(timing::FLAGS));
        if wrong & (UNEXPECTED_START | UNEXPECTED_END) != 0 {
            self.store.count(at(timing::UNPAIRED), 1);
        }
        self.store.set(at(timing::FLAGS), before | wrong);
        let moment = Moment {
            wire: self.timing_now(),
            valid: self.timing.valid,
            flags: before | wrong,
        };
        let asked = edges.iter().filter(|(_, bit)| control & bit != 0);
        let mut kinds: Vec<_> = asked.map(|&(edge, _)| edge).collect();
        if wrong & !before != 0 && control & 16 != 0 {
            kinds.push(3);
        }
        if kinds.is_empty() {
            return;
        }
        if self.timing.waiting.len() == WAITING {
            self.store
                .count(at(timing::EVENTS_LOST), kinds.len() as u64);
            self.store.set(at(timing::FLAGS), before | wrong | NO_ROOM);
            return;
        }
        let records = kinds.into_iter().map(|edge| self.edge(edge, moment));
        let records = records.collect();
        self.timing.waiting.push_back(records);
        self.tell_timing(host);
    }

    /// The record of an edge, without its number.
    fn edge(&self, edge: u32, moment: Moment) -> Record {
        let mut record = [0; 64];
        put(&mut record, EVENT_RECORD_WIRE, &moment.wire.to_le_bytes());
        let bursts = self.store.get(at(timing::BURSTS));
        put(&mut record, EVENT_RECORD_INDEX, &bursts.to_le_bytes());
        put(&mut record, EVENT_RECORD_KIND, &[TIMING_EDGE_KIND]);
        let valid = u8::from(moment.valid);
        put(&mut record, EVENT_RECORD_FLAGS, &[valid]);
        put(&mut record, TIMING_EDGE_EDGE, &edge.to_le_bytes());
        put(&mut record, TIMING_EDGE_FLAGS, &moment.flags.to_le_bytes());
        let clocks = self.store.get64(at(timing::CLOCKS));
        put(&mut record, TIMING_EDGE_CLOCKS, &clocks.to_le_bytes());
        let triggers = self.store.get64(at(timing::TRIGGERS));
        put(&mut record, TIMING_EDGE_TRIGGERS, &triggers.to_le_bytes());
        let stamp = self.stamp() as u32;
        put(&mut record, TIMING_EDGE_STAGES + 8, &stamp.to_le_bytes());
        record
    }

    /// Reports edges, as far as they fit.
    pub(super) fn tell_timing(&mut self, host: &mut dyn Host) {
        let queue = (self.store.get(at(timing::CTRL)) >> 8 & 0xff) as usize;
        while self.has_room(queue)
            && let Some(first) = self.timing.waiting.front_mut()
        {
            let mut record = first.remove(0);
            if first.is_empty() {
                self.timing.waiting.pop_front();
            }
            let told = self.timing.told.to_le_bytes();
            put(&mut record, EVENT_RECORD_SEQUENCE, &told);
            self.tell(host, 0, queue, record);
            self.timing.told = self.timing.told.wrapping_add(1);
        }
    }
}
