//! Windows of a device's registers.

use crate::bus::Bus;

/// A part of one of a device's BARs.
pub(super) struct Window<B> {
    pub(super) bus: B,
    pub(super) start: usize,
    pub(super) len: usize,
}

impl<B: Bus> Window<B> {
    /// The BAR, and the offset in it of `len` bytes that begin `at` bytes into the window; `None`
    /// if they are not all in it.
    pub(super) fn place(&self, at: usize, len: usize) -> Option<(&B, usize)> {
        let inside = at <= self.len && len <= self.len - at;
        inside.then_some((&self.bus, self.start + at))
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn read8(&self, at: usize) -> u8 {
        self.bus.read8(self.start + at)
    }

    pub(super) fn read16(&self, at: usize) -> u16 {
        self.bus.read16(self.start + at)
    }

    pub(super) fn read32(&self, at: usize) -> u32 {
        self.bus.read32(self.start + at)
    }

    pub(super) fn write8(&self, at: usize, value: u8) {
        self.bus.write8(self.start + at, value);
    }

    pub(super) fn write16(&self, at: usize, value: u16) {
        self.bus.write16(self.start + at, value);
    }

    pub(super) fn write32(&self, at: usize, value: u32) {
        self.bus.write32(self.start + at, value);
    }
}
