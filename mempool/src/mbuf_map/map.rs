//! The array of elements: from an element to the handle of its buffer and back, and a frame at a time.

use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::isa::Isa;
use super::slot::{Arrivals, MbufSlot, WINDOW, WORDS, Words, words};
use crate::buffers::{Extent, Header, LINE, RawMbuf};
use crate::mbuf::Mbuf;
use crate::pool::Mempool;

/// An array with an element for each buffer of a pool, in the order of their
/// [numbers](Mbuf::index): from an element to the handle of its buffer and back by arithmetic
/// alone. It is a few addresses, and keeps neither pool nor array alive.
///
/// Headers lie as the elements do, one line each. So the address of an element is that of the
/// header times the lines of the spacing, but for a constant. The other way round it is divided by
/// them: modulo 2^64, by an odd number, that is a multiplication.
#[derive(Debug)]
pub struct MbufMap<E> {
    pub(super) headers: NonNull<Header>,
    pub(super) elements: NonNull<u8>,
    /// Bytes that all headers take.
    pub(super) headers_len: usize,
    /// Bytes that all elements take.
    pub(super) elements_len: usize,
    /// What is added to the address of a header that was multiplied.
    pub(super) to_element: usize,
    /// What is added to the address of an element that was divided.
    pub(super) to_header: usize,
    /// Bytes of a buffer's room.
    pub(super) room: usize,
    /// Eight frames at a time, if the CPU can.
    pub(super) vectors: Option<Isa>,
    element: PhantomData<fn() -> E>,
}

// SAFETY: addresses and numbers; the functions that use them state their conditions.
unsafe impl<E> Send for MbufMap<E> {}
// SAFETY: as above.
unsafe impl<E> Sync for MbufMap<E> {}

impl<E: MbufSlot> MbufMap<E> {
    const LINES: usize = {
        assert!(size_of::<Header>() == LINE && E::SPACING.is_multiple_of(LINE));
        assert!(E::SPACING / LINE % 2 == 1, "an even number has no inverse");
        assert!(E::AT + WINDOW <= E::SPACING && E::TOTAL + 4 <= WINDOW);
        assert!(E::OFFSET.is_multiple_of(2) && E::OFFSET < WINDOW);
        assert!(E::LEN.is_multiple_of(2) && E::LEN < WINDOW);
        E::SPACING / LINE
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

    pub(super) const PLAIN: Words = words(&E::PLAIN);
    pub(super) const REQUIRED: Words = words(&E::REQUIRED);

    /// # Safety
    /// As for [`Mempool::mbuf_map`]; the headers are those of the pool.
    pub(crate) unsafe fn new(
        pool: &Mempool,
        headers: NonNull<Header>,
        elements: NonNull<u8>,
    ) -> Self {
        let (header, element) = (headers.addr().get(), elements.addr().get());
        Self {
            headers,
            elements,
            headers_len: pool.buffers() * LINE,
            elements_len: pool.buffers() * E::SPACING,
            to_element: element.wrapping_sub(header.wrapping_mul(Self::LINES)),
            to_header: header.wrapping_sub(element.wrapping_mul(Self::INVERSE)),
            room: pool.stride(),
            vectors: Isa::detect(),
            element: PhantomData,
        }
    }

    /// Where the element of a buffer (of the frame's first segment) is; `None` if that is of
    /// another pool.
    #[must_use]
    #[inline(always)]
    pub fn element(&self, mbuf: &Mbuf) -> Option<NonNull<u8>> {
        let at = core::ptr::from_ref(mbuf.header()).addr();
        let own = at.wrapping_sub(self.headers.addr().get()) < self.headers_len;
        // SAFETY: among the headers of the pool.
        own.then(|| unsafe { self.element_at(at) })
    }

    /// The element of the buffer whose header is at this address.
    ///
    /// # Safety
    /// The header is one of the pool.
    #[inline(always)]
    pub(super) unsafe fn element_at(&self, header: usize) -> NonNull<u8> {
        let multiplied = header.wrapping_mul(Self::LINES);
        let at = multiplied.wrapping_add(self.to_element);
        // SAFETY: by the caller's promise the header is one of the pool, so that this is in the array
        // that `new` was promised, and not 0, where nothing lies.
        unsafe { NonNull::new_unchecked(self.elements.as_ptr().with_addr(at)) }
    }

    /// Whether this is an element of the array, and of no other.
    #[inline(always)]
    pub(super) fn is_element(&self, address: usize) -> bool {
        address.wrapping_sub(self.elements.addr().get()) < self.elements_len
    }

    /// The header of the buffer whose element is at this address.
    ///
    /// # Safety
    /// The element is one of the array.
    #[inline(always)]
    pub(super) unsafe fn header_at(&self, element: usize) -> NonNull<Header> {
        let divided = element.wrapping_mul(Self::INVERSE);
        let at = divided.wrapping_add(self.to_header);
        // SAFETY: by the caller's promise that is the address of a header.
        unsafe { NonNull::new_unchecked(self.headers.as_ptr().with_addr(at)) }
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
        // SAFETY: by the caller's promise an element, and this is the one handle of its buffer.
        unsafe { Mbuf::from_raw(RawMbuf(self.header_at(element.addr().get()))) }
    }

    /// [`receive`](Self::receive), one by one, behind those that are done, with their bytes.
    ///
    /// # Safety
    /// As there; as many slots as elements.
    #[inline(always)]
    pub(super) unsafe fn receive_rest<P>(
        &self,
        elements: &[*mut P],
        slots: &mut [MaybeUninit<RawMbuf>],
        from: Arrivals,
        (mut n, mut bytes): (usize, u64),
    ) -> (usize, u64) {
        while let (Some(element), Some(slot)) = (elements.get(n), slots.get_mut(n)) {
            // SAFETY: by the caller's promise.
            let Some((header, len)) = (unsafe { self.received(element.cast(), from, n) }) else {
                break;
            };
            slot.write(RawMbuf(header));
            bytes += u64::from(len);
            n += 1;
        }
        (n, bytes)
    }

    /// Writes the header of the frame with this place in the burst; `None` where
    /// [`receive`](Self::receive) stops.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(super) unsafe fn received(
        &self,
        element: *const u8,
        from: Arrivals,
        place: usize,
    ) -> Option<(NonNull<Header>, u16)> {
        // SAFETY: by the caller's promise the window can be read.
        let (is_plain, offset, len) = unsafe {
            let window = element.add(E::AT);
            let word = |i: usize| u64::from_le_bytes(window.add(8 * i).cast::<[u8; 8]>().read());
            let half = |at| u16::from_le_bytes(window.add(at).cast::<[u8; 2]>().read());
            let mut words = (0..WORDS).filter(|&i| Self::REQUIRED[i] != 0);
            let is_plain = words.all(|i| (word(i) ^ Self::PLAIN[i]) & Self::REQUIRED[i] == 0);
            (is_plain, half(E::OFFSET), half(E::LEN))
        };
        let inside = usize::from(offset) + usize::from(len) <= self.room;
        if !(is_plain && inside && self.is_element(element.addr())) {
            return None;
        }
        // SAFETY: it is one, and by the caller's promise its buffer has no handle, so nothing else
        // accesses its header.
        let (at, header) = unsafe {
            let mut at = self.header_at(element.addr());
            (at, at.as_mut())
        };
        header.extent = Extent::filled(offset, len.into());
        header.port = from.port;
        header.queue = from.queue;
        header.ordinal = from.first.wrapping_add(place as u32);
        header.arrival = from.at;
        Some((at, len))
    }

    /// [`send`](Self::send), one by one, behind those that are done, with their bytes.
    ///
    /// # Safety
    /// As there; the frames are the caller's alone.
    #[inline(always)]
    pub(super) unsafe fn send_rest<P>(
        &self,
        frames: &[Mbuf],
        elements: &mut [*mut P],
        (mut n, mut bytes): (usize, u64),
    ) -> (usize, u64) {
        while let (Some(frame), Some(to)) = (frames.get(n), elements.get_mut(n)) {
            let extent = &frame.header().extent;
            let Some(element) = self.element(frame) else {
                break;
            };
            if extent.segments != 1 || extent.len > u16::MAX.into() {
                break;
            }
            // SAFETY: by the caller's promise nothing else accesses the element.
            unsafe { Self::fill(element, extent.offset, extent.len as u16) };
            *to = element.as_ptr().cast();
            bytes += u64::from(extent.len);
            n += 1;
        }
        (n, bytes)
    }

    /// Writes the window of a plain frame.
    ///
    /// # Safety
    /// The element is one of the array, and nothing else accesses it.
    #[inline(always)]
    pub(super) unsafe fn fill(element: NonNull<u8>, offset: u16, len: u16) {
        let part = |at: usize, i: usize, value: u64| {
            let here = at / 8 == i;
            if here { value << (at % 8 * 8) } else { 0 }
        };
        for (i, plain) in Self::PLAIN.into_iter().enumerate() {
            let word = plain
                | part(E::OFFSET, i, offset.into())
                | part(E::LEN, i, len.into())
                | part(E::TOTAL, i, len.into());
            // SAFETY: by the caller's promise; the window lies in the element.
            unsafe {
                let at = element.byte_add(E::AT + 8 * i).cast::<[u8; 8]>();
                at.write(word.to_le_bytes());
            }
        }
    }
}
