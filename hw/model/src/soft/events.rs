//! Event queues and interrupts (hw/docs/interfaces.md, Events).

use super::owners::owner_of;
use super::record::{Record, put};
use super::soft_card::{CORE_PS, SoftCard};
use super::state::Queue;
use crate::layouts::{EVENT_RECORD_FLAGS, EVENT_RECORD_SIZE};
use crate::registers::{event, host as host_block};
use crate::simulated::Host;

/// Records that stay free, so that each source has space.
const SPARE: u32 = 4;

/// Bits of a queue's control.
const ENABLE: u32 = 1;
const MISALIGNED: u32 = 1 << 1;

impl SoftCard {
    fn queue_at(queue: usize) -> usize {
        event::THIS.at + queue * event::QUEUE_BASE.step
    }

    fn queue_register(&self, queue: usize, register: crate::Register) -> u32 {
        self.store.get(Self::queue_at(queue) + register.at)
    }

    /// Records that are free; none of a disabled queue, with a misaligned base, or with an impossible
    /// released number.
    fn free(&self, queue: usize) -> u32 {
        let control = self.queue_register(queue, event::QUEUE_CTRL);
        if control & 3 != ENABLE {
            return 0;
        }
        let size = 1_u32 << (control >> 8 & 31).clamp(3, 20);
        let produced = self.queue_register(queue, event::QUEUE_PRODUCED);
        let released = self.queue_register(queue, event::QUEUE_RELEASED);
        size.saturating_sub(produced.wrapping_sub(released))
    }

    /// Whether a source may send an event.
    pub(super) fn has_room(&self, queue: usize) -> bool {
        self.free(queue) >= SPARE && self.on_its_way.is_none()
    }

    /// Sends an event. While the host bus accepts nothing it is in flight.
    pub(super) fn tell(&mut self, host: &mut dyn Host, function: u8, queue: usize, record: Record) {
        if self.is_quiet() {
            self.on_its_way = Some((function, queue, record));
        } else {
            self.write_event(host, function, queue, record);
        }
    }

    /// The event that was in flight when the host bus accepted nothing.
    pub(super) fn send_on(&mut self, host: &mut dyn Host) {
        if !self.is_quiet()
            && let Some((function, queue, record)) = self.on_its_way.take()
        {
            self.write_event(host, function, queue, record);
        }
    }

    /// Writes an event with its phase bit and its last stamp; an event whose space the consumer has
    /// withdrawn meanwhile is discarded, as is one for another function's queue.
    fn write_event(&mut self, host: &mut dyn Host, function: u8, queue: usize, mut record: Record) {
        if self.free(queue) == 0 || self.queue_owner(queue) != function {
            return self.host_count(host_block::EVENTS_DISCARDED);
        }
        let at = Self::queue_at(queue);
        let log2 = (self.store.get(at + event::QUEUE_CTRL.at) >> 8 & 31).clamp(3, 20);
        let produced = self.store.get(at + event::QUEUE_PRODUCED.at);
        let slot = produced & ((1 << log2) - 1);
        let phase = u8::from(produced >> log2 & 1 == 0) << 7;
        if let Some(flags) = record.get_mut(EVENT_RECORD_FLAGS) {
            *flags = *flags & 0x7f | phase;
        }
        put(&mut record, 52, &(self.stamp() as u32).to_le_bytes());
        let base = self.store.get64(at + event::QUEUE_BASE.at);
        let place = base.wrapping_add(u64::from(slot) * EVENT_RECORD_SIZE as u64);
        self.dma_write(host, function, place, &record);
        self.store
            .set(at + event::QUEUE_PRODUCED.at, produced.wrapping_add(1));
        let now = self.now;
        if let Some(queue) = self.queues.get_mut(queue) {
            if queue.waiting == 0 {
                queue.since = now;
            }
            queue.waiting = queue.waiting.saturating_add(1);
        }
    }

    /// A register of a queue was written.
    pub(super) fn queue_written(&mut self, queue: usize, register: usize, before: u32, now: u32) {
        if register == event::QUEUE_BASE.at {
            let control = Self::queue_at(queue) + event::QUEUE_CTRL.at;
            let is_whole = now.is_multiple_of(EVENT_RECORD_SIZE as u32);
            let state = if is_whole { 0 } else { MISALIGNED };
            self.store
                .set(control, self.store.get(control) & !MISALIGNED | state);
        }
        if register == event::QUEUE_CTRL.at && (before & now) & 1 == 0 {
            let at = Self::queue_at(queue);
            self.store.set(at + event::QUEUE_PRODUCED.at, 0);
            self.store.set(at + event::QUEUE_RELEASED.at, 0);
            self.armed.remove(&queue);
            if let Some(queue) = self.queues.get_mut(queue) {
                *queue = Queue::default();
            }
        }
        if register == event::QUEUE_ARM.at {
            let produced = self.queue_register(queue, event::QUEUE_PRODUCED);
            let missed = produced.wrapping_sub(now);
            self.armed.insert(queue);
            if let Some(queue) = self.queues.get_mut(queue) {
                queue.waiting = queue.waiting.min(missed);
                if missed > 0 {
                    // Missed events interrupt at once.
                    queue.waiting = u32::MAX;
                }
            }
        }
    }

    /// When the interrupt delay of an armed queue ends, in picoseconds.
    pub(super) fn interrupt_due(&self, n: usize) -> Option<u64> {
        let queue = self.queues.get(n).filter(|queue| queue.waiting > 0)?;
        let hold = u64::from(self.queue_register(n, event::QUEUE_HOLD));
        Some(queue.since + hold * CORE_PS)
    }

    /// Takes a pending interrupt whose owner lets it be sent.
    fn next_interrupt(&mut self) -> Option<(usize, u16)> {
        let (store, msix) = (&self.store, self.msix);
        self.vectors
            .take(|vector| msix >> owner_of(store, vector) & 1 == 1)
    }

    /// Interrupts that are due.
    pub(super) fn interrupt(&mut self, host: &mut dyn Host) {
        let mut armed = std::mem::take(&mut self.armed);
        armed.retain(|&n| {
            let count = self.queue_register(n, event::QUEUE_COUNT);
            let hold = self.queue_register(n, event::QUEUE_HOLD);
            let now = self.now;
            let Some(queue) = self.queues.get_mut(n) else {
                return false;
            };
            let held = now.saturating_sub(queue.since) / CORE_PS >= u64::from(hold);
            let due = queue.waiting >= count.max(1) || queue.waiting > 0 && held;
            if due {
                queue.waiting = 0;
                self.vectors.ask(n);
            }
            !due
        });
        self.armed = armed;
        while !self.is_quiet()
            && let Some((vector, data)) = self.next_interrupt()
        {
            self.host_count(host_block::INTERRUPTS);
            let function = self.queue_owner(vector);
            if self.is_master(function) {
                host.interrupt(function, data);
            } else {
                self.host_count(host_block::WR_DISCARDED);
            }
        }
    }
}
