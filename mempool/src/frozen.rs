//! Read-only frames with several owners.

use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

use bytes::Bytes;

use crate::buffers::RawMbuf;
use crate::mbuf::{Mbuf, Segments};
use crate::metadata::Metadata;
use crate::time::{Tsc, WireTime};

/// A frame that is read-only from now on and can be cloned: a clone costs one atomic
/// increment, and the last owner returns the buffers to their pool.
pub struct Frozen(RawMbuf);

// SAFETY: the bytes are only read, and the count of owners is atomic.
unsafe impl Send for Frozen {}
// SAFETY: as above.
unsafe impl Sync for Frozen {}

impl Mbuf {
    /// Makes the frame read-only and shareable; nothing is copied.
    #[must_use]
    #[inline]
    pub fn freeze(self) -> Frozen {
        Frozen::new(self)
    }
}

impl Frozen {
    pub(crate) fn new(mbuf: Mbuf) -> Self {
        Self(mbuf.into_raw())
    }

    /// The frame as a ring carries it; this owner's share moves with it.
    #[inline]
    pub(crate) fn into_raw(self) -> RawMbuf {
        ManuallyDrop::new(self).0
    }

    /// # Safety
    /// `raw` is of [`into_raw`](Self::into_raw), and becomes an owner once.
    #[inline]
    pub(crate) unsafe fn from_raw(raw: RawMbuf) -> Self {
        Self(raw)
    }

    /// The frame, without ownership.
    fn mbuf(&self) -> ManuallyDrop<Mbuf> {
        // SAFETY: used for reading only, and not dropped.
        ManuallyDrop::new(unsafe { Mbuf::from_raw(self.0) })
    }

    /// The bytes of the first segment: the whole frame, unless it is chained.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        let mbuf = self.mbuf();
        // SAFETY: the bytes stay valid and unchanged for as long as this owner exists.
        unsafe { core::slice::from_raw_parts(mbuf.data_ptr(), mbuf.len()) }
    }

    /// The bytes of each segment in turn.
    #[must_use]
    pub fn segments(&self) -> Segments<'_> {
        Segments::of(self.0)
    }

    /// Bytes in the frame, over all segments.
    #[must_use]
    pub fn total_len(&self) -> usize {
        self.mbuf().total_len()
    }

    /// Metadata of the frame, as [`Mbuf::metadata`].
    #[must_use]
    pub fn metadata(&self) -> Option<&Metadata> {
        let mbuf = self.mbuf();
        let line = mbuf.metadata().map(NonNull::from);
        // SAFETY: the line stays valid and unchanged for as long as this owner exists.
        line.map(|line| unsafe { line.as_ref() })
    }

    /// When the world outside stamped the frame, if it did.
    #[must_use]
    pub fn wire_time(&self) -> Option<WireTime> {
        self.mbuf().wire_time()
    }

    /// Number of the frame, as [`Mbuf::ordinal`].
    #[must_use]
    #[inline]
    pub fn ordinal(&self) -> u32 {
        self.mbuf().ordinal()
    }

    /// When the frame reached this process.
    #[must_use]
    pub fn arrival(&self) -> Tsc {
        self.mbuf().arrival()
    }

    /// Gives the buffer back to its only owner, to be changed again.
    ///
    /// # Errors
    /// Gives `self` back if there are other owners.
    pub fn try_thaw(self) -> Result<Mbuf, Frozen> {
        // Acquire: pairs with the release decrement in `drop`: the reads of former owners are over.
        if self.mbuf().header().owners.load(Ordering::Acquire) == 1 {
            // SAFETY: this is the only owner, and it becomes the owned handle.
            Ok(unsafe { Mbuf::from_raw(ManuallyDrop::new(self).0) })
        } else {
            Err(self)
        }
    }

    /// The frame as `Bytes`, without a copy. A chained frame has no contiguous bytes: see
    /// [`segment_bytes`](Self::segment_bytes).
    ///
    /// # Errors
    /// Gives `self` back if the frame is chained.
    pub fn into_bytes(self) -> Result<Bytes, Frozen> {
        if self.mbuf().segment_count() > 1 {
            return Err(self);
        }
        Ok(Bytes::from_owner(SegmentOwner {
            index: 0,
            frame: self,
        }))
    }

    /// Each segment as `Bytes`, without a copy; the buffers live until the last of them is dropped.
    pub fn segment_bytes(&self) -> impl Iterator<Item = Bytes> + '_ {
        (0..self.mbuf().segment_count()).map(|index| {
            Bytes::from_owner(SegmentOwner {
                index,
                frame: self.clone(),
            })
        })
    }
}

/// Keeps a frame alive for the bytes of one of its segments.
struct SegmentOwner {
    index: usize,
    frame: Frozen,
}

impl AsRef<[u8]> for SegmentOwner {
    fn as_ref(&self) -> &[u8] {
        self.frame.segments().nth(self.index).unwrap_or_default()
    }
}

impl Clone for Frozen {
    fn clone(&self) -> Self {
        // Relaxed: the new owner is made from an existing one, which keeps the frame alive.
        let before = self.mbuf().header().owners.fetch_add(1, Ordering::Relaxed);
        if before > u32::MAX / 2 {
            // Two thousand million owners are a program that loses them; wrapping to zero would
            // free the frame under the others.
            std::process::abort();
        }
        Self(self.0)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let mbuf = self.mbuf();
        let owners = &mbuf.header().owners;
        // Release: pairs with the acquire loads below and in `try_thaw`.
        if owners.fetch_sub(1, Ordering::Release) == 1 {
            // Acquire: pairs with the release decrements of the former owners, of which each goes
            // on with the release sequence of the one before. A load and not a fence, as
            // ThreadSanitizer sees no fences; the line is here anyway.
            owners.load(Ordering::Acquire);
            owners.store(1, Ordering::Relaxed);
            drop(ManuallyDrop::into_inner(mbuf));
        }
    }
}

impl fmt::Debug for Frozen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Frozen").field(&*self.mbuf()).finish()
    }
}
