//! The TLB, and the events of its faults.

use super::record::put;
use super::soft_card::SoftCard;
use crate::layouts::{
    EVENT_RECORD_INDEX, EVENT_RECORD_KIND, EVENT_RECORD_LENGTH, EVENT_RECORD_SEQUENCE,
    TLB_FAULT_ADDRESS, TLB_FAULT_FUNCTION, TLB_FAULT_KIND, TLB_FAULT_REASON, TLB_FAULT_STAGES,
};
use crate::registers::tlb;
use crate::simulated::Host;

/// Faults that wait until their queue has room (hw/docs/operations.md, A full queue).
const WAITING: usize = 8;

impl SoftCard {
    /// The bus address of a payload; a fault is counted, and reported if enabled.
    pub(super) fn translate(
        &mut self,
        host: &mut dyn Host,
        at: u64,
        len: u32,
        func: u32,
        list: usize,
    ) -> Option<u64> {
        let mut reason = 0_u32;
        for entry in 0..tlb::ENTRY_CTRL.count {
            let register = |register: crate::Register| tlb::THIS.at + register.of(entry);
            let control = self.store.get(register(tlb::ENTRY_CTRL));
            let page = 1_u64 << (control >> 8 & 31).clamp(12, 30);
            let start = self.store.get64(register(tlb::ENTRY_VIRTUAL)) & !(page - 1);
            if control & 1 == 0 || at & !(page - 1) != start {
                continue;
            }
            if control >> 16 & 0xff != func {
                reason = 2;
            } else if (at - start) + u64::from(len) > page {
                reason = 1;
            } else {
                let bus = self.store.get64(register(tlb::ENTRY_BUS)) & !(page - 1);
                return Some(bus + (at - start));
            }
        }
        self.fault(at, len, func, list, reason);
        self.tell_faults(host);
        None
    }

    /// Counts a fault, and stores its report, if enabled.
    fn fault(&mut self, at: u64, len: u32, func: u32, list: usize, reason: u32) {
        self.store.count(tlb::THIS.at + tlb::FAULTS.at, 1);
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
        let queue = (self.store.get(tlb::THIS.at + tlb::CTRL.at) >> 8 & 7) as usize;
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
