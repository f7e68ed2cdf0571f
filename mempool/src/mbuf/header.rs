//! What stands in front of a buffer's bytes, and far from them: one cache line in private memory.

use core::mem::{offset_of, size_of};
use core::ptr::{self, NonNull};
use core::sync::atomic::AtomicU32;

use super::{ChecksumRequest, Mbuf};
use crate::pool::PoolInner;
use crate::time::{Tsc, WireTime};

/// Bytes of a cache line: what a header takes, and what rooms are aligned to.
pub(crate) const LINE: usize = 64;

/// What is known about a received frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct MbufFlags(u16);

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
    /// Bytes that can be told apart so.
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

    /// Zero if this is a single segment of the pool at `pool`: what a cache takes back directly.
    ///
    /// # Safety
    /// The caller owns the buffer.
    #[inline(always)]
    pub(crate) unsafe fn oddity(self, pool: NonNull<PoolInner>) -> usize {
        // SAFETY: an owned buffer has a valid header that nobody else writes.
        let header = unsafe { self.0.as_ref() };
        let next = header.next.map_or(0, |next| next.0.addr().get());
        (header.pool.addr().get() ^ pool.addr().get()) | next
    }
}
