//! Payload of a fragment, in the buffer that it arrived in.

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

use pollux_pmd::mempool::{Mbuf, PoolCache};

/// The free buffers of a loop: its carrier takes and returns them, and so do payloads.
pub(super) type Buffers = Rc<RefCell<PoolCache>>;

/// A payload. Its buffer returns to the loop's cache when it is dropped.
pub struct Payload {
    frame: Option<Mbuf>,
    start: usize,
    buffers: Buffers,
}

impl Payload {
    /// The data of a frame from `start` on.
    pub(super) fn new(frame: Mbuf, start: usize, buffers: &Buffers) -> Self {
        Self {
            frame: Some(frame),
            start,
            buffers: Rc::clone(buffers),
        }
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let data = self.frame.as_ref().map_or(&[][..], |frame| frame.data());
        data.get(self.start..).unwrap_or_default()
    }
}

impl Drop for Payload {
    #[inline]
    fn drop(&mut self) {
        // Where the cache is in use, the frame's own drop takes the buffer to the pool.
        if let Some(frame) = self.frame.take()
            && let Ok(mut buffers) = self.buffers.try_borrow_mut()
        {
            buffers.free(frame);
        }
    }
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({} bytes)", self.len())
    }
}
