//! Lists of buffers (docs/formats/clop.md).

use super::owners::LISTS;
use super::record::put;
use super::soft_card::{NET_PS, SoftCard};
use super::state::{List, Payload, Placement};
use crate::layouts::{
    CLOP_BUFFER_FIRST, CLOP_BUFFER_KIND, CLOP_BUFFER_LAST, CLOP_BUFFER_OLDEST,
    CLOP_BUFFER_PAYLOADS, CLOP_BUFFER_REASON, CLOP_BUFFER_STAGES, EVENT_RECORD_FLAGS,
    EVENT_RECORD_INDEX, EVENT_RECORD_KIND, EVENT_RECORD_LENGTH, EVENT_RECORD_SEQUENCE,
    EVENT_RECORD_STREAM, EVENT_RECORD_WIRE,
};
use crate::registers::clop;
use crate::simulated::Host;

/// Why a buffer is announced.
const FULL: u32 = 0;
const TIMEOUT: u32 = 1;
const FLUSH: u32 = 2;

/// Operations of a list.
struct Settings {
    base: u64,
    size: u32,
    count: u32,
    bare: bool,
    queue: usize,
    func: u32,
    stride: u32,
    timeout: u32,
    enable: bool,
    released: u32,
}

impl SoftCard {
    fn list_at(list: usize) -> usize {
        clop::THIS.at + clop::LIST_BASE.of(list)
    }

    fn list_settings(&self, list: usize) -> Settings {
        let register =
            |register: crate::Register| self.store.get(clop::THIS.at + register.of(list));
        let mode = register(clop::LIST_MODE);
        let is_unfit = (register(clop::LIST_BASE) | register(clop::LIST_SIZE)) & 63 != 0
            || register(clop::LIST_SIZE) > 1 << 30
            || register(clop::LIST_COUNT) > 1 << 16
            || register(clop::LIST_TIMEOUT) >= 1 << 31;
        Settings {
            base: self.store.get64(Self::list_at(list)),
            size: register(clop::LIST_SIZE),
            count: register(clop::LIST_COUNT),
            bare: mode & 1 == 1,
            queue: (mode >> 8 & 0xff) as usize,
            func: match self.port_owner(list / LISTS) {
                0 => mode >> 4 & 7,
                owner => owner.into(),
            },
            stride: (mode >> 16) * 16,
            timeout: register(clop::LIST_TIMEOUT),
            enable: register(clop::LIST_CTRL) & 1 == 1 && !is_unfit,
            released: register(clop::LIST_RELEASED),
        }
    }

    fn outcome(&mut self, list: usize, register: crate::Register) {
        self.store.count(clop::THIS.at + register.of(list), 1);
    }

    /// A register of a list was written.
    pub(super) fn list_written(&mut self, list: usize, register: usize, before: u32, now: u32) {
        if register == clop::LIST_CTRL.at && before & 1 == 0 && now & 1 == 1 {
            if let Some(list) = self.lists.get_mut(list) {
                *list = List::default();
            }
            for port in &mut self.ports {
                if let Some(waiting) = port.waiting.as_mut().filter(|one| one.list == list) {
                    waiting.live = false;
                }
            }
            let at = clop::THIS.at + clop::LIST_RELEASED.of(list);
            self.store.set(at, 0);
        }
        self.show_list(list);
    }

    /// Register values of a list.
    fn show_list(&mut self, list: usize) {
        let Some(state) = self.lists.get(list).copied() else {
            return;
        };
        let at = clop::THIS.at;
        self.store
            .set(at + clop::LIST_SERIAL.of(list), state.serial);
        self.store.set(at + clop::LIST_USED.of(list), state.used);
        self.store
            .set(at + clop::LIST_SEQUENCE.of(list), state.number);
    }

    /// Puts a payload into its list, or counts the cause of its refusal. It waits where a page is
    /// missing.
    pub(super) fn place(&mut self, host: &mut dyn Host, payload: &Payload) {
        let list = payload.list;
        let settings = self.list_settings(list);
        if !settings.enable {
            return self.outcome(list, clop::OUTCOME_OFF);
        }
        let space_of = |len: usize| {
            if settings.bare {
                settings.stride
            } else {
                (len as u32 + 31) & !15
            }
        };
        let refusal = self.refusal(host, list, &settings, payload, space_of(payload.bound));
        let Some(state) = self.lists.get(list).copied() else {
            return;
        };
        let number = state.number;
        if let Some(register) = refusal {
            self.count_offered(list);
            return self.outcome(list, register);
        }
        let len = payload.bytes.len();
        let space = space_of(len);
        let start = settings
            .base
            .wrapping_add(u64::from(state.index) * u64::from(settings.size))
            .wrapping_add(u64::from(state.used));
        let mut bytes = Vec::new();
        if !settings.bare {
            bytes.extend((len as u32).to_le_bytes());
            bytes.extend(payload.source_port.to_le_bytes());
            bytes.extend(u16::from(payload.wire.is_some()).to_le_bytes());
            bytes.extend(number.to_le_bytes());
            bytes.extend((payload.wire.unwrap_or(0) as u32).to_le_bytes());
        }
        bytes.extend(&payload.bytes);
        bytes.resize(space as usize, 0);
        let placement = Placement {
            list,
            func: settings.func,
            start,
            bytes,
            written: 0,
            until: None,
            live: true,
            number,
            wire: payload.wire,
            stamps: payload.stamps,
        };
        self.write_payload(host, placement);
    }

    /// Writes a payload to its place, as far as it has pages, and commits it when that is done.
    pub(super) fn write_payload(&mut self, host: &mut dyn Host, mut payload: Placement) {
        let list = payload.list;
        let Some(is_written) = self.write_chunks(host, &mut payload) else {
            if let Some(port) = self.ports.get_mut(list / LISTS) {
                port.waiting = Some(payload);
            }
            return;
        };
        if !payload.live {
            return self.outcome(list, clop::OUTCOME_OFF);
        }
        self.count_offered(list);
        if !is_written {
            return self.outcome(list, clop::OUTCOME_FAULT);
        }
        let placed = self.stamp();
        let Some(state) = self.lists.get_mut(list) else {
            return;
        };
        if state.payloads == 0 {
            state.first = payload.number;
            state.oldest = payload.stamps[0];
            state.wire = None;
        }
        state.used += payload.bytes.len() as u32;
        state.payloads += 1;
        state.last = payload.number;
        state.wire = state.wire.or(payload.wire);
        state.stages = [payload.stamps[0], payload.stamps[1], placed].map(|stamp| stamp as u32);
        self.outcome(list, clop::OUTCOME_PLACED);
        self.look(host, list);
        self.show_list(list);
    }

    /// A payload has used up its number.
    fn count_offered(&mut self, list: usize) {
        if let Some(state) = self.lists.get_mut(list) {
            state.number = state.number.wrapping_add(1);
        }
        self.show_list(list);
    }

    /// The cause why a payload has no space; full buffers are announced.
    fn refusal(
        &mut self,
        host: &mut dyn Host,
        list: usize,
        settings: &Settings,
        payload: &Payload,
        space: u32,
    ) -> Option<crate::Register> {
        let too_long = settings.bare && payload.bound as u32 > settings.stride;
        if space > settings.size || too_long || space == 0 {
            return Some(clop::OUTCOME_OVERSIZE);
        }
        let state = self.lists.get(list).copied()?;
        let told = match (payload.wire, state.wire) {
            (Some(wire), Some(first)) => i32::try_from(wire.wrapping_sub(first) as i64).is_ok(),
            _ => true,
        };
        let fits = state.used + space <= settings.size && told;
        if state.payloads > 0 && !fits && !self.announce(host, list, FULL) {
            return Some(clop::OUTCOME_NO_EVENT);
        }
        let state = self.lists.get(list).copied()?;
        let with_reader = state.serial.wrapping_sub(settings.released);
        (state.payloads == 0 && with_reader >= settings.count).then_some(clop::OUTCOME_NO_BUFFER)
    }

    /// Whether a payload has its place in the list and is not complete: then the list stays as it is.
    fn is_open(&self, list: usize) -> bool {
        let waiting = self.ports.get(list / LISTS).map(|port| &port.waiting);
        waiting.is_some_and(|waiting| {
            waiting
                .as_ref()
                .is_some_and(|one| one.list == list && one.live)
        })
    }

    /// Announces the current buffer, if there is a reason to.
    pub(super) fn look(&mut self, host: &mut dyn Host, list: usize) {
        let settings = self.list_settings(list);
        let at = clop::THIS.at + clop::LIST_CTRL.of(list);
        let flush = self.store.get(at) & 2 != 0;
        let Some(state) = self.lists.get(list).copied() else {
            return;
        };
        if !settings.enable {
            self.store.set(at, self.store.get(at) & !2);
            return;
        }
        if self.is_open(list) {
            return;
        }
        let least = if settings.bare { settings.stride } else { 16 };
        let waited = self.stamp().wrapping_sub(state.oldest);
        let reason = if state.used + least > settings.size {
            FULL
        } else if waited >= u64::from(settings.timeout) {
            TIMEOUT
        } else {
            FLUSH
        };
        let is_due = state.payloads > 0 && (reason != FLUSH || flush);
        let done = !is_due || self.announce(host, list, reason);
        if done && (is_due || state.payloads == 0) {
            self.store.set(at, self.store.get(at) & !2);
        }
        self.show_list(list);
    }

    /// When the timeout of a list's oldest payload ends, in picoseconds.
    pub(super) fn list_due(&self, list: usize) -> Option<u64> {
        let state = self.lists.get(list).filter(|state| state.payloads > 0)?;
        let settings = self.list_settings(list);
        let room = settings.enable && self.has_room(settings.queue) && !self.is_open(list);
        let due = state.oldest + u64::from(settings.timeout);
        room.then_some(due * NET_PS)
    }

    /// Gives the current buffer to the reader; false if there is no space for the event.
    fn announce(&mut self, host: &mut dyn Host, list: usize, reason: u32) -> bool {
        let settings = self.list_settings(list);
        let Some(state) = self.lists.get(list).copied() else {
            return true;
        };
        if !self.has_room(settings.queue) {
            return false;
        }
        let mut record = [0; 64];
        put(
            &mut record,
            EVENT_RECORD_WIRE,
            &state.wire.unwrap_or(0).to_le_bytes(),
        );
        put(&mut record, EVENT_RECORD_INDEX, &state.index.to_le_bytes());
        put(&mut record, EVENT_RECORD_LENGTH, &state.used.to_le_bytes());
        put(
            &mut record,
            CLOP_BUFFER_PAYLOADS,
            &state.payloads.to_le_bytes(),
        );
        put(&mut record, CLOP_BUFFER_FIRST, &state.first.to_le_bytes());
        put(&mut record, CLOP_BUFFER_LAST, &state.last.to_le_bytes());
        put(&mut record, CLOP_BUFFER_REASON, &reason.to_le_bytes());
        put(&mut record, CLOP_BUFFER_OLDEST, &state.oldest.to_le_bytes());
        for (i, stage) in state.stages.iter().enumerate() {
            put(
                &mut record,
                CLOP_BUFFER_STAGES + 4 * i,
                &stage.to_le_bytes(),
            );
        }
        put(
            &mut record,
            EVENT_RECORD_SEQUENCE,
            &state.serial.to_le_bytes(),
        );
        put(
            &mut record,
            EVENT_RECORD_STREAM,
            &(list as u16).to_le_bytes(),
        );
        put(&mut record, EVENT_RECORD_KIND, &[CLOP_BUFFER_KIND]);
        put(
            &mut record,
            EVENT_RECORD_FLAGS,
            &[u8::from(state.wire.is_some())],
        );
        let function = self.port_owner(list / LISTS);
        self.tell(host, function, settings.queue, record);
        self.lists[list] = List {
            index: if state.index + 1 < settings.count {
                state.index + 1
            } else {
                0
            },
            serial: state.serial.wrapping_add(1),
            number: state.number,
            ..List::default()
        };
        true
    }
}
