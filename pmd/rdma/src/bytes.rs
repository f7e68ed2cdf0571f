//! Bytes of registered memory, for as long as they are there.

use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::copy::{copy_from_shared, copy_shared, copy_to_shared};

/// Bytes of registered memory that are there for as long as `'a`: a session, or the
/// mapping.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a> {
    start: NonNull<u8>,
    len: usize,
    _session: PhantomData<&'a ()>,
}

impl<'a> Bytes<'a> {
    /// Bytes of memory that a peer may access.
    ///
    /// # Safety
    /// They can be read and written for as long as `'a`, and are accessed by copies alone.
    pub(crate) unsafe fn new(start: NonNull<u8>, len: usize) -> Self {
        Self {
            start,
            len,
            _session: PhantomData,
        }
    }

    /// `len` of them from `offset` on; fewer if they end before.
    #[inline]
    pub(crate) fn part(&self, offset: usize, len: usize) -> Bytes<'a> {
        let offset = offset.min(self.len);
        Bytes {
            // SAFETY: inside the bytes, or at their end.
            start: unsafe { self.start.add(offset) },
            len: len.min(self.len - offset),
            _session: PhantomData,
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Writes all of them; `from` has as many.
    #[inline]
    pub(crate) fn write(&self, from: &[u8]) {
        debug_assert_eq!(from.len(), self.len);
        let len = from.len().min(self.len);
        // SAFETY: the range has so many bytes, and is not taken away within the session; memory of
        // registered ranges is in no slice (`Memory`).
        unsafe { copy_to_shared(self.start.as_ptr(), &from[..len]) };
    }

    /// Reads all of them; `to` has as many.
    #[inline]
    pub(crate) fn read(&self, to: &mut [u8]) {
        debug_assert_eq!(to.len(), self.len);
        let len = to.len().min(self.len);
        // SAFETY: as in `write`.
        unsafe { copy_from_shared(self.start.as_ptr(), &mut to[..len]) };
    }

    /// Copies all of them to as many others, from the first byte on. Where the two overlap, the bytes
    /// there are any.
    pub(crate) fn copy_to(&self, to: &Bytes<'_>) {
        let len = self.len.min(to.len);
        // SAFETY: as in `write`, for both.
        unsafe { copy_shared(to.start.as_ptr(), self.start.as_ptr(), len) };
    }
}
