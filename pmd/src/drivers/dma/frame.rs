//! Frames of several buffers.

use std::ptr::NonNull;

use pollux_mempool::{Mbuf, Mempool, PoolCache};

use super::copy::copy_frame;

/// Most buffers of a frame: what [`Mbuf::chain`] takes.
const MAX_SEGMENTS: usize = 1024;

/// Puts buffers together to a frame, each in one step whatever the frame's length.
pub(crate) struct Assembly {
    /// As many as a frame can have, or fewer.
    segments: Vec<Mbuf>,
}

impl Assembly {
    pub(crate) fn new() -> Self {
        Self {
            segments: Vec::with_capacity(MAX_SEGMENTS),
        }
    }

    /// Adds a buffer behind the others.
    ///
    /// # Errors
    /// Gives it back if the frame cannot have more.
    pub(crate) fn push(&mut self, segment: Mbuf) -> Result<(), Mbuf> {
        if self.segments.len() == MAX_SEGMENTS {
            return Err(segment);
        }
        self.segments.push(segment);
        Ok(())
    }

    /// Copies bytes behind those that are there, into buffers that `alloc` gives; `false` if it has
    /// no more, or if the frame cannot have more.
    ///
    /// # Safety
    /// `from` is valid for reads of `len` bytes, none of which is in a buffer that was pushed or that
    /// `alloc` gives.
    pub(crate) unsafe fn append(
        &mut self,
        mut from: NonNull<u8>,
        mut len: usize,
        mut alloc: impl FnMut() -> Option<Mbuf>,
    ) -> bool {
        while len > 0 {
            let room = self.segments.last().map_or(0, Mbuf::tailroom);
            if room == 0 {
                let Some(fresh) = alloc() else { return false };
                if self.push(fresh).is_err() {
                    return false;
                }
                continue;
            }
            let n = room.min(len);
            let Some(to) = self.segments.last_mut().and_then(|last| last.append(n)) else {
                return false;
            };
            // SAFETY: `n` bytes of the source are left, and the destination is as long. They do not
            // overlap: it is the tailroom of a buffer that `self` has, of which nobody else has a
            // byte, and the caller's bytes lie in none of these.
            unsafe {
                copy_frame(from, NonNull::from(to).cast(), n);
                from = from.add(n);
            }
            len -= n;
        }
        true
    }

    /// The frame; `None` if there is nothing. Built from the back, so that each link is one step.
    pub(crate) fn finish(&mut self) -> Option<Mbuf> {
        let mut frame = self.segments.pop()?;
        while let Some(mut segment) = self.segments.pop() {
            // It fits: there are no more than a chain may have. Else the rest would be dropped.
            drop(segment.chain(frame));
            frame = segment;
        }
        Some(frame)
    }

    /// Frees what there is.
    pub(crate) fn abandon(&mut self, cache: &mut PoolCache) {
        while let Some(segment) = self.segments.pop() {
            cache.free(segment);
        }
    }
}

/// Takes a buffer of `pool`, by way of the cache if that is its cache.
#[inline]
pub(crate) fn alloc(pool: &Mempool, cache: &mut PoolCache) -> Option<Mbuf> {
    if cache.pool().id() == pool.id() {
        cache.alloc()
    } else {
        pool.alloc()
    }
}
