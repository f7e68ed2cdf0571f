//! Frames of several buffers: each header names the next segment's.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use super::handle::Mbuf;
use crate::buffers::{PoolInner, RawMbuf};

/// Longest chain of segments that a frame may have.
pub(crate) const MAX_SEGMENTS: u16 = 1024;

impl Mbuf {
    /// The last segment of the frame.
    fn last(&self) -> RawMbuf {
        let mut last = self.0;
        // SAFETY: the chain belongs to this handle, which is borrowed.
        while let Some(next) = unsafe { last.0.as_ref() }.next {
            last = next;
        }
        last
    }

    /// [`append`](Self::append) to a frame of several segments.
    pub(super) fn append_to_chain(&mut self, n: usize) -> Option<&mut [u8]> {
        // SAFETY: the last segment is reached through this handle alone, and the second handle is
        // not dropped.
        let mut last = ManuallyDrop::new(unsafe { Mbuf::from_raw(self.last()) });
        if n > last.tailroom() {
            return None;
        }
        let old = last.len();
        last.header_mut().extent.len += n as u32;
        let start = last.data_ptr().cast_mut();
        self.header_mut().extent.total += n as u32;
        // SAFETY: old + n bytes are inside the last segment's room, initialised, and borrowed
        // through `self`.
        Some(unsafe { core::slice::from_raw_parts_mut(start.add(old), n) })
    }

    /// Shortens the frame to `total` bytes and frees the segments that hold none of them; a frame
    /// that is not longer than that stays as it is.
    #[inline]
    pub fn truncate(&mut self, total: usize) {
        if total >= self.total_len() {
            return;
        }
        let extent = &mut self.header_mut().extent;
        if extent.segments == 1 {
            (extent.len, extent.total) = (total as u32, total as u32);
        } else {
            self.truncate_chain(total);
        }
    }

    /// [`truncate`](Self::truncate) of a frame that is longer, in several segments.
    fn truncate_chain(&mut self, total: usize) {
        let mut keep = total;
        let mut kept_segments = 1;
        let mut raw = self.0;
        loop {
            // SAFETY: the chain belongs to this handle, which is borrowed exclusively.
            let header = unsafe { &mut *raw.0.as_ptr() };
            let len = header.extent.len as usize;
            if keep <= len {
                header.extent.len = keep as u32;
                if let Some(rest) = header.next.take() {
                    // SAFETY: the rest of the chain has just been cut off: this is its one owner.
                    drop(unsafe { Mbuf::adopt_chain(rest) });
                }
                break;
            }
            keep -= len;
            match header.next {
                Some(next) => raw = next,
                None => break,
            }
            kept_segments += 1;
        }
        let extent = &mut self.header_mut().extent;
        extent.segments = kept_segments;
        extent.total = total as u32;
    }

    /// Chains `tail` (itself a frame of one or more segments) behind this frame.
    ///
    /// # Errors
    /// Gives `tail` back if the chain would have more than 1024 segments or 4 GiB.
    pub fn chain(&mut self, tail: Mbuf) -> Result<(), Mbuf> {
        let (mine, other) = (self.header().extent, tail.header().extent);
        let Some(total) = mine.total.checked_add(other.total) else {
            return Err(tail);
        };
        let segments = mine.segments + other.segments;
        if segments > MAX_SEGMENTS {
            return Err(tail);
        }
        let last = self.last();
        // SAFETY: the chain belongs to this handle, which is borrowed exclusively; `tail` is moved
        // into it, so it keeps exactly one owner.
        unsafe { (*last.0.as_ptr()).next = Some(tail.into_raw()) };
        let extent = &mut self.header_mut().extent;
        extent.segments = segments;
        extent.total = total;
        Ok(())
    }

    /// Takes ownership of a chain that was cut out of another, and makes its head a head again.
    ///
    /// # Safety
    /// The caller hands over the responsibility for `raw` and all that follows it.
    unsafe fn adopt_chain(raw: RawMbuf) -> Mbuf {
        let (mut segments, mut total) = (0, 0);
        let mut at = Some(raw);
        while let Some(segment) = at {
            // SAFETY: the caller owns the chain.
            let header = unsafe { segment.0.as_ref() };
            segments += 1;
            total += header.extent.len;
            at = header.next;
        }
        let mut head = Mbuf(raw);
        let extent = &mut head.header_mut().extent;
        extent.segments = segments;
        extent.total = total;
        head
    }

    /// Cuts the frame behind its first segment and returns the rest, if there is any.
    #[must_use]
    pub fn split_off(&mut self) -> Option<Mbuf> {
        let rest = self.header_mut().next.take()?;
        let extent = &mut self.header_mut().extent;
        extent.segments = 1;
        extent.total = extent.len;
        // SAFETY: the rest of the chain has just been cut off: this is its one owner.
        Some(unsafe { Self::adopt_chain(rest) })
    }

    /// The data of each segment in turn.
    #[must_use]
    #[inline]
    pub fn segments(&self) -> Segments<'_> {
        Segments::of(self.0)
    }

    /// Copies bytes of the frame from `offset` on into `out`, across segments; returns how many
    /// there were to copy.
    pub fn copy_to(&self, offset: usize, out: &mut [u8]) -> usize {
        let (mut skip, mut done) = (offset, 0);
        for segment in self.segments() {
            let from = skip.min(segment.len());
            skip -= from;
            let n = (segment.len() - from).min(out.len() - done);
            out[done..done + n].copy_from_slice(&segment[from..from + n]);
            done += n;
            if done == out.len() {
                break;
            }
        }
        done
    }

    /// Returns every segment to `give`, reset and unchained.
    #[inline]
    pub(crate) fn dismantle(self, mut give: impl FnMut(NonNull<PoolInner>, RawMbuf)) {
        let mut at = Some(self.into_raw());
        while let Some(raw) = at {
            // SAFETY: the chain belonged to the handle just given up. `next` and the pool are read
            // before the segment is handed over; the pool outlives its unreturned buffer.
            let pool = unsafe {
                let header = &mut *raw.0.as_ptr();
                at = header.next.take();
                header.pool
            };
            // SAFETY: this segment is now reached by `raw` alone; its pool lives.
            unsafe { raw.reset(pool.as_ref().fresh()) };
            give(pool, raw);
        }
    }
}

/// Iterator over the data of a frame's segments.
pub struct Segments<'a> {
    at: Option<RawMbuf>,
    frame: core::marker::PhantomData<&'a [u8]>,
}

impl Segments<'_> {
    /// The segments of a frame that its owner keeps for as long as the iterator lives.
    #[inline]
    pub(crate) fn of(head: RawMbuf) -> Self {
        Self {
            at: Some(head),
            frame: core::marker::PhantomData,
        }
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let raw = self.at?;
        // SAFETY: the frame that this iterator borrows owns the segment; the handle is not dropped.
        let segment = ManuallyDrop::new(unsafe { Mbuf::from_raw(raw) });
        self.at = segment.header().next;
        // SAFETY: the data stays valid and unchanged while the frame is borrowed.
        Some(unsafe { core::slice::from_raw_parts(segment.data_ptr(), segment.len()) })
    }
}
