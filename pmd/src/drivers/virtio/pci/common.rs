//! Common configuration registers: virtio 1.2 section 4.1.4.3, `struct virtio_pci_common_cfg`.

use pollux_mempool::time::Ns;

use super::wait::wait;
use super::window::Window;
use crate::bus::Bus;
use crate::clock::Clock;
use crate::drivers::virtio::{Areas, Features};

/// Offsets of the registers. Those of 64 bits are accessed as two of 32 (section 4.1.3.1).
mod at {
    pub(super) const DEVICE_FEATURE_SELECT: usize = 0x00;
    pub(super) const DEVICE_FEATURE: usize = 0x04;
    pub(super) const DRIVER_FEATURE_SELECT: usize = 0x08;
    pub(super) const DRIVER_FEATURE: usize = 0x0c;
    pub(super) const STATUS: usize = 0x14;
    pub(super) const GENERATION: usize = 0x15;
    pub(super) const QUEUE_SELECT: usize = 0x16;
    pub(super) const QUEUE_SIZE: usize = 0x18;
    pub(super) const QUEUE_VECTOR: usize = 0x1a;
    pub(super) const QUEUE_ENABLE: usize = 0x1c;
    pub(super) const QUEUE_NOTIFY_OFFSET: usize = 0x1e;
    pub(super) const QUEUE_DESCRIPTORS: usize = 0x20;
    pub(super) const QUEUE_DRIVER: usize = 0x28;
    pub(super) const QUEUE_DEVICE: usize = 0x30;
    /// End of the last register.
    pub(super) const END: usize = 0x38;
}

/// Bits of the device status: section 2.1.
pub(super) mod status {
    pub(in super::super) const ACKNOWLEDGE: u8 = 1;
    pub(in super::super) const DRIVER: u8 = 2;
    pub(in super::super) const DRIVER_OK: u8 = 4;
    pub(in super::super) const FEATURES_OK: u8 = 8;
    pub(in super::super) const NEEDS_RESET: u8 = 64;
    /// Value of every register of a device that is gone.
    pub(in super::super) const GONE: u8 = 0xff;
}

/// Time limit of a reset.
const RESET: Ns = Ns(2_000_000_000);

/// The registers.
pub(super) struct Common<B>(Window<B>);

impl<B: Bus> Common<B> {
    /// The registers in this window; `None` if it is too short for them.
    pub(super) fn new(window: Window<B>) -> Option<Self> {
        (window.len() >= at::END).then_some(Self(window))
    }

    pub(super) fn status(&self) -> u8 {
        self.0.read8(at::STATUS)
    }

    /// Sets bits of the status; only a reset clears them (section 2.1.1).
    pub(super) fn add_status(&self, bits: u8) {
        self.0.write8(at::STATUS, self.status() | bits);
    }

    /// Resets the device; `false` if the reset does not complete, or the device is gone. A device
    /// that is reset accesses no memory of this process: the completion of the read that finds it
    /// at rest follows all its outstanding writes (sections 2.4 and 4.1.4.3.2; PCI 3.0 section
    /// 3.2.5).
    #[must_use]
    pub(super) fn reset(&self, clock: &impl Clock) -> bool {
        self.0.write8(at::STATUS, 0);
        wait(clock, RESET, || {
            let status = self.status();
            (status == 0 || status == status::GONE).then_some(status == 0)
        })
        .unwrap_or(false)
    }

    /// Features that the device offers.
    pub(super) fn offered(&self) -> Features {
        let half = |select| {
            self.0.write32(at::DEVICE_FEATURE_SELECT, select);
            u64::from(self.0.read32(at::DEVICE_FEATURE))
        };
        Features(half(0) | half(1) << 32)
    }

    /// Writes the accepted features.
    pub(super) fn accept(&self, features: Features) {
        for (select, half) in [(0, features.0), (1, features.0 >> 32)] {
            self.0.write32(at::DRIVER_FEATURE_SELECT, select);
            self.0.write32(at::DRIVER_FEATURE, half as u32);
        }
    }

    /// Configuration generation: changes with the device-specific configuration (section 2.5.1).
    pub(super) fn generation(&self) -> u8 {
        self.0.read8(at::GENERATION)
    }

    /// The registers of a queue.
    pub(super) fn queue(&self, number: u16) -> Queue<'_, B> {
        self.0.write16(at::QUEUE_SELECT, number);
        Queue(&self.0)
    }
}

/// The registers of the selected queue; no other queue is selected while this exists.
pub(super) struct Queue<'a, B>(&'a Window<B>);

impl<B: Bus> Queue<'_, B> {
    /// Maximum number of descriptors; 0 if the queue does not exist.
    pub(super) fn max_size(&self) -> u16 {
        self.0.read16(at::QUEUE_SIZE)
    }

    pub(super) fn set_size(&self, size: u16) {
        self.0.write16(at::QUEUE_SIZE, size);
    }

    /// Offset of its notification register, in units of the device's multiplier.
    pub(super) fn notify_offset(&self) -> u16 {
        self.0.read16(at::QUEUE_NOTIFY_OFFSET)
    }

    /// Assigns an interrupt vector to the queue; `false` if the device cannot (section 4.1.5.1.2).
    /// After a reset there is none.
    #[must_use]
    pub(super) fn set_vector(&self, vector: u16) -> bool {
        self.0.write16(at::QUEUE_VECTOR, vector);
        self.0.read16(at::QUEUE_VECTOR) == vector
    }

    /// Writes the addresses of its areas.
    pub(super) fn set_areas(&self, areas: Areas<u64>) {
        for (register, address) in [
            (at::QUEUE_DESCRIPTORS, areas.descriptors),
            (at::QUEUE_DRIVER, areas.driver),
            (at::QUEUE_DEVICE, areas.device),
        ] {
            self.0.write32(register, address as u32);
            self.0.write32(register + 4, (address >> 32) as u32);
        }
    }

    /// Enables the queue; only a reset disables it.
    pub(super) fn enable(&self) {
        self.0.write16(at::QUEUE_ENABLE, 1);
    }
}
