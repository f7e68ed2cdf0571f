//! The time stamp of payloads, and the timing input.

use super::SoftCard;
use super::events::put;
use crate::layouts::{
    EVENT_RECORD_FLAGS, EVENT_RECORD_INDEX, EVENT_RECORD_KIND, EVENT_RECORD_SEQUENCE,
    EVENT_RECORD_WIRE, TIMING_EDGE_CLOCKS, TIMING_EDGE_EDGE, TIMING_EDGE_FLAGS, TIMING_EDGE_KIND,
    TIMING_EDGE_STAGES, TIMING_EDGE_TRIGGERS,
};
use crate::registers::timing;
use crate::simulated::{Host, TimingInput};

/// The time line of payloads.
#[derive(Clone, Copy, Default)]
pub(super) struct Timing {
    /// Its time, in units of ns / 65536, at the moment `since`; none as long as nobody set it.
    set: Option<u128>,
    since: u64,
    in_burst: bool,
    events: u32,
}

/// Flags.
const UNEXPECTED_START: u32 = 1;
const UNEXPECTED_END: u32 = 2;

fn at(register: crate::Register) -> usize {
    timing::THIS.at + register.at
}

impl SoftCard {
    /// The time stamp now, in ns, as it counts whether somebody set it or not.
    pub(super) fn timing_now(&self) -> u64 {
        let Timing { set, since, .. } = self.timing;
        let base = set.unwrap_or(0);
        let by_clock = self.store.get(at(timing::CTRL)) & 1 == 1;
        let passed = if by_clock {
            0
        } else {
            u128::from(self.now - since) * 65536 / 1000
        };
        ((base + passed) >> 16) as u64
    }

    /// The time stamp of a payload, if it is valid.
    pub(super) fn wire_now(&self) -> Option<u64> {
        self.timing.set.map(|_| self.timing_now())
    }

    fn set_time(&mut self, ns: u64) {
        self.timing.set = Some(u128::from(ns) << 16);
        self.timing.since = self.now;
    }

    /// A register was written.
    pub(super) fn timing_written(&mut self, register: usize) {
        if register == timing::SET_HIGH.at {
            let ns = self.store.get64(at(timing::SET));
            self.set_time(ns);
        }
    }

    /// Whether it is set, and whether there is a burst.
    pub(super) fn timing_status(&self) -> u32 {
        u32::from(self.timing.set.is_some()) | u32::from(self.timing.in_burst) << 1
    }

    /// A pulse at the connector.
    pub(super) fn timing_pulse(&mut self, host: &mut dyn Host, input: TimingInput) {
        let control = self.store.get(at(timing::CTRL));
        let now = self.timing_now();
        let (edge, asked, flag) = match input {
            TimingInput::Clock => {
                self.store.count(at(timing::CLOCKS), 1);
                if control & 1 == 1 {
                    let period = u128::from(self.store.get(at(timing::PERIOD)));
                    self.timing.set = self.timing.set.map(|time| time + period);
                }
                return;
            }
            TimingInput::Start => {
                self.store.set64(at(timing::START), now);
                let bursts = self.store.get(at(timing::BURSTS));
                self.store.set(at(timing::BURSTS), bursts.wrapping_add(1));
                let flag = if self.timing.in_burst {
                    UNEXPECTED_START
                } else {
                    0
                };
                self.timing.in_burst = true;
                if control & 2 != 0 {
                    let preset = self.store.get64(at(timing::PRESET));
                    self.set_time(preset);
                }
                (0, control & 4 != 0, flag)
            }
            TimingInput::End => {
                self.store.set64(at(timing::END), now);
                let flag = if self.timing.in_burst {
                    0
                } else {
                    UNEXPECTED_END
                };
                self.timing.in_burst = false;
                (1, control & 4 != 0, flag)
            }
            TimingInput::Trigger => {
                self.store.set64(at(timing::TRIGGER), now);
                self.store.count(at(timing::TRIGGERS), 1);
                (2, control & 8 != 0, 0)
            }
        };
        if flag != 0 {
            let flags = self.store.get(at(timing::FLAGS));
            self.store.set(at(timing::FLAGS), flags | flag);
            self.store.count(at(timing::UNPAIRED), 1);
            if control & 16 != 0 {
                self.timing_event(host, 3, now);
            }
        }
        if asked {
            self.timing_event(host, edge, now);
        }
    }

    fn timing_event(&mut self, host: &mut dyn Host, edge: u32, wire: u64) {
        let queue = (self.store.get(at(timing::CTRL)) >> 8 & 7) as usize;
        let flags = self.store.get(at(timing::FLAGS));
        let mut record = [0; 64];
        put(&mut record, EVENT_RECORD_WIRE, &wire.to_le_bytes());
        let bursts = self.store.get(at(timing::BURSTS));
        put(&mut record, EVENT_RECORD_INDEX, &bursts.to_le_bytes());
        put(
            &mut record,
            EVENT_RECORD_SEQUENCE,
            &self.timing.events.to_le_bytes(),
        );
        put(&mut record, EVENT_RECORD_KIND, &[TIMING_EDGE_KIND]);
        put(
            &mut record,
            EVENT_RECORD_FLAGS,
            &[u8::from(self.timing.set.is_some())],
        );
        put(&mut record, TIMING_EDGE_EDGE, &edge.to_le_bytes());
        put(&mut record, TIMING_EDGE_FLAGS, &flags.to_le_bytes());
        let clocks = self.store.get64(at(timing::CLOCKS));
        put(&mut record, TIMING_EDGE_CLOCKS, &clocks.to_le_bytes());
        let triggers = self.store.get64(at(timing::TRIGGERS));
        put(&mut record, TIMING_EDGE_TRIGGERS, &triggers.to_le_bytes());
        let stamp = self.stamp() as u32;
        put(&mut record, TIMING_EDGE_STAGES + 8, &stamp.to_le_bytes());
        if self.has_room(queue) && self.tell(host, queue, record) {
            self.timing.events = self.timing.events.wrapping_add(1);
        } else {
            self.store.count(at(timing::EVENTS_LOST), 1);
            let flags = self.store.get(at(timing::FLAGS));
            self.store.set(at(timing::FLAGS), flags | 1 << 4);
        }
    }
}
