//! The packet buffer: one header cache line, headroom, data; one owner.
//!
//! ```text
//!   element of a pool (stride bytes, a multiple of 64)
//!   +----------------+-----------+--------------------+----------+
//!   | header (64 B)  | headroom  | data (len bytes)   | tailroom |
//!   +----------------+-----------+--------------------+----------+
//!                    |<----------------- room ------------------>|
//! ```
//!
//! A free buffer's header is always in its reset state, so allocation touches no buffer memory at
//! all; whoever frees a buffer has its header in the cache anyway and resets it there.

use core::fmt;
use core::mem::{ManuallyDrop, offset_of, size_of};
use core::ptr::{self, NonNull};
use core::sync::atomic::AtomicU32;

use crate::pool::PoolInner;
use crate::time::{Tsc, WireTime};

/// Bytes of the header in front of each buffer's room.
pub(crate) const HEADER: usize = 64;

/// Longest chain of segments that a frame may have.
pub(crate) const MAX_SEGMENTS: u16 = 1024;

/// What is known about a received frame, or asked of a frame to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct MbufFlags(u32);

impl MbufFlags {
    /// [`Mbuf::wire_time`] is valid.
    pub const WIRE_TIME: Self = Self(1);
    /// The stamp is recorded (a capture file's), not the present.
    pub const RECORDED: Self = Self(1 << 1);
    /// The sender or the device vouches for the L4 checksum, or left it unfinished on a path that
    /// needs none (a local sender's frame over a virtual link): do not verify it.
    pub const CHECKSUM_TRUSTED: Self = Self(1 << 2);

    /// Whether all bits of `other` are set.
    #[must_use]
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of bits.
    #[must_use]
    #[inline]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The part of the header that changes from frame to frame and is reset as a whole.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Extent {
    /// Start of the data, in bytes from the end of the header.
    pub(crate) offset: u16,
    /// Segments in the chain that starts here.
    pub(crate) segments: u16,
    /// Bytes of data in this segment.
    pub(crate) len: u32,
    /// Bytes of data in the chain that starts here; valid in a head segment only.
    pub(crate) total: u32,
    pub(crate) flags: MbufFlags,
}

impl Extent {
    /// A free buffer's: no data, one segment.
    pub(crate) const fn fresh(headroom: u16) -> Self {
        Self {
            offset: headroom,
            segments: 1,
            len: 0,
            total: 0,
            flags: MbufFlags(0),
        }
    }
}

#[repr(C, align(64))]
pub(crate) struct Header {
    pub(crate) pool: NonNull<PoolInner>,
    pub(crate) next: Option<RawMbuf>,
    pub(crate) extent: Extent,
    pub(crate) port: u16,
    pub(crate) queue: u16,
    pub(crate) ordinal: u32,
    pub(crate) wire: WireTime,
    pub(crate) arrival: Tsc,
    /// Owners of a frozen buffer; 1 at all other times.
    pub(crate) owners: AtomicU32,
    /// Bytes behind the header: headroom, data and tailroom.
    pub(crate) room: u32,
}

const _: () = assert!(size_of::<Header>() == HEADER);
const _: () = assert!(offset_of!(Header, extent) == 16 && size_of::<Extent>() == 16);
const _: () = assert!(size_of::<Option<Mbuf>>() == 8);

/// A buffer without an owner in the type system: what rings, caches and the depot hold. Whoever
/// holds one is responsible for exactly one later [`Mbuf::from_raw`] or depot push.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(crate) struct RawMbuf(pub(crate) NonNull<Header>);

// SAFETY: a raw buffer is an address; the memory behind it is reached only by its one responsible
// holder, and moving that responsibility to another thread is what the rings' release stores
// publish.
unsafe impl Send for RawMbuf {}

impl RawMbuf {
    /// # Safety
    /// The caller is the only one who may reach this buffer.
    #[inline(always)]
    pub(crate) unsafe fn reset(self, fresh: &Extent) {
        // SAFETY: the header is valid for as long as the pool lives, which the unreturned buffer
        // guarantees, and the caller is its only user. A copy from memory is one vector move;
        // a value made here would be stored field by field.
        unsafe { ptr::copy_nonoverlapping(fresh, &raw mut (*self.0.as_ptr()).extent, 1) };
    }

    /// Whether this is a single segment of the pool at `pool`: what a cache takes back directly.
    ///
    /// # Safety
    /// The caller owns the buffer.
    #[inline(always)]
    pub(crate) unsafe fn is_plain(self, pool: NonNull<PoolInner>) -> bool {
        // SAFETY: an owned buffer has a valid header that nobody else writes.
        let header = unsafe { self.0.as_ref() };
        (header.pool == pool) & header.next.is_none()
    }
}

/// An owned packet buffer (a handle of 8 bytes), possibly the head of a chain of segments.
///
/// Dropping it returns the whole chain to the depot of its pool: always correct, and slower than
/// [`PoolCache::free_burst`](crate::PoolCache::free_burst), which hot paths use. It cannot be
/// cloned; to share its bytes, [`freeze`](Self::freeze) it.
#[repr(transparent)]
pub struct Mbuf(RawMbuf);

// SAFETY: the handle is the only way to its buffer, so it can be used from any one thread.
unsafe impl Send for Mbuf {}
// SAFETY: `&Mbuf` only reads, and nobody writes while shared references exist.
unsafe impl Sync for Mbuf {}

impl Mbuf {
    /// # Safety
    /// The caller hands over the responsibility for `raw`, whose header is in a valid state.
    #[inline]
    pub(crate) unsafe fn from_raw(raw: RawMbuf) -> Self {
        Self(raw)
    }

    #[inline]
    pub(crate) fn into_raw(self) -> RawMbuf {
        ManuallyDrop::new(self).0
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the handle owns the buffer, so its header is valid and only read meanwhile.
        unsafe { self.0.0.as_ref() }
    }

    #[inline]
    fn header_mut(&mut self) -> &mut Header {
        // SAFETY: the handle owns the buffer and is borrowed exclusively.
        unsafe { self.0.0.as_mut() }
    }

    #[inline]
    fn room_ptr(&self) -> *mut u8 {
        // SAFETY: each element is a header followed by its room, in one mapping.
        unsafe { self.0.0.as_ptr().cast::<u8>().add(HEADER) }
    }

    /// Start of this segment's data, for drivers that post the buffer to a device.
    #[must_use]
    #[inline]
    pub fn data_ptr(&self) -> *const u8 {
        // SAFETY: offset + len <= room in every valid header.
        unsafe {
            self.room_ptr()
                .add(usize::from(self.header().extent.offset))
        }
    }

    /// The bytes of this segment.
    #[must_use]
    #[inline]
    pub fn data(&self) -> &[u8] {
        // SAFETY: offset + len <= room, the memory is initialised (pools are zeroed), and the
        // handle owns it.
        unsafe { core::slice::from_raw_parts(self.data_ptr(), self.header().extent.len as usize) }
    }

    /// The bytes of this segment, to be changed.
    #[must_use]
    #[inline]
    pub fn data_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `data`; the handle is borrowed exclusively.
        unsafe {
            core::slice::from_raw_parts_mut(
                self.data_ptr().cast_mut(),
                self.header().extent.len as usize,
            )
        }
    }

    /// Bytes in this segment.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.header().extent.len as usize
    }

    /// Whether the whole frame is empty.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.total_len() == 0
    }

    /// Bytes in the frame: this segment and all that are chained behind it.
    #[must_use]
    #[inline]
    pub fn total_len(&self) -> usize {
        self.header().extent.total as usize
    }

    /// Segments in the frame.
    #[must_use]
    #[inline]
    pub fn segment_count(&self) -> usize {
        usize::from(self.header().extent.segments)
    }

    /// Free bytes in front of this segment's data.
    #[must_use]
    #[inline]
    pub fn headroom(&self) -> usize {
        usize::from(self.header().extent.offset)
    }

    /// Free bytes behind this segment's data.
    #[must_use]
    #[inline]
    pub fn tailroom(&self) -> usize {
        let header = self.header();
        header.room as usize - usize::from(header.extent.offset) - header.extent.len as usize
    }

    /// Grows the frame by `n` bytes in front and returns them (their content is whatever the
    /// buffer held); `None`, and no change, if the headroom is too small.
    #[must_use]
    #[inline]
    pub fn prepend(&mut self, n: usize) -> Option<&mut [u8]> {
        if n > self.headroom() {
            return None;
        }
        let extent = &mut self.header_mut().extent;
        extent.offset -= n as u16;
        extent.len += n as u32;
        extent.total += n as u32;
        Some(&mut self.data_mut()[..n])
    }

    /// Grows the frame by `n` bytes behind the data of its last segment and returns them (their
    /// content is whatever the buffer held); `None`, and no change, if the tailroom is too small.
    #[must_use]
    #[inline]
    pub fn append(&mut self, n: usize) -> Option<&mut [u8]> {
        if self.header().next.is_some() {
            return self.append_to_chain(n);
        }
        if n > self.tailroom() {
            return None;
        }
        let old = self.len();
        let extent = &mut self.header_mut().extent;
        extent.len += n as u32;
        extent.total += n as u32;
        Some(&mut self.data_mut()[old..])
    }

    fn append_to_chain(&mut self, n: usize) -> Option<&mut [u8]> {
        let mut last = self.0;
        // SAFETY: the chain belongs to this handle, which is borrowed exclusively.
        while let Some(next) = unsafe { (*last.0.as_ptr()).next } {
            last = next;
        }
        // SAFETY: `last` is reached through this handle alone, and the second handle is not dropped.
        let mut last = ManuallyDrop::new(unsafe { Mbuf::from_raw(last) });
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

    /// Takes `n` bytes off the front of this segment; `false`, and no change, if it has fewer.
    #[must_use]
    #[inline]
    pub fn advance(&mut self, n: usize) -> bool {
        if n > self.len() {
            return false;
        }
        let Ok(offset) = u16::try_from(self.headroom() + n) else {
            return false;
        };
        let extent = &mut self.header_mut().extent;
        extent.offset = offset;
        extent.len -= n as u32;
        extent.total -= n as u32;
        true
    }

    /// Shortens the frame to `total` bytes and frees the segments that hold none of them; a frame
    /// that is not longer than that stays as it is.
    pub fn truncate(&mut self, total: usize) {
        if total >= self.total_len() {
            return;
        }
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
        let mut last = self.0;
        // SAFETY: the chain belongs to this handle, which is borrowed exclusively.
        while let Some(next) = unsafe { (*last.0.as_ptr()).next } {
            last = next;
        }
        // SAFETY: as above; `tail` is moved into the chain, so it keeps exactly one owner.
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

    /// Makes the frame read-only and shareable; nothing is copied.
    #[must_use]
    #[inline]
    pub fn freeze(self) -> crate::Frozen {
        crate::Frozen::new(self)
    }

    /// Port that received the frame.
    #[must_use]
    #[inline]
    pub fn port(&self) -> u16 {
        self.header().port
    }

    /// Queue that received the frame.
    #[must_use]
    #[inline]
    pub fn queue(&self) -> u16 {
        self.header().queue
    }

    /// Number of the frame on its port, counted from 0 and wrapping at 2^32.
    #[must_use]
    #[inline]
    pub fn ordinal(&self) -> u32 {
        self.header().ordinal
    }

    /// When the world outside stamped the frame, if it did.
    #[must_use]
    #[inline]
    pub fn wire_time(&self) -> Option<WireTime> {
        let header = self.header();
        header
            .extent
            .flags
            .contains(MbufFlags::WIRE_TIME)
            .then_some(header.wire)
    }

    /// When the frame reached this process (on `loopback`: when it was put on the wire).
    #[must_use]
    #[inline]
    pub fn arrival(&self) -> Tsc {
        self.header().arrival
    }

    /// What is known about the frame.
    #[must_use]
    #[inline]
    pub fn flags(&self) -> MbufFlags {
        self.header().extent.flags
    }

    /// Writes where the frame came from: a driver does this for each frame that it receives.
    #[inline]
    pub fn set_origin(&mut self, port: u16, queue: u16, ordinal: u32, arrival: Tsc) {
        let header = self.header_mut();
        header.port = port;
        header.queue = queue;
        header.ordinal = ordinal;
        header.arrival = arrival;
    }

    /// Writes the stamp of the world outside and marks it as valid.
    #[inline]
    pub fn set_wire_time(&mut self, time: WireTime) {
        let header = self.header_mut();
        header.wire = time;
        header.extent.flags = header.extent.flags.union(MbufFlags::WIRE_TIME);
    }

    /// Writes when the frame reached the process.
    #[inline]
    pub fn set_arrival(&mut self, arrival: Tsc) {
        self.header_mut().arrival = arrival;
    }

    /// Adds to what is known about the frame.
    #[inline]
    pub fn add_flags(&mut self, flags: MbufFlags) {
        let header = self.header_mut();
        header.extent.flags = header.extent.flags.union(flags);
    }

    /// Whether this is a single segment of the pool at `pool`: what a cache takes back directly.
    #[inline]
    pub(crate) fn is_plain(&self, pool: NonNull<PoolInner>) -> bool {
        // SAFETY: the handle owns the buffer.
        unsafe { self.0.is_plain(pool) }
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

impl Drop for Mbuf {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the handle is being dropped, so this copy of it is the only one that acts.
        let owned = unsafe { Mbuf::from_raw(self.0) };
        // SAFETY: `dismantle` yields each unreturned segment of `pool` once.
        owned.dismantle(|pool, raw| unsafe { PoolInner::give_back(pool, &[raw]) });
    }
}

impl fmt::Debug for Mbuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mbuf")
            .field("len", &self.len())
            .field("total_len", &self.total_len())
            .field("segments", &self.segment_count())
            .field("port", &self.port())
            .field("queue", &self.queue())
            .field("wire_time", &self.wire_time())
            .finish_non_exhaustive()
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
