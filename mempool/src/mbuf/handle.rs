//! The handle of a packet buffer.

use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use super::ChecksumRequest;
use crate::buffers::{Extent, Header, LINE, MbufFlags, PoolId, PoolInner, RawMbuf};
use crate::metadata::Metadata;
use crate::prefetch;
use crate::time::{Tsc, WireTime};

const _: () = assert!(size_of::<Option<Mbuf>>() == 8);

/// An owned packet buffer (a handle of 8 bytes), possibly the head of a chain of segments.
///
/// Dropping it returns the whole chain to the free list of its pool: always correct, and slower than
/// [`PoolCache::free_burst`](crate::PoolCache::free_burst), which hot paths use. It cannot be
/// cloned; to share its bytes, [`freeze`](Self::freeze) it.
#[repr(transparent)]
pub struct Mbuf(pub(super) RawMbuf);

// SAFETY: the handle is the only way to its buffer, so it can be used from any one thread.
unsafe impl Send for Mbuf {}
// SAFETY: `&Mbuf` only reads, and there is no writer while shared references exist.
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
    pub(crate) fn header_mut(&mut self) -> &mut Header {
        // SAFETY: the handle owns the buffer and is borrowed exclusively.
        unsafe { self.0.0.as_mut() }
    }

    #[inline]
    fn pool(&self) -> &PoolInner {
        // SAFETY: the pool lives at least as long as this unreturned buffer.
        unsafe { self.header().pool.as_ref() }
    }

    /// Number of the buffer (of the frame's first segment) in its pool, below
    /// [`Mempool::buffers`](crate::Mempool::buffers): by it a driver finds again what it has
    /// posted. Only numbers of the same [pool](Self::pool_id) compare.
    #[must_use]
    #[inline]
    pub fn index(&self) -> u32 {
        self.pool().index(self.header())
    }

    /// The pool that the buffer (the frame's first segment) belongs to.
    #[must_use]
    #[inline]
    pub fn pool_id(&self) -> PoolId {
        PoolId::of(self.header().pool)
    }

    /// Where this segment's data begins in the [region](crate::Mempool::region) of its pool, in
    /// bytes: what [`IovaMap::iova`](crate::IovaMap::iova) translates for a device.
    #[must_use]
    #[inline]
    pub fn data_offset(&self) -> usize {
        let header = self.header();
        header.place.offset() + usize::from(header.extent.offset)
    }

    /// Start of this segment's data, for drivers that post the buffer to a device.
    #[must_use]
    #[inline]
    pub fn data_ptr(&self) -> *const u8 {
        self.pool().at(self.data_offset())
    }

    /// Asks for the lines with the headers of a frame that will be looked at soon: of one that has
    /// just been received, they are in another core's cache, or in none.
    #[inline]
    pub fn prefetch_read(&self) {
        let start = self.data_ptr();
        prefetch::prefetch_read(start);
        prefetch::prefetch_read(start.wrapping_add(LINE));
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
        let extent = self.header().extent;
        self.pool().stride() - usize::from(extent.offset) - extent.len as usize
    }

    /// Grows the frame by `n` bytes in front and returns them (their content is undefined: what the
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
    /// content is what the buffer held before); `None`, and no change, if the tailroom is too small.
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

    /// Makes the `len` bytes that begin `offset` bytes into the room the frame's data, and forgets
    /// what was known about it: what a device has filled. `false`, and no change, if they are not
    /// all in the room, or if the frame has more than one segment.
    #[must_use]
    #[inline]
    pub fn set_data(&mut self, offset: u16, len: u32) -> bool {
        let inside = usize::from(offset) + len as usize <= self.pool().stride();
        let fits = inside && self.header().next.is_none();
        if fits {
            self.header_mut().extent = Extent::filled(offset, len);
        }
        fits
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

    /// The checksum that is left to the device which sends the frame.
    #[must_use]
    #[inline]
    pub fn checksum_request(&self) -> Option<ChecksumRequest> {
        self.header().extent.request
    }

    /// Leaves a checksum to the device that sends the frame, or nothing any more. The places are
    /// those of the frame as it is sent: nothing may be put in front of it, or taken off, after
    /// this. Only the queues of a port that was configured for it see to it; others send the frame
    /// as it is.
    #[inline]
    pub fn set_checksum_request(&mut self, request: Option<ChecksumRequest>) {
        self.header_mut().extent.request = request;
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
        let flags = flags.without(MbufFlags::METADATA);
        header.extent.flags = header.extent.flags.union(flags);
    }

    /// Clears what is known about the frame.
    #[inline]
    pub fn remove_flags(&mut self, flags: MbufFlags) {
        let header = self.header_mut();
        let flags = flags.without(MbufFlags::METADATA);
        header.extent.flags = header.extent.flags.without(flags);
    }

    /// The metadata line of the buffer (of the frame's first segment), if its pool has them.
    #[inline]
    fn metadata_ptr(&self) -> Option<NonNull<Metadata>> {
        let distance = self.pool().metadata;
        // SAFETY: the line lies in the same memory as the header, so far behind it, and is aligned
        // as the header is.
        (distance != 0).then(|| unsafe { self.0.0.byte_add(distance).cast() })
    }

    /// Metadata of the frame, if its pool has [metadata](crate::PoolConfig::metadata) and
    /// [`metadata_mut`](Self::metadata_mut) was called since the buffer was allocated. That of a
    /// chain is its first segment's.
    #[must_use]
    #[inline]
    pub fn metadata(&self) -> Option<&Metadata> {
        if !self.flags().contains(MbufFlags::METADATA) {
            return None;
        }
        // SAFETY: initialised when the pool was made; the handle owns the buffer, and with it the
        // line, which is only read meanwhile.
        self.metadata_ptr().map(|line| unsafe { line.as_ref() })
    }

    /// Metadata of the frame, to be set: without values at the first call since the buffer was
    /// allocated. `None` if its pool has none.
    #[must_use]
    #[inline]
    pub fn metadata_mut(&mut self) -> Option<&mut Metadata> {
        let mut line = self.metadata_ptr()?;
        // SAFETY: initialised when the pool was made; the handle owns the buffer, and with it the
        // line, and is borrowed exclusively.
        let line = unsafe { line.as_mut() };
        let flags = &mut self.header_mut().extent.flags;
        if !flags.contains(MbufFlags::METADATA) {
            *flags = flags.union(MbufFlags::METADATA);
            *line = Metadata::default();
        }
        Some(line)
    }

    /// Whether this is a single segment of the pool at `pool`: what a cache takes back directly.
    #[inline]
    pub(crate) fn is_plain(&self, pool: NonNull<PoolInner>) -> bool {
        // SAFETY: the handle owns the buffer.
        unsafe { self.0.oddity(pool) == 0 }
    }
}

impl Drop for Mbuf {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the handle is being dropped, so this copy of it is the only one that acts.
        let owned = unsafe { Mbuf::from_raw(self.0) };
        // SAFETY: `dismantle` yields each unreturned segment of `pool` once.
        owned.dismantle(|pool, raw| unsafe { PoolInner::give_back(pool, raw) });
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
