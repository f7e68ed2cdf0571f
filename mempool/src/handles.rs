//! Handles of buffers from their numbers: for a driver whose device has buffers that nobody holds a
//! handle of.

use core::ptr::NonNull;

use crate::mbuf::{Header, Mbuf, RawMbuf};

/// Makes handles of a pool's buffers from their numbers, and tells the numbers of handles, by
/// arithmetic alone. The maker is an address: it does not keep the pool alive.
#[derive(Clone, Copy, Debug)]
pub struct Handles {
    first: NonNull<Header>,
    buffers: u32,
}

// SAFETY: an address and a number; what it takes to use them is said there.
unsafe impl Send for Handles {}
// SAFETY: as above.
unsafe impl Sync for Handles {}

impl Handles {
    pub(crate) fn new(first: NonNull<Header>, buffers: u32) -> Self {
        Self { first, buffers }
    }

    /// Number of the buffer (of the frame's first segment), as [`Mbuf::index`] has it; `None` if
    /// it is of another pool.
    #[must_use]
    #[inline(always)]
    pub fn index_of(&self, mbuf: &Mbuf) -> Option<u32> {
        let at = core::ptr::from_ref(mbuf.header()).addr();
        let index = at.wrapping_sub(self.first.addr().get()) / size_of::<Header>();
        (index < self.buffers as usize).then_some(index as u32)
    }

    /// The handle of a buffer that the caller is responsible for without holding one.
    ///
    /// # Safety
    /// The pool has a buffer of that number. A handle of it was forgotten ([`core::mem::forget`]),
    /// which made the caller responsible for it, and no other was made since; so the buffer is not
    /// back, and the pool is alive.
    #[must_use]
    #[inline(always)]
    pub unsafe fn handle(&self, index: u32) -> Mbuf {
        debug_assert!(index < self.buffers, "no such buffer");
        // SAFETY: there is a header for each number.
        let header = unsafe { self.first.add(index as usize) };
        // SAFETY: by the caller's promise this is the one handle of the buffer.
        unsafe { Mbuf::from_raw(RawMbuf(header)) }
    }
}
