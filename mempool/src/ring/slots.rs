//! The memory of a ring: a power of two of slots, addressed by free-running indices.
//!
//! Nothing here synchronises. The ring around it decides who owns which slots; these functions
//! only copy, in at most two pieces, since a run of slots may continue at the beginning.

use core::mem::MaybeUninit;

use super::error::{MAX_CAPACITY, RingError};

fn size_for(capacity: usize) -> Result<usize, RingError> {
    if capacity == 0 || capacity > MAX_CAPACITY {
        return Err(RingError::Capacity { capacity });
    }
    Ok(capacity.next_power_of_two())
}

#[cfg(not(loom))]
pub(super) use real::Slots;

#[cfg(not(loom))]
mod real {
    use core::alloc::Layout;
    use core::marker::PhantomData;
    use core::ptr::{self, NonNull};
    use std::alloc::{alloc, dealloc};

    use super::{MaybeUninit, RingError, size_for};
    use crate::prefetch;

    /// Bytes of a cache line: the first slot begins one, so that a burst touches as few as it can.
    const LINE: usize = 64;

    /// Slots for `T` behind a raw pointer: both sides of the ring write and read them at once,
    /// in ranges that do not meet, which a reference to the whole would not allow.
    pub(in super::super) struct Slots<T> {
        base: NonNull<T>,
        mask: usize,
        /// Both sides share the slots: what one of them puts in the other takes out as its own `T`.
        /// So a ring of long borrows must not pass for one of short borrows (nor the reverse), as a
        /// pointer alone would let it.
        invariant: PhantomData<fn(T) -> T>,
    }

    // SAFETY: the slots are owned memory that holds plain `Copy` values; who may touch which is
    // the contract of `write` and `read`.
    unsafe impl<T: Send> Send for Slots<T> {}
    // SAFETY: as above; `&Slots` gives access only through the unsafe `write` and `read`.
    unsafe impl<T: Send> Sync for Slots<T> {}

    impl<T: Copy> Slots<T> {
        pub(in super::super) fn new(capacity: usize) -> Result<Self, RingError> {
            const { assert!(size_of::<T>() > 0, "items without size need no ring") };
            let size = size_for(capacity)?;
            let bytes = size.saturating_mul(size_of::<T>());
            let available = crate::region::available_memory();
            let no_memory = RingError::Memory {
                capacity,
                bytes,
                available,
            };
            // The kernel overcommits: it would grant the addresses and kill us at the touch below.
            if bytes > available {
                return Err(no_memory);
            }
            let layout = Self::layout(size).ok_or(no_memory)?;
            // SAFETY: the layout has a size above zero: neither `T` nor `size` is zero.
            let base = NonNull::new(unsafe { alloc(layout) }).ok_or(no_memory)?;
            // SAFETY: `base` is valid for `layout.size()` bytes. Writing them all now means that
            // no page fault is left for the poll loops.
            unsafe { ptr::write_bytes(base.as_ptr(), 0, layout.size()) };
            Ok(Self {
                base: base.cast(),
                mask: size - 1,
                invariant: PhantomData,
            })
        }

        /// Copies `items` into the slots from index `at` on.
        ///
        /// # Safety
        /// `items.len()` slots from `at` belong to the caller alone, and are at most all slots.
        #[inline(always)]
        pub(in super::super) unsafe fn write(&self, at: usize, items: &[T]) {
            let at = at & self.mask;
            if at + items.len() <= self.mask + 1 {
                // SAFETY: [at, at + items.len()) is inside the slots and the caller's own.
                unsafe { ptr::copy_nonoverlapping(items.as_ptr(), self.at(at), items.len()) };
            } else {
                // SAFETY: by the caller's promise; the items reach beyond the last slot.
                unsafe { self.write_around(at, items) };
            }
        }

        /// Copies the slots from index `at` on into `out`, all of it.
        ///
        /// # Safety
        /// `out.len()` slots from `at` were written, belong to the caller alone, and are at most
        /// all slots.
        #[inline(always)]
        pub(in super::super) unsafe fn read(&self, at: usize, out: &mut [MaybeUninit<T>]) {
            let at = at & self.mask;
            if at + out.len() <= self.mask + 1 {
                let to = out.as_mut_ptr().cast();
                // SAFETY: [at, at + out.len()) is inside the slots, written, and the caller's own.
                unsafe { ptr::copy_nonoverlapping(self.at(at), to, out.len()) };
            } else {
                // SAFETY: by the caller's promise; the run reaches beyond the last slot.
                unsafe { self.read_around(at, out) };
            }
        }

        /// Asks for the lines of `count` slots from index `at` on, to write them soon: while the
        /// other core has read them last, a store to each would wait for its line in turn.
        #[inline(always)]
        pub(in super::super) fn prefetch_write(&self, at: usize, count: usize) {
            let at = at & self.mask;
            if at + count > self.mask + 1 {
                // Once a round: not worth the instructions of the others.
                return;
            }
            for k in (0..count).step_by((LINE / size_of::<T>()).max(1)) {
                prefetch::prefetch_write(self.base.as_ptr().wrapping_add(at + k));
            }
        }

        /// `write` past the last slot and on at the first. Apart, as it is rare (once a round)
        /// and its calls would cost the common case its registers.
        ///
        /// # Safety
        /// As for `write`; `at` is a slot, and `items` reach beyond the last one.
        #[cold]
        #[inline(never)]
        unsafe fn write_around(&self, at: usize, items: &[T]) {
            let (first, rest) = items.split_at(self.mask + 1 - at);
            // SAFETY: [at, size) and [0, rest.len()) are inside the slots, as there are no more
            // items than slots, and the caller's own.
            unsafe {
                ptr::copy_nonoverlapping(first.as_ptr(), self.at(at), first.len());
                ptr::copy_nonoverlapping(rest.as_ptr(), self.at(0), rest.len());
            }
        }

        /// `read` past the last slot and on at the first.
        ///
        /// # Safety
        /// As for `read`; `at` is a slot, and the run reaches beyond the last one.
        #[cold]
        #[inline(never)]
        unsafe fn read_around(&self, at: usize, out: &mut [MaybeUninit<T>]) {
            let (first, rest) = out.split_at_mut(self.mask + 1 - at);
            // SAFETY: as in `write_around`, and the slots are written.
            unsafe {
                ptr::copy_nonoverlapping(self.at(at), first.as_mut_ptr().cast(), first.len());
                ptr::copy_nonoverlapping(self.at(0), rest.as_mut_ptr().cast(), rest.len());
            }
        }

        /// # Safety
        /// `at` is a slot, or one past the last.
        #[inline(always)]
        unsafe fn at(&self, at: usize) -> *mut T {
            // SAFETY: inside the allocation, by the caller's promise.
            unsafe { self.base.as_ptr().add(at) }
        }
    }

    impl<T> Slots<T> {
        fn layout(size: usize) -> Option<Layout> {
            Layout::array::<T>(size).ok()?.align_to(LINE).ok()
        }
    }

    impl<T> Drop for Slots<T> {
        fn drop(&mut self) {
            if let Some(layout) = Self::layout(self.mask + 1) {
                // SAFETY: `base` was allocated in `new` with this same layout; `T: Copy` has no
                // drop of its own.
                unsafe { dealloc(self.base.as_ptr().cast(), layout) };
            }
        }
    }
}

#[cfg(loom)]
pub(super) use model::Slots;

/// The same slots as cells that loom watches: it reports two accesses that are not ordered.
#[cfg(loom)]
mod model {
    use loom::cell::UnsafeCell;

    use super::{MaybeUninit, RingError, size_for};

    pub(in super::super) struct Slots<T> {
        cells: Box<[UnsafeCell<MaybeUninit<T>>]>,
    }

    // SAFETY: as for the real slots.
    unsafe impl<T: Send> Send for Slots<T> {}
    // SAFETY: as for the real slots.
    unsafe impl<T: Send> Sync for Slots<T> {}

    impl<T: Copy> Slots<T> {
        pub(in super::super) fn new(capacity: usize) -> Result<Self, RingError> {
            let cells = (0..size_for(capacity)?).map(|_| UnsafeCell::new(MaybeUninit::uninit()));
            Ok(Self {
                cells: cells.collect(),
            })
        }

        pub(in super::super) unsafe fn write(&self, at: usize, items: &[T]) {
            for (k, &item) in items.iter().enumerate() {
                let cell = &self.cells[at.wrapping_add(k) & (self.cells.len() - 1)];
                // SAFETY: loom checks that no other access runs at the same time.
                cell.with_mut(|slot| unsafe { (*slot).write(item) });
            }
        }

        pub(in super::super) fn prefetch_write(&self, _at: usize, _count: usize) {}

        pub(in super::super) unsafe fn read(&self, at: usize, out: &mut [MaybeUninit<T>]) {
            for (k, item) in out.iter_mut().enumerate() {
                let cell = &self.cells[at.wrapping_add(k) & (self.cells.len() - 1)];
                // SAFETY: loom checks that no write runs at the same time.
                *item = cell.with(|slot| unsafe { *slot });
            }
        }
    }
}
