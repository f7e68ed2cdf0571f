//! Frames of several buffers.

use std::ptr::NonNull;

use pollux_mempool::{Mbuf, Mempool, PoolCache};

use super::copy::copy_frame;

/// Maximum number of buffers of a frame: the limit of [`Mbuf::chain`].
const MAX_SEGMENTS: usize = 1024;

/// Assembles buffers to a frame, with constant work for each buffer.
pub struct Assembly {
    /// Up to `MAX_SEGMENTS`.
    segments: Vec<Mbuf>,
}

impl Default for Assembly {
    fn default() -> Self {
        Self::new()
    }
}

impl Assembly {
    /// An empty frame, with room for the most segments.
    #[must_use]
    pub fn new() -> Self {
        Self {
            segments: Vec::with_capacity(MAX_SEGMENTS),
        }
    }

    /// Appends a buffer.
    ///
    /// # Errors
    /// Returns the buffer if the frame has the maximum number.
    pub fn push(&mut self, segment: Mbuf) -> Result<(), Mbuf> {
        if self.segments.len() == MAX_SEGMENTS {
            return Err(segment);
        }
        self.segments.push(segment);
        Ok(())
    }

    /// Appends a copy of bytes, in buffers that `alloc` returns; `false` if it returns none, or if
    /// the frame has the maximum number.
    ///
    /// # Safety
    /// `from` is valid for reads of `len` bytes, none of which is in a buffer that was pushed or
    /// that `alloc` returns.
    pub unsafe fn append(
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
            // SAFETY: `n` bytes of the source remain, and the destination is as long. They do not
            // overlap: the destination is the tailroom of a buffer that `self` owns exclusively,
            // and by the caller's promise its bytes are in none of these buffers.
            unsafe {
                copy_frame(from, NonNull::from(to).cast(), n);
                from = from.add(n);
            }
            len -= n;
        }
        true
    }

    /// The frame; `None` if it is empty. Built from the back, so that each link is one step.
    pub fn finish(&mut self) -> Option<Mbuf> {
        let mut frame = self.segments.pop()?;
        while let Some(mut segment) = self.segments.pop() {
            // The chain fits: its length is at most the maximum. Otherwise the rest would be
            // dropped.
            drop(segment.chain(frame));
            frame = segment;
        }
        Some(frame)
    }

    /// Frees all buffers.
    pub fn abandon(&mut self, cache: &mut PoolCache) {
        while let Some(segment) = self.segments.pop() {
            cache.free(segment);
        }
    }
}

/// Takes a buffer of `pool`, through the cache if it belongs to the pool.
#[inline]
pub fn alloc(pool: &Mempool, cache: &mut PoolCache) -> Option<Mbuf> {
    if cache.pool().id() == pool.id() {
        cache.alloc()
    } else {
        pool.alloc()
    }
}
