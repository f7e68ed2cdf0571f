//! Event queues that the card writes.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use pollux_mempool::time::Ns;

use super::nic::Nic;
use super::registers::{card, event};
use crate::bus::{Bus, BusError, Device, DmaMapping, Interrupts};
use crate::event::{EventConsumer, EventQueue, Released};

/// Records that the card keeps free, so that each of its sources finds room
/// (hw/docs/interfaces.md, Events).
const SPARE: usize = 4;

/// Fewest records of a queue.
const LEAST: usize = 8;

/// When a queue that was armed interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// After so many events that were not seen ...
    pub events: u16,
    /// ... or so long after the first of them, whichever comes first.
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

/// Tells the card how far its consumer is.
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
}

impl<D: Device> Events<D> {
    /// Sets queue number `queue` up, for so many events that nobody has looked at, which interrupts
    /// for the first of them. The mapping is to be kept as long as the card runs.
    ///
    /// # Errors
    /// Memory that cannot be had, or that the card cannot be given.
    pub(super) fn new(
        nic: &Nic<D>,
        queue: usize,
        waiting: usize,
        interrupts: Option<Arc<Interrupts>>,
    ) -> Result<(Self, DmaMapping), BusError> {
        let records = (waiting + SPARE).next_power_of_two().max(LEAST);
        let memory = EventQueue::new(records, &nic.device.memory());
        let memory = memory.map_err(|error| nic.error(error.to_string()))?;
        let mapping = nic.device.map(memory.region(), nic.grant)?;
        let base = mapping
            .addresses()
            .iova(0, records * 64)
            .map_err(|error| nic.error(error.to_string()))?;
        let at = nic.at.event;
        nic.write64(at + event::QUEUE_BASE.of(queue), base.0);
        nic.bus.write32(
            at + event::QUEUE_CTRL.of(queue),
            event::QUEUE_CTRL_ENABLE | records.trailing_zeros() << 8,
        );
        let told = Register {
            bus: nic.bus.clone(),
            at: at + event::QUEUE_RELEASED.of(queue),
        };
        let events = Self {
            nic: nic.clone(),
            queue,
            interrupts,
            consumer: memory.into_consumer(told),
        };
        events.set_wake(Wake::default());
        Ok((events, mapping))
    }

    /// Says when it interrupts.
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

    /// What becomes readable when there is an event, if the queue is [armed](Self::arm).
    pub(super) fn event(&self) -> Option<BorrowedFd<'_>> {
        self.interrupts.as_ref()?.event(self.queue as u16)
    }

    /// Has the card interrupt once there is an event that was not taken.
    pub(super) fn arm(&self) {
        let at = self.nic.at.event + event::QUEUE_ARM.of(self.queue);
        self.nic.bus.write32(at, self.consumer.taken() as u32);
    }
}
