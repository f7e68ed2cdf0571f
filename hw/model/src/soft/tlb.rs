//! The TLB: pages, chunks that wait for one, and their events.

use super::owners::LISTS;
use super::record::put;
use super::soft_card::{CORE_PS, PAGE, SoftCard};
use super::state::{PORTS, Placement};
use crate::layouts::{
    EVENT_RECORD_INDEX, EVENT_RECORD_KIND, EVENT_RECORD_LENGTH, EVENT_RECORD_SEQUENCE,
    TLB_FAULT_ADDRESS, TLB_FAULT_FUNCTION, TLB_FAULT_KIND, TLB_FAULT_REASON, TLB_FAULT_STAGES,
};
use crate::registers::{functions, tlb};
use crate::simulated::Host;

/// Reasons of a fault.
const NO_ENTRY: u32 = 0;
const DENIED: u32 = 2;

/// Bits of an entry's control.
const VALID: u32 = 1;
const NO_WRITE: u32 = 1 << 2;
const ILLEGAL: u32 = 1 << 3;

/// Key of the pages that lists may write.
const LIST_KEY: u32 = 0;

impl SoftCard {
    /// The bus address of the next chunk of a payload, which is to be written.
    fn look_up(&self, at: u64, func: u32) -> Result<u64, u32> {
        for entry in 0..tlb::ENTRY_CTRL.count {
            let register = |register: crate::Register| tlb::THIS.at + register.of(entry);
            let control = self.store.get(register(tlb::ENTRY_CTRL));
            let page = 1_u64 << (control >> 8 & 31);
            let start = self.store.get64(register(tlb::ENTRY_VIRTUAL));
            if control & VALID == 0 || control >> 16 & 0xff != func || at & !(page - 1) != start {
                continue;
            }
            let key = self.store.get(register(tlb::ENTRY_KEY));
            if control & NO_WRITE != 0 || key != LIST_KEY {
                return Err(DENIED);
            }
            return Ok(self.store.get64(register(tlb::ENTRY_BUS)) + (at - start));
        }
        Err(NO_ENTRY)
    }

    /// Writes a payload in chunks, each in its page: `None` while one waits for its page; whether
    /// all have been written.
    pub(super) fn write_chunks(
        &mut self,
        host: &mut dyn Host,
        payload: &mut Placement,
    ) -> Option<bool> {
        while payload.written < payload.bytes.len() {
            let at = payload.start.wrapping_add(payload.written as u64);
            let chunk = (PAGE - at % PAGE) as usize;
            match self.look_up(at, payload.func) {
                Ok(bus) => {
                    let left = payload.bytes.get(payload.written..).unwrap_or_default();
                    let bytes = left.get(..chunk).unwrap_or(left);
                    self.dma_write(host, payload.func as u8, bus, bytes);
                    payload.written += bytes.len();
                    payload.until = None;
                }
                Err(reason) => {
                    let timeout = self.store.get(tlb::THIS.at + tlb::TIMEOUT.at);
                    let waits = reason == NO_ENTRY && timeout > 0;
                    let until = payload.until;
                    if until.is_none() {
                        self.report_chunk(at, chunk as u32, payload, reason);
                        self.tell_faults(host);
                    }
                    if waits && until.is_none_or(|until| self.now < until) {
                        if until.is_none() {
                            self.store.count(tlb::THIS.at + tlb::MISSES.at, 1);
                            payload.until = Some(self.now + u64::from(timeout) * CORE_PS);
                        }
                        return None;
                    }
                    self.store.count(tlb::THIS.at + tlb::FAULTS.at, 1);
                    return Some(false);
                }
            }
        }
        Some(true)
    }

    /// A register of the TLB was written: no access is in progress that an invalid entry allowed. An
    /// entry is valid only as a page, which begins at a multiple of its size in both addresses, and until
    /// one of them is written.
    pub(super) fn tlb_written(&mut self, entry: usize, register: usize, now: u32) {
        if register == tlb::INVALIDATE.at {
            self.store.set(tlb::THIS.at + tlb::INVALIDATED.at, now);
        }
        let at = |register: crate::Register| tlb::THIS.at + register.of(entry);
        let control = at(tlb::ENTRY_CTRL);
        if (tlb::ENTRY_VIRTUAL.at..tlb::ENTRY_CTRL.at).contains(&register) {
            self.store.set(control, self.store.get(control) & !VALID);
        } else if register == tlb::ENTRY_CTRL.at {
            let addresses = [tlb::ENTRY_VIRTUAL, tlb::ENTRY_BUS];
            let [start, bus] = addresses.map(|address| self.store.get64(at(address)));
            let log2 = now >> 8 & 31;
            let is_page = (12..=30).contains(&log2) && (start | bus) & ((1 << log2) - 1) == 0;
            let state = match now & VALID {
                VALID if !is_page => ILLEGAL,
                valid => valid,
            };
            self.store.set(control, now & !(VALID | ILLEGAL) | state);
        }
    }

    /// Where the faults of a function are reported: an event queue, if any.
    fn fault_queue(&self, func: u8) -> Option<usize> {
        let register = functions::FAULT_CTRL.of(func.into());
        let control = self.store.get(functions::THIS.at + register);
        (control & 1 == 1).then_some((control >> 8 & 0xff) as usize)
    }

    /// Stores the report of a chunk, if its function has enabled that. Each port has a place for one.
    fn report_chunk(&mut self, at: u64, len: u32, payload: &Placement, reason: u32) {
        let (func, list) = (payload.func, payload.list);
        if self.fault_queue(func as u8).is_none() {
            return;
        }
        let stamp = self.stamp() as u32;
        let Some(place @ None) = self.faults.waiting.get_mut(list / LISTS) else {
            self.store.count(tlb::THIS.at + tlb::EVENTS_LOST.at, 1);
            return;
        };
        let mut record = [0; 64];
        put(
            &mut record,
            EVENT_RECORD_INDEX,
            &(list as u32).to_le_bytes(),
        );
        put(&mut record, EVENT_RECORD_LENGTH, &len.to_le_bytes());
        put(&mut record, EVENT_RECORD_KIND, &[TLB_FAULT_KIND]);
        put(&mut record, TLB_FAULT_ADDRESS, &at.to_le_bytes());
        put(&mut record, TLB_FAULT_FUNCTION, &func.to_le_bytes());
        put(&mut record, TLB_FAULT_REASON, &reason.to_le_bytes());
        put(&mut record, TLB_FAULT_STAGES + 8, &stamp.to_le_bytes());
        *place = Some((func as u8, record));
    }

    /// Reports faults, as far as they fit; one whose function has no events any more is forgotten.
    pub(super) fn tell_faults(&mut self, host: &mut dyn Host) {
        for port in 0..PORTS {
            let Some((func, mut record)) = self.faults.waiting[port] else {
                continue;
            };
            let queue = self.fault_queue(func);
            if queue.is_some_and(|queue| !self.has_room(queue)) {
                continue;
            }
            self.faults.waiting[port] = None;
            let told = self.faults.told.get_mut(usize::from(func));
            if let (Some(queue), Some(told)) = (queue, told) {
                put(&mut record, EVENT_RECORD_SEQUENCE, &told.to_le_bytes());
                *told = told.wrapping_add(1);
                self.tell(host, func, queue, record);
            }
        }
    }

    /// A function in reset: its faults are not reported any more, and its chunks wait for no page.
    pub(super) fn forget_faults(&mut self, function: u8) {
        let register = functions::FAULT_CTRL.of(function.into());
        self.store.set(functions::THIS.at + register, 0);
        for place in &mut self.faults.waiting {
            place.take_if(|(func, _)| *func == function);
        }
        if let Some(told) = self.faults.told.get_mut(usize::from(function)) {
            *told = 0;
        }
        for port in &mut self.ports {
            let payload = port.waiting.as_mut();
            let payload = payload.filter(|payload| payload.func == function.into());
            if let Some(until) = payload.and_then(|payload| payload.until.as_mut()) {
                *until = self.now;
            }
        }
    }
}
