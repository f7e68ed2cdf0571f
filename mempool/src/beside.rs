//! Handles of a pool's buffers from elements that somebody else keeps beside them, one for each:
//! for a driver whose device has buffers that nobody holds a handle of.

use core::num::NonZeroUsize;
use core::ptr::NonNull;

use crate::mbuf::{Extent, Header, LINE, Mbuf, RawMbuf};
use crate::pool::{Mempool, PoolInner};

/// An array with an element of `SPACING` bytes for each buffer of a pool, in the order of their
/// [numbers](Mbuf::index): from an element to the handle of its buffer and back by arithmetic
/// alone. `SPACING` is an odd number of cache lines. It is a few addresses: it keeps neither pool
/// nor array alive, and looks at no element.
///
/// Headers lie as the elements do, one line each. So the address of an element is that of the
/// header times the lines of the spacing, but for a constant. The other way round it is divided by
/// them: modulo 2^64, by an odd number, that is a multiplication.
#[derive(Clone, Copy, Debug)]
pub struct Beside<const SPACING: usize> {
    pool: NonNull<PoolInner>,
    headers: NonNull<Header>,
    elements: NonNull<u8>,
    /// What is added to the address of a header that was multiplied.
    to_element: usize,
    /// What is added to the address of an element that was divided.
    to_header: usize,
    /// Bytes of a buffer's room.
    room: usize,
}

// SAFETY: addresses and numbers; what it takes to use them is said there.
unsafe impl<const SPACING: usize> Send for Beside<SPACING> {}
// SAFETY: as above.
unsafe impl<const SPACING: usize> Sync for Beside<SPACING> {}

impl<const SPACING: usize> Beside<SPACING> {
    const LINES: usize = {
        assert!(size_of::<Header>() == LINE && SPACING.is_multiple_of(LINE));
        assert!(SPACING / LINE % 2 == 1, "an even number has no inverse");
        SPACING / LINE
    };

    /// The inverse of `LINES` modulo 2^64 (Newton's iteration doubles the bits that are right).
    const INVERSE: usize = {
        let (mut inverse, mut bits) = (Self::LINES, 3);
        while bits < usize::BITS {
            inverse = inverse.wrapping_mul(2_usize.wrapping_sub(Self::LINES.wrapping_mul(inverse)));
            bits *= 2;
        }
        inverse
    };

    pub(crate) fn new(pool: &Mempool, headers: NonNull<Header>, elements: NonNull<u8>) -> Self {
        let (header, element) = (headers.addr().get(), elements.addr().get());
        Self {
            pool: pool.inner_ptr(),
            headers,
            elements,
            to_element: element.wrapping_sub(header.wrapping_mul(Self::LINES)),
            to_header: header.wrapping_sub(element.wrapping_mul(Self::INVERSE)),
            room: pool.stride(),
        }
    }

    /// Where the element of a buffer (of the frame's first segment) is; `None` if that is of
    /// another pool.
    #[must_use]
    #[inline(always)]
    pub fn element(&self, mbuf: &Mbuf) -> Option<NonNull<u8>> {
        let header = mbuf.header();
        if header.pool != self.pool {
            return None;
        }
        let at = core::ptr::from_ref(header).addr();
        // Never 0, where nothing lies.
        NonZeroUsize::new(at.wrapping_mul(Self::LINES).wrapping_add(self.to_element))
            .map(|at| self.elements.with_addr(at))
    }

    /// The handle of a buffer that the caller is responsible for without holding one.
    ///
    /// # Safety
    /// `element` is one of the array. A handle of its buffer was forgotten ([`core::mem::forget`]),
    /// which made the caller responsible for it, and no other was made since; so the buffer is not
    /// back, and the pool is alive.
    #[must_use]
    #[inline(always)]
    pub unsafe fn handle(&self, element: NonNull<u8>) -> Mbuf {
        let divided = element.addr().get().wrapping_mul(Self::INVERSE);
        let at = divided.wrapping_add(self.to_header);
        // SAFETY: by the caller's promise that is the address of a header.
        let header = unsafe { NonNull::new_unchecked(self.headers.as_ptr().with_addr(at)) };
        // SAFETY: by the caller's promise this is the one handle of the buffer.
        unsafe { Mbuf::from_raw(RawMbuf(header)) }
    }

    /// As [`handle`](Self::handle), for a buffer that a device has filled: the `len` bytes that
    /// begin `offset` bytes into its room are the frame's data, as by [`Mbuf::set_data`].
    ///
    /// # Errors
    /// The handle, and no change, if they are not all in the room.
    ///
    /// # Safety
    /// As for [`handle`](Self::handle); and the buffer is in no chain.
    #[inline(always)]
    pub unsafe fn filled(&self, element: NonNull<u8>, offset: u16, len: u16) -> Result<Mbuf, Mbuf> {
        // SAFETY: by the caller's promise.
        let mut mbuf = unsafe { self.handle(element) };
        if usize::from(offset) + usize::from(len) > self.room {
            return Err(mbuf);
        }
        mbuf.header_mut().extent = Extent::filled(offset, len.into());
        Ok(mbuf)
    }
}
