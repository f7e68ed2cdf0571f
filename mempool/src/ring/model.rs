//! What the loom models need from inside the crate.

use core::cell::UnsafeCell;
use core::mem::{ManuallyDrop, MaybeUninit};
use std::sync::Arc;

use super::error::RingError;
use crate::free_list;
pub use crate::sync::{mutant, wait_until};

/// A pool's free list, whose memory outlives its end: an access after the end is then seen by loom,
/// which watches the indices, instead of being a wild access of the test.
#[derive(Clone)]
pub struct FreeList(Arc<ManuallyDrop<UnsafeCell<free_list::FreeList<u32>>>>);

// SAFETY: the free list is for any thread; loom checks that nothing else happens while it ends.
unsafe impl Send for FreeList {}

impl FreeList {
    /// An empty free list for `elements` elements.
    ///
    /// # Errors
    /// As for a ring.
    pub fn new(elements: usize) -> Result<Self, RingError> {
        let free = free_list::FreeList::new(elements)?;
        Ok(Self(Arc::new(ManuallyDrop::new(UnsafeCell::new(free)))))
    }

    /// Puts in an element that has not been in yet.
    pub fn add(&self, element: u32) -> bool {
        // SAFETY: the caller holds a handle, so the free list has not ended.
        unsafe { &*self.0.get() }.add(element)
    }

    /// Takes up to as many elements as there are, at most `most`.
    #[must_use]
    pub fn pop(&self, most: usize) -> Vec<u32> {
        let mut out = vec![MaybeUninit::uninit(); most];
        // SAFETY: the caller holds a handle, so the free list has not ended.
        let n = unsafe { &*self.0.get() }.pop(&mut out, |number| number as u32);
        // SAFETY: `pop` filled `n` elements.
        let filled = out[..n]
            .iter()
            .map(|element| unsafe { element.assume_init() });
        filled.collect()
    }

    /// Puts elements back as a handle does.
    pub fn put(&self, elements: &[u32]) {
        // SAFETY: the caller holds a handle, so the free list has not ended.
        unsafe { &*self.0.get() }.put(elements);
    }

    /// Gives an element back, from any thread; whether this ended the free list.
    pub fn give_back(&self, element: u32) -> bool {
        // SAFETY: the memory stays; the element is unreturned.
        let last = unsafe { free_list::FreeList::<u32>::give_back(self.0.get(), element as usize) };
        self.end_if(last)
    }

    /// Elements in it now.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        // SAFETY: the caller holds a handle, so the free list has not ended.
        unsafe { &*self.0.get() }.len_up_to(usize::MAX)
    }

    /// Drops the last handle; whether this ended the free list.
    pub fn close(&self) -> bool {
        // SAFETY: the memory stays; the model has one handle.
        let last = unsafe { free_list::FreeList::<u32>::close(self.0.get()) };
        self.end_if(last)
    }

    fn end_if(&self, last: bool) -> bool {
        if last {
            // SAFETY: `close` or `give_back` returned true on this thread alone.
            unsafe { self.0.get().drop_in_place() };
        }
        last
    }
}
