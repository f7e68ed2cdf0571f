//! Payload of a fragment, in the buffer that it arrived in. Fragments share a buffer as they shared
//! a frame.

use std::cell::RefCell;
use std::ops::{Deref, Range};
use std::rc::Rc;

use pollux_pmd::mempool::{Frozen, PoolCache};

/// The free buffers of a loop: its carrier takes and returns them, and so do payloads.
pub(super) type Buffers = Rc<RefCell<PoolCache>>;

/// A payload. Its buffer returns to the loop's cache when the last payload in it is dropped.
pub struct Payload {
    frame: Option<Frozen>,
    start: usize,
    end: usize,
    buffers: Buffers,
}

impl Payload {
    /// Bytes of a frame.
    #[inline]
    pub(super) fn new(frame: Frozen, bytes: Range<usize>, buffers: &Buffers) -> Self {
        Self {
            frame: Some(frame),
            start: bytes.start,
            end: bytes.end,
            buffers: Rc::clone(buffers),
        }
    }
}

impl Deref for Payload {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let data = self.frame.as_ref().map_or(&[][..], |frame| frame.data());
        data.get(self.start..self.end).unwrap_or_default()
    }
}

impl Drop for Payload {
    #[inline]
    fn drop(&mut self) {
        // Where the cache is in use, the frame's own drop takes the buffer to the pool.
        if let Some(frame) = self.frame.take()
            && let Ok(mut buffers) = self.buffers.try_borrow_mut()
        {
            release(frame, &mut buffers);
        }
    }
}

/// Gives up a frame: its last owner returns the buffer to the cache.
#[inline]
pub(super) fn release(frame: Frozen, buffers: &mut PoolCache) {
    if let Ok(frame) = frame.try_thaw() {
        buffers.free(frame);
    }
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({} bytes)", self.len())
    }
}
