//! Payloads of fragments, in the buffer that they arrived in, or were written to. Fragments share a buffer
//! as they share a frame.

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

use pollux_pmd::mempool::{Mbuf, PoolCache};

/// The free buffers of a loop: its carrier takes and returns them, and so do payloads.
pub(super) type Buffers = Rc<RefCell<Free>>;

/// Free buffers, and what counts the owners of those in use.
pub(super) struct Free {
    pub(super) cache: PoolCache,
    /// Frames without a buffer, for all buffers of the pool.
    spare: Vec<Rc<Frame>>,
}

/// A buffer with several owners in one loop.
#[derive(Default)]
struct Frame {
    buffer: Option<Mbuf>,
    /// Where the buffer returns to; none where it has none, or the list of these would own itself.
    free: Option<Buffers>,
}

impl Free {
    /// Free buffers. All memory is allocated here.
    pub(super) fn new(cache: PoolCache) -> Buffers {
        let frames = cache.pool().buffers();
        Rc::new(RefCell::new(Self {
            cache,
            spare: (0..frames).map(|_| Rc::default()).collect(),
        }))
    }
}

/// An owner of a frame. The last one returns the buffer to the loop's cache. The owners are of one loop, so
/// that counting them needs no atomic operation.
#[derive(Clone)]
pub(super) struct Owner(Option<Rc<Frame>>);

impl Owner {
    /// The first owner of a frame.
    #[inline]
    pub(super) fn new(buffer: Mbuf, buffers: &Buffers) -> Self {
        let mut frame = buffers.borrow_mut().spare.pop().unwrap_or_default();
        if let Some(frame) = Rc::get_mut(&mut frame) {
            frame.buffer = Some(buffer);
            frame.free = Some(Rc::clone(buffers));
        }
        Self(Some(frame))
    }

    /// The bytes of the frame.
    #[inline]
    pub(super) fn data(&self) -> &[u8] {
        let buffer = self.0.as_ref().and_then(|frame| frame.buffer.as_ref());
        buffer.map_or(&[], Mbuf::data)
    }
}

impl Drop for Owner {
    #[inline]
    fn drop(&mut self) {
        let Some(mut frame) = self.0.take() else {
            return;
        };
        let Some(last) = Rc::get_mut(&mut frame) else {
            return;
        };
        let (buffer, buffers) = (last.buffer.take(), last.free.take());
        // Where the cache is in use, the buffer's own drop takes it to the pool.
        if let Some(buffer) = buffer
            && let Some(buffers) = &buffers
            && let Ok(mut free) = buffers.try_borrow_mut()
        {
            free.cache.free(buffer);
            if free.spare.len() < free.spare.capacity() {
                free.spare.push(frame);
            }
        }
    }
}

/// A payload. Its buffer returns to the loop's cache when the last payload in it is dropped.
pub struct Payload {
    frame: Owner,
    start: u32,
    end: u32,
}

impl Payload {
    /// So many bytes of a frame.
    #[inline]
    pub(super) fn new(frame: Owner, start: usize, bytes: usize) -> Self {
        // No buffer is as long as 32 bits could not say.
        let (start, end) = (start as u32, (start + bytes) as u32);
        Self { frame, start, end }
    }
}

impl Deref for Payload {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let bytes = self.start as usize..self.end as usize;
        self.frame.data().get(bytes).unwrap_or_default()
    }
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({} bytes)", self.len())
    }
}

/// Payloads of as many bytes, at equal distances in a frame.
pub struct Payloads {
    /// None behind the last payload.
    frame: Option<Owner>,
    start: usize,
    bytes: usize,
    distance: usize,
    left: usize,
}

impl Payloads {
    /// So many payloads; of none, the frame is given up.
    #[inline]
    pub(super) fn new(
        frame: Option<Owner>,
        start: usize,
        (bytes, distance): (usize, usize),
        count: usize,
    ) -> Self {
        Self {
            frame: frame.filter(|_| count > 0),
            start,
            bytes,
            distance,
            left: count,
        }
    }
}

impl Iterator for Payloads {
    type Item = Payload;

    #[inline]
    fn next(&mut self) -> Option<Payload> {
        self.left = self.left.checked_sub(1)?;
        // The last payload gets the owner itself.
        let frame = if self.left == 0 {
            self.frame.take()
        } else {
            self.frame.clone()
        };
        let payload = Payload::new(frame?, self.start, self.bytes);
        self.start += self.distance;
        Some(payload)
    }
}
