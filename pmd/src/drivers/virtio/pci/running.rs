//! Started device: state shared by its queues and its port.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Once};

use pollux_mempool::Mbuf;
use pollux_mempool::region::MemoryRegion;

use super::common::status;
use super::registers::Registers;
use crate::bus::exclusive::Exclusive;
use crate::bus::{BusError, Device, Interrupts};
use crate::drivers::dma::{DeviceAddresses, DmaBuffer};
use crate::grant::MemoryGrant;
use crate::quarantine::Quarantine;

/// A device that may access memory of this process, until [`quiesce`](Self::quiesce) returns.
pub(super) struct Running<D: Device> {
    device: Exclusive<D>,
    registers: Arc<Registers<D::Bus>>,
    /// The device works, as far as is known. Relaxed everywhere: hints, which order nothing.
    live: AtomicBool,
    gone: AtomicBool,
    quiesced: Once,
    broken_queues: AtomicU64,
    interrupts: Option<Interrupts>,
    grant: MemoryGrant,
    /// Memory lent to the device, and buffers that queues had posted at their end.
    quarantine: Quarantine,
}

impl<D: Device> Running<D> {
    /// A device that has been reset, and can access no memory yet.
    pub(super) fn new(
        device: Exclusive<D>,
        registers: Arc<Registers<D::Bus>>,
        grant: MemoryGrant,
        quarantine: Quarantine,
    ) -> Self {
        Self {
            device,
            registers,
            live: AtomicBool::new(true),
            gone: AtomicBool::new(false),
            quiesced: Once::new(),
            broken_queues: AtomicU64::new(0),
            interrupts: None,
            grant,
            quarantine,
        }
    }

    /// Maps a region for the device, and adds its addresses to `addresses`.
    pub(super) fn map(
        &self,
        region: &Arc<MemoryRegion>,
        addresses: &mut DeviceAddresses,
    ) -> Result<(), BusError> {
        let lent = (self.grant, &self.quarantine);
        let memory = DmaBuffer::share(&*self.device, region, lent)?;
        addresses.add(memory.region(), memory.addresses());
        Ok(())
    }

    /// Allocates memory that the device can access.
    pub(super) fn alloc(&self, len: usize) -> Result<DmaBuffer, BusError> {
        let lent = (self.grant, &self.quarantine);
        DmaBuffer::alloc(&*self.device, &self.device.memory(), len, lent)
    }

    /// Enables interrupts, one vector for each receive queue. A device with too few vectors gets
    /// none, and must be polled.
    pub(super) fn switch_interrupts_on(&mut self, vectors: u16) {
        self.interrupts = match self.device.interrupts(vectors) {
            Ok(interrupts) => Some(interrupts),
            Err(error) => {
                tracing::debug!(%error, "no interrupts");
                None
            }
        };
    }

    /// The event of a vector.
    pub(super) fn event(&self, vector: u16) -> Option<BorrowedFd<'_>> {
        self.interrupts.as_ref()?.event(vector)
    }

    pub(super) fn clock(&self) -> D::Clock {
        self.device.clock()
    }

    pub(super) fn is_live(&self) -> bool {
        self.live.load(Ordering::Relaxed)
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    /// Reports a queue that the device has corrupted, and that is no longer used.
    #[cold]
    pub(super) fn count_broken_queue(&self) {
        self.broken_queues.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn broken_queues(&self) -> u64 {
        self.broken_queues.load(Ordering::Relaxed)
    }

    /// Checks whether the device still works; logs once why it does not. For housekeeping.
    pub(super) fn look(&self) -> bool {
        let found = self.registers.common.status();
        if self.device.is_gone() || found == status::GONE {
            self.gone.store(true, Ordering::Relaxed);
        }
        if !self.is_live() {
            return false;
        }
        let what = if self.is_gone() {
            "the device was unplugged, or its owner has requested it back"
        } else if found & status::NEEDS_RESET != 0 {
            "the device reports an error that only a reset clears; stop and start the port"
        } else if found & status::DRIVER_OK == 0 {
            "the device was reset by another program; stop and start the port"
        } else {
            return true;
        };
        tracing::warn!(device = self.device.name(), "{what}");
        self.live.store(false, Ordering::Relaxed);
        false
    }

    /// Keeps the frames that a queue had posted at its end.
    pub(super) fn park(&self, posted: impl Iterator<Item = Mbuf>) {
        self.quarantine.park(posted);
    }

    /// Brings the device to rest, and unmaps its memory. Posted buffers are released after this,
    /// and nowhere else, if a proof exists that the device is at rest: a reset that it
    /// acknowledges, its configuration space, or the IOMMU. A second caller waits for the first.
    pub(super) fn quiesce(&self) {
        self.quiesced.call_once(|| {
            self.live.store(false, Ordering::Relaxed);
            let device = &*self.device;
            let at_rest = self.registers.common.reset(&device.clock());
            // The device stops by itself, or bus mastering is disabled, or it is reset from
            // outside, which disables bus mastering, too.
            let mut cut_off = device.cut_off();
            if !at_rest && self.registers.common.status() != status::GONE {
                let reset = device.reset();
                cut_off |= device.cut_off();
                tracing::warn!(
                    device = device.name(),
                    ?cut_off,
                    ?reset,
                    "it did not come to rest when it was told to"
                );
            }
            self.quarantine.settle(at_rest || cut_off);
        });
    }
}

impl<D: Device> Drop for Running<D> {
    fn drop(&mut self) {
        self.quiesce();
    }
}
