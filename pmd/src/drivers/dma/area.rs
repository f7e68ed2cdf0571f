//! Memory that a driver shares with a device that is not given packet buffers.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use pollux_mempool::Mbuf;

use super::buffer::DmaBuffer;
use super::copy::copy_frame;
use super::frame::Assembly;
use crate::bus::{BusError, Device};
use crate::event::RegionOptions;
use crate::grant::MemoryGrant;
use crate::quarantine::Quarantine;

/// A [`DmaBuffer`] of the driver's own that the device may write at any time: words are read and
/// written as atomics, frames are copied. Areas that [`split_at`](Self::split_at) makes do not
/// overlap, so that no two threads of the process write the same bytes.
pub struct DmaArea {
    buffer: Arc<DmaBuffer>,
    /// The part of the buffer.
    start: usize,
    len: usize,
}

impl DmaArea {
    /// Allocates `len` bytes of zeroed memory, which the device reaches until the quarantine is
    /// settled.
    ///
    /// # Errors
    /// The memory is not available, or cannot be mapped for the device.
    pub fn alloc<D: Device>(
        device: &D,
        memory: &RegionOptions,
        len: usize,
        lent: (MemoryGrant, &Quarantine),
    ) -> Result<Self, BusError> {
        let buffer = Arc::new(DmaBuffer::alloc(device, memory, len, lent)?);
        Ok(Self {
            buffer,
            start: 0,
            len,
        })
    }

    /// Divides the area: the bytes before `offset`, and those from there on. An offset beyond the end
    /// is the end.
    #[must_use]
    pub fn split_at(self, offset: usize) -> (Self, Self) {
        let offset = offset.min(self.len);
        let second = Self {
            buffer: Arc::clone(&self.buffer),
            start: self.start + offset,
            len: self.len - offset,
        };
        let first = Self {
            len: offset,
            ..self
        };
        (first, second)
    }

    /// Address of `len` bytes at `offset`, if they are inside the area.
    #[inline]
    fn piece(&self, offset: usize, len: usize) -> Option<NonNull<u8>> {
        let end = offset.checked_add(len)?;
        if end > self.len {
            return None;
        }
        self.buffer.region().ptr_at(self.start + offset, len).ok()
    }

    /// The device's address of `len` bytes at `offset`; `None` if they are out of bounds, or not
    /// contiguous for the device.
    #[must_use]
    pub fn address(&self, offset: usize, len: usize) -> Option<u64> {
        self.piece(offset, len)?;
        let iova = self.buffer.addresses().iova(self.start + offset, len);
        iova.ok().map(|iova| iova.0)
    }

    /// The word at `offset`, a multiple of four; what the device wrote before it is seen by what
    /// follows. All ones outside the area.
    #[inline]
    #[must_use]
    pub fn load(&self, offset: usize) -> u32 {
        let word = self.word(offset);
        // Acquire: pairs with the device's writes, which reach memory in order (PCI 3.0 section 3.2.5).
        word.map_or(u32::MAX, |word| u32::from_le(word.load(Ordering::Acquire)))
    }

    /// Writes the word at `offset`, a multiple of four; nothing happens outside the area.
    #[inline]
    pub fn store(&mut self, offset: usize, value: u32) {
        if let Some(word) = self.word(offset) {
            word.store(value.to_le(), Ordering::Relaxed);
        }
    }

    #[inline]
    fn word(&self, offset: usize) -> Option<&AtomicU32> {
        let at = self.piece(offset, 4)?.cast::<u32>();
        // SAFETY: the region has four bytes there, and is mapped as long as `self` lives. No other
        // area has them; this one writes them with `self` borrowed alone.
        at.is_aligned()
            .then(|| unsafe { AtomicU32::from_ptr(at.as_ptr()) })
    }

    /// Copies bytes to `offset`; `false`, and nothing is written, if they do not fit.
    #[inline]
    #[must_use]
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> bool {
        let Some(to) = self.piece(offset, bytes.len()) else {
            return false;
        };
        if let Some(from) = NonNull::new(bytes.as_ptr().cast_mut()) {
            // SAFETY: the region has as many bytes there, which no other area has, and `self` is
            // borrowed alone: no reference to them exists, and a slice of the caller's does not
            // overlap them. What the device does meanwhile, the grant answers for.
            unsafe { copy_frame(from, to, bytes.len()) };
        }
        true
    }

    /// Appends `len` bytes at `offset` to a frame, in buffers that `alloc` gives; `false` if there
    /// are none, if the frame has its most segments, or if the area ends before.
    #[inline]
    pub fn read_into(
        &self,
        offset: usize,
        len: usize,
        frame: &mut Assembly,
        alloc: impl FnMut() -> Option<Mbuf>,
    ) -> bool {
        let Some(from) = self.piece(offset, len) else {
            return false;
        };
        // SAFETY: the region has `len` bytes there, and no packet buffer lies in it: it was made by
        // `alloc`, for the driver alone, and no other area has the bytes, so no thread of this
        // process writes them meanwhile. The device may write meanwhile: then the copy has some
        // bytes of before and some of after.
        unsafe { frame.append(from, len, alloc) }
    }
}
