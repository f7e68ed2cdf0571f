//! A device's register window, mapped into the process.

use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::{Bus, is_register};

/// A memory BAR of a device, mapped uncached. Unmapped when the last clone is dropped.
#[derive(Clone)]
pub struct MappedBar(Arc<Window>);

struct Window {
    start: NonNull<u8>,
    len: usize,
    /// Kept until the unmapping.
    _owner: Box<dyn Send + Sync>,
}

// SAFETY: the mapping belongs to no thread, and does not move until it is dropped.
unsafe impl Send for Window {}
// SAFETY: all accesses are volatile and of one register. Concurrent accesses of two threads to one
// register are two bus agents: the device orders them, and the memory model is not concerned, since
// no Rust object is there.
unsafe impl Sync for Window {}

impl MappedBar {
    /// Maps `len` bytes at `offset` of a file that represents a device's registers; keeps `owner`
    /// alive as long.
    ///
    /// # Errors
    /// The kernel refuses the mapping.
    ///
    /// # Safety
    /// At `offset` the file represents a device's registers, and not memory that other code of this
    /// process relies on; it has `len` bytes from there.
    pub(super) unsafe fn map(
        file: impl AsFd,
        offset: u64,
        len: usize,
        owner: impl Send + Sync + 'static,
    ) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice affects no existing memory.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file,
                offset,
            )
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self(Arc::new(Window {
            start,
            len,
            _owner: Box::new(owner),
        })))
    }

    /// Location of a register of type `T`, if it is in the window.
    #[inline]
    fn register<T>(&self, at: usize) -> Option<NonNull<T>> {
        let is_there = is_register(self.0.len, at, size_of::<T>());
        // SAFETY: the register, and so its first byte, is inside the window.
        is_there.then(|| unsafe { self.0.start.add(at).cast() })
    }

    #[inline]
    fn read<T>(&self, at: usize, absent: T) -> T {
        let Some(register) = self.register(at) else {
            return absent;
        };
        // Neither fence is an instruction on x86_64, where loads are ordered and loads of uncached
        // memory are not speculated; they restrict the compiler.
        fence(Ordering::Acquire);
        // SAFETY: inside the mapping, which lives as long as `self`, and aligned: the window begins
        // at a page. `T` is an integer, for which any bits are valid.
        let value = unsafe { register.read_volatile() };
        fence(Ordering::Acquire);
        value
    }

    #[inline]
    fn write<T>(&self, at: usize, value: T) {
        if let Some(register) = self.register(at) {
            // No instruction on x86_64: a store to uncached memory is performed after all earlier
            // ones (Intel SDM volume 3, section 9.2.2); the fence restricts the compiler.
            fence(Ordering::Release);
            // SAFETY: as for `read`.
            unsafe { register.write_volatile(value) };
        }
    }
}

impl Bus for MappedBar {
    fn len(&self) -> usize {
        self.0.len
    }

    #[inline]
    fn read8(&self, at: usize) -> u8 {
        self.read(at, u8::MAX)
    }

    #[inline]
    fn read16(&self, at: usize) -> u16 {
        self.read(at, u16::MAX)
    }

    #[inline]
    fn read32(&self, at: usize) -> u32 {
        self.read(at, u32::MAX)
    }

    #[inline]
    fn write8(&self, at: usize, value: u8) {
        self.write(at, value);
    }

    #[inline]
    fn write16(&self, at: usize, value: u16) {
        self.write(at, value);
    }

    #[inline]
    fn write32(&self, at: usize, value: u32) {
        self.write(at, value);
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and no reference into it exists.
        if let Err(error) = unsafe { munmap(self.start.as_ptr().cast(), self.len) } {
            tracing::error!("unmapping {} bytes of registers: {error}", self.len);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::FileExt as _;

    use super::*;

    #[test]
    fn a_window_has_registers_of_each_width_and_an_end() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        file.write_all_at(&[1, 2, 3, 4, 5, 6, 7, 8], 4096).unwrap();
        // SAFETY: the file belongs to this test, and has 100 bytes from there.
        let bar = unsafe { MappedBar::map(&file, 4096, 100, ()) }.unwrap();
        assert_eq!(bar.len(), 100);
        assert_eq!(
            (bar.read8(1), bar.read16(2), bar.read32(4)),
            (2, 0x403, 0x0807_0605)
        );
        let same = bar.clone();
        drop(bar);
        same.write8(96, 0xa1);
        same.write16(98, 0xb3b2);
        same.write32(8, 0xd4d3_d2d1);
        // Beyond the end, across it, and unaligned.
        for at in [100, 4096, usize::MAX - 3, 98, 6, 1] {
            assert_eq!(same.read32(at), u32::MAX, "{at}");
            same.write32(at, 0);
        }
        assert_eq!((same.read16(97), same.read8(100)), (u16::MAX, u8::MAX));
        assert_eq!(same.read32(96), 0xb3b2_00a1);
        assert_eq!(same.read32(8), 0xd4d3_d2d1);
    }
}
