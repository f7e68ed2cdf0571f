//! Event queues that the card writes.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use pollux_mempool::time::Ns;

use super::nic::Nic;
use super::registers::{card, event};
use crate::bus::{Bus, BusError, Device, Interrupts};
use crate::drivers::dma::DmaBuffer;
use crate::event::{EventConsumer, EventQueue, Released};
use crate::quarantine::Quarantine;

/// Records that the card keeps free, so that each of its sources can always write one
/// (hw/docs/interfaces.md, Events).
const SPARE: usize = 4;

/// Minimum number of records of a queue.
const LEAST: usize = 8;

/// Interrupt moderation of an armed queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// After so many unread events ...
    pub events: u16,
    /// ... or this time after the first of them, whichever is earlier.
    pub hold: Ns,
}

impl Default for Wake {
    /// With the first event.
    fn default() -> Self {
        Self {
            events: 1,
            hold: Ns(0),
        }
    }
}

/// Writes the consumer index to the card.
pub(super) struct Register<B> {
    bus: B,
    at: usize,
}

impl<B: Bus> Released for Register<B> {
    #[inline]
    fn released(&self, at: u64) {
        self.bus.write32(self.at, at as u32);
    }
}

/// The consumer's end of a queue.
pub(super) struct Events<D: Device> {
    nic: Nic<D>,
    queue: usize,
    interrupts: Option<Arc<Interrupts>>,
    consumer: EventConsumer<Register<D::Bus>>,
    _memory: DmaBuffer,
}

impl<D: Device> Events<D> {
    /// Sets up queue number `queue` of the function for so many unread events; it interrupts for the first of them.
    ///
    /// # Errors
    /// Memory that is not available, or that the card cannot access.
    pub(super) fn new(
        nic: &Nic<D>,
        queue: usize,
        waiting: usize,
        interrupts: Option<Arc<Interrupts>>,
        quarantine: &Quarantine,
    ) -> Result<Self, BusError> {
        let records = (waiting + SPARE).next_power_of_two().max(LEAST);
        let memory = EventQueue::new(records, &nic.device.memory());
        let memory = memory.map_err(|error| nic.error(error.to_string()))?;
        let lent = (nic.grant, quarantine);
        let shared = DmaBuffer::share(&*nic.device, memory.region(), lent)?;
        let base = nic.base("event queue", shared.addresses(), records * 64)?;
        let (at, queue) = (nic.at.event, nic.queue(queue));
        nic.write64(at + event::QUEUE_BASE.of(queue), base);
        nic.bus.write32(
            at + event::QUEUE_CTRL.of(queue),
            event::QUEUE_CTRL_ENABLE | records.trailing_zeros() << 8,
        );
        let register = Register {
            bus: nic.bus.clone(),
            at: at + event::QUEUE_RELEASED.of(queue),
        };
        let events = Self {
            nic: nic.clone(),
            queue,
            interrupts,
            consumer: memory.into_consumer(register),
            _memory: shared,
        };
        events.set_wake(Wake::default());
        Ok(events)
    }

    /// Sets the interrupt moderation.
    pub(super) fn set_wake(&self, wake: Wake) {
        let (nic, at) = (&self.nic, self.nic.at.event);
        let hold = nic.cycles(card::CORE_KHZ, wake.hold);
        let count = at + event::QUEUE_COUNT.of(self.queue);
        nic.bus.write32(count, wake.events.max(1).into());
        nic.bus.write32(at + event::QUEUE_HOLD.of(self.queue), hold);
    }

    /// The next event.
    #[inline]
    pub(super) fn poll(&mut self) -> Option<crate::event::EventRecord> {
        self.consumer.poll()
    }

    /// File descriptor that becomes readable when there is an event, if the queue is
    /// [armed](Self::arm).
    pub(super) fn event(&self) -> Option<BorrowedFd<'_>> {
        self.interrupts.as_ref()?.event(self.queue as u16)
    }

    /// Makes the card interrupt when there is an unread event.
    pub(super) fn arm(&self) {
        let at = self.nic.at.event + event::QUEUE_ARM.of(self.queue);
        self.nic.bus.write32(at, self.consumer.taken() as u32);
    }
}
