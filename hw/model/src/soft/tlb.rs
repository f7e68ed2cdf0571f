//! The TLB: pages, chunks that wait for one, and their events.

use super::record::put;
use super::soft_card::{CORE_PS, PAGE, SoftCard};
use super::state::Placement;
use crate::layouts::{
    EVENT_RECORD_INDEX, EVENT_RECORD_KIND, EVENT_RECORD_LENGTH, EVENT_RECORD_SEQUENCE,
    TLB_FAULT_ADDRESS, TLB_FAULT_FUNCTION, TLB_FAULT_KIND, TLB_FAULT_REASON, TLB_FAULT_STAGES,
};
use crate::registers::tlb;
use crate::simulated::Host;

/// Faults that wait until their queue has room (hw/docs/operations.md, A full queue).
const WAITING: usize = 8;

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

    /// Stores the report of a chunk, if enabled.
    fn report_chunk(&mut self, at: u64, len: u32, payload: &Placement, reason: u32) {
        let (func, list) = (payload.func, payload.list);
        if self.store.get(tlb::THIS.at + tlb::CTRL.at) & 1 == 0 {
            return;
        }
        if self.faults.waiting.len() == WAITING {
            self.store.count(tlb::THIS.at + tlb::EVENTS_LOST.at, 1);
            return;
        }
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
        put(
            &mut record,
            TLB_FAULT_STAGES + 8,
            &(self.stamp() as u32).to_le_bytes(),
        );
        self.faults.waiting.push_back(record);
    }

    /// Reports faults, as far as they fit.
    pub(super) fn tell_faults(&mut self, host: &mut dyn Host) {
        let queue = (self.store.get(tlb::THIS.at + tlb::CTRL.at) >> 8 & 0xff) as usize;
        while self.has_room(queue)
            && let Some(mut record) = self.faults.waiting.pop_front()
        {
            let told = self.faults.told.to_le_bytes();
            put(&mut record, EVENT_RECORD_SEQUENCE, &told);
            self.tell(host, 0, queue, record);
            self.faults.told = self.faults.told.wrapping_add(1);
        }
    }
}
