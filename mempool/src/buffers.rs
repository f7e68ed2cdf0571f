//! State of the buffers of a pool: a header for each, one cache line in private memory, and the pool
//! that a header names. Both are in one file because each holds the other.

use core::mem::{MaybeUninit, offset_of, size_of};
use core::ptr::{self, NonNull};
use core::sync::atomic::AtomicU32;
use std::sync::Arc;

use crate::free_list::FreeList;
use crate::mbuf::ChecksumRequest;
use crate::pool::layout::BufferLayout;
use crate::region::MemoryRegion;
use crate::time::{Tsc, WireTime};

/// Bytes of a cache line: the size of a header, and the alignment of data rooms.
pub(crate) const LINE: usize = 64;

/// What is known about a received frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct MbufFlags(u16);

impl MbufFlags {
    /// [`Mbuf::wire_time`](crate::Mbuf::wire_time) is valid.
    pub const WIRE_TIME: Self = Self(1);
    /// The stamp is recorded (a capture file's), not the present.
    pub const RECORDED: Self = Self(1 << 1);
    /// The sender or the device vouches for the L4 checksum, or left it unfinished on a path that
    /// needs none (a local sender's frame over a virtual link): do not verify it.
    pub const CHECKSUM_TRUSTED: Self = Self(1 << 2);
    /// The buffer's metadata line belongs to the frame.
    pub(crate) const METADATA: Self = Self(1 << 3);

    /// Whether all bits of `other` are set.
    #[must_use]
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits that `other` has not.
    #[must_use]
    #[inline]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
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
    /// Start of the data, in bytes from the start of the room.
    pub(crate) offset: u16,
    /// Segments in the chain that starts here.
    pub(crate) segments: u16,
    /// Bytes of data in this segment.
    pub(crate) len: u32,
    /// Bytes of data in the chain that starts here; valid in a head segment only.
    pub(crate) total: u32,
    pub(crate) flags: MbufFlags,
    /// What the device is to do that sends it.
    pub(crate) request: Option<ChecksumRequest>,
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
            request: None,
        }
    }

    /// That of a frame of one segment, of which nothing else is known.
    #[inline(always)]
    pub(crate) const fn filled(offset: u16, len: u32) -> Self {
        Self {
            len,
            total: len,
            ..Self::fresh(offset)
        }
    }
}

/// Where a room begins in the region of its pool, in cache lines: half of what an address takes,
/// and nothing to be multiplied on the way to the data.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Place(u32);

impl Place {
    /// Size of the range that a place can address, in bytes.
    pub(crate) const LIMIT: usize = LINE << u32::BITS;

    /// The place `offset` bytes into the region: a multiple of a cache line, below the limit.
    pub(crate) const fn of(offset: usize) -> Self {
        Self((offset / LINE) as u32)
    }

    /// In bytes from the start of the region.
    #[inline(always)]
    pub(crate) const fn offset(self) -> usize {
        self.0 as usize * LINE
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
    pub(crate) arrival: Tsc,
    pub(crate) wire: WireTime,
    /// Owners of a frozen buffer; 1 at all other times.
    pub(crate) owners: AtomicU32,
    /// Where the room begins; never changes.
    pub(crate) place: Place,
}

const _: () = assert!(size_of::<Header>() == LINE);
const _: () = assert!(offset_of!(Header, extent) == 16 && size_of::<Extent>() == 16);
const _: () = assert!(offset_of!(Extent, segments) == 2 && offset_of!(Extent, len) == 4);
// What a driver writes of a frame that it has received lies together (`beside/avx512.rs`).
const _: () = assert!(offset_of!(Header, port) == 32 && offset_of!(Header, queue) == 34);
const _: () = assert!(offset_of!(Header, ordinal) == 36 && offset_of!(Header, arrival) == 40);

/// A buffer without an owner in the type system: what rings, caches and the free list hold. The
/// holder is responsible for exactly one later [`Mbuf::from_raw`](crate::Mbuf::from_raw) or free list push.
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

    /// Zero if this is a single segment of the pool at `pool`: what a cache takes back directly.
    ///
    /// # Safety
    /// The caller owns the buffer.
    #[inline(always)]
    pub(crate) unsafe fn oddity(self, pool: NonNull<PoolInner>) -> usize {
        // SAFETY: an owned buffer has a valid header with no other writer.
        let header = unsafe { self.0.as_ref() };
        let next = header.next.map_or(0, |next| next.0.addr().get());
        (header.pool.addr().get() ^ pool.addr().get()) | next
    }
}

/// Identity of a pool, for comparison only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PoolId(usize);

impl PoolId {
    #[inline]
    pub(crate) fn of(pool: NonNull<PoolInner>) -> Self {
        Self(pool.addr().get())
    }
}

/// The pool itself: lives until all handles are dropped and all buffers are back.
pub(crate) struct PoolInner {
    pub(crate) free: FreeList<RawMbuf>,
    /// The first byte of `region`.
    pub(crate) start: NonNull<u8>,
    pub(crate) layout: BufferLayout,
    pub(crate) region: Arc<MemoryRegion>,
    /// One header for each buffer, in memory that is never shared or mapped for a device.
    pub(crate) headers: MemoryRegion,
    pub(crate) data_room: u32,
    /// Bytes from a header to the metadata line of its buffer; 0 if the pool has none.
    pub(crate) metadata: usize,
    /// What the header of a free buffer holds.
    pub(crate) fresh: Extent,
}

impl PoolInner {
    /// What the header of a free buffer holds.
    #[inline]
    pub(crate) fn fresh(&self) -> &Extent {
        &self.fresh
    }

    /// Bytes of a buffer's room.
    #[inline]
    pub(crate) fn stride(&self) -> usize {
        self.layout.stride()
    }

    /// The byte at this offset of the region.
    #[inline]
    pub(crate) fn at(&self, offset: usize) -> *mut u8 {
        self.start.as_ptr().wrapping_add(offset)
    }

    /// Number of the buffer with this header.
    #[inline]
    pub(crate) fn index(&self, header: &Header) -> u32 {
        let first = self.headers.as_ptr().addr().get();
        ((core::ptr::from_ref(header).addr() - first) / size_of::<Header>()) as u32
    }

    /// Returns a buffer to the free list from any thread, and frees the pool if it was the last one of a
    /// pool without handles. No other thread ever waits for the caller, wherever it is preempted.
    ///
    /// # Safety
    /// `raw` is an unreturned buffer of `pool`, reset, whose ownership the caller gives up here.
    #[inline]
    pub(crate) unsafe fn give_back(pool: NonNull<PoolInner>, raw: RawMbuf) {
        // SAFETY: the pool and the buffer's header live at least until it is back.
        let number = unsafe { pool.as_ref().index(raw.0.as_ref()) } as usize;
        // SAFETY: as above.
        let complete = unsafe { FreeList::give_back(&raw const (*pool.as_ptr()).free, number) };
        if complete {
            // SAFETY: `give_back` returns true on one thread only, and no other reference to the pool is left.
            drop(unsafe { Box::from_raw(pool.as_ptr()) });
        }
    }

    /// Returns many buffers to the free list at once, through the ring that poll loops use.
    ///
    /// # Safety
    /// `raws` are unreturned buffers of this pool, reset, whose ownership the caller gives up here.
    #[inline]
    pub(crate) unsafe fn put(&self, raws: &[RawMbuf]) {
        self.free.put(raws);
    }

    /// Fills `out` from the free list as far as it goes.
    #[inline]
    pub(crate) fn take(&self, out: &mut [MaybeUninit<RawMbuf>]) -> usize {
        let first = self.headers.as_ptr().cast::<Header>();
        // SAFETY: the stack holds numbers of this pool's headers, which lie one behind the other.
        let of = |number: usize| RawMbuf(unsafe { first.add(number) });
        self.free.pop(out, of)
    }
}
