//! What the loom models need from inside the crate.

use core::cell::UnsafeCell;
use core::mem::{ManuallyDrop, MaybeUninit};
use std::sync::Arc;

use super::RingError;
use crate::depot;
pub use crate::sync::{mutant, wait_until};

/// A pool's depot, whose memory outlives its end: an access after the end is then seen by loom,
/// which watches the indices, instead of being a wild access of the test.
#[derive(Clone)]
pub struct Depot(Arc<ManuallyDrop<UnsafeCell<depot::Depot<u32>>>>);

// SAFETY: the depot is for any thread; loom checks that nothing else happens while it ends.
unsafe impl Send for Depot {}

impl Depot {
    /// An empty depot for `elements` elements.
    ///
    /// # Errors
    /// As for a ring.
    pub fn new(elements: usize) -> Result<Self, RingError> {
        let depot = depot::Depot::new(elements)?;
        Ok(Self(Arc::new(ManuallyDrop::new(UnsafeCell::new(depot)))))
    }

    /// Puts in an element that has not been in yet.
    pub fn add(&self, element: u32) -> bool {
        // SAFETY: who adds holds a handle, so the depot has not ended.
        unsafe { &*self.0.get() }.add(element)
    }

    /// Takes one element, if there is one.
    #[must_use]
    pub fn pop(&self) -> Option<u32> {
        let mut out = [MaybeUninit::uninit()];
        // SAFETY: who pops holds a handle, so the depot has not ended.
        let n = unsafe { &*self.0.get() }.pop(&mut out);
        // SAFETY: `pop` filled `n` elements.
        (n == 1).then(|| unsafe { out[0].assume_init() })
    }

    /// Gives elements back; whether this ended the depot.
    pub fn push(&self, elements: &[u32]) -> bool {
        // SAFETY: the memory stays; the elements are unreturned.
        let last = unsafe { depot::Depot::push(self.0.get(), elements) };
        self.end_if(last)
    }

    /// Drops the last handle; whether this ended the depot.
    pub fn close(&self, token: u32) -> bool {
        // SAFETY: the memory stays; the model has one handle.
        let last = unsafe { depot::Depot::close(self.0.get(), token) };
        self.end_if(last)
    }

    fn end_if(&self, last: bool) -> bool {
        if last {
            // SAFETY: the depot told this thread alone to end it.
            unsafe { self.0.get().drop_in_place() };
        }
        last
    }
}
