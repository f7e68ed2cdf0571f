//! A fixed array of owned buffers: the unit of receive, transmit and free.

use core::fmt;
use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut};
use core::ptr;

use crate::buffers::RawMbuf;
use crate::mbuf::Mbuf;

/// Up to `N` owned buffers in order. The first `len` slots are filled.
///
/// The slots begin a cache line: a burst on the stack would otherwise cost more or less as the
/// stack happens to lie.
#[repr(C, align(64))]
pub struct Burst<const N: usize> {
    slots: [MaybeUninit<Mbuf>; N],
    len: usize,
}

impl<const N: usize> Burst<N> {
    /// An empty burst; costs nothing.
    #[must_use]
    #[inline]
    pub const fn new() -> Self {
        Self {
            len: 0,
            slots: [const { MaybeUninit::uninit() }; N],
        }
    }

    /// A view without the size in its type, for code behind a trait object.
    #[inline]
    pub fn as_mut(&mut self) -> BurstMut<'_> {
        BurstMut {
            slots: &mut self.slots,
            len: &mut self.len,
        }
    }

    /// A view with room for at most `n` more buffers.
    #[inline]
    pub fn up_to(&mut self, n: usize) -> BurstMut<'_> {
        let end = self.len.saturating_add(n).min(N);
        BurstMut {
            slots: &mut self.slots[..end],
            len: &mut self.len,
        }
    }

    /// Buffers that still fit.
    #[must_use]
    #[inline]
    pub fn free(&self) -> usize {
        N - self.len
    }

    /// Whether no more buffers fit.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len == N
    }

    /// Adds a buffer behind the others.
    ///
    /// # Errors
    /// Gives it back if the burst is full.
    #[inline]
    pub fn push(&mut self, mbuf: Mbuf) -> Result<(), Mbuf> {
        self.as_mut().push(mbuf)
    }

    /// Takes the last buffer.
    #[inline]
    pub fn pop(&mut self) -> Option<Mbuf> {
        self.as_mut().pop()
    }

    /// Takes the first `n` buffers (or all, if there are fewer) out, in order, and closes the gap.
    #[inline]
    pub fn take_front(&mut self, n: usize, take: impl FnMut(Mbuf)) {
        self.as_mut().take_front(n, take);
    }

    /// Takes all buffers out, in order.
    #[inline]
    pub fn take_all(&mut self, take: impl FnMut(Mbuf)) {
        self.as_mut().take_front(N, take);
    }

    /// The slots, if none is filled.
    #[inline(always)]
    pub(crate) fn all_vacant(&mut self) -> Option<&mut [MaybeUninit<RawMbuf>; N]> {
        // SAFETY: Mbuf is a transparent RawMbuf, and the slots are uninitialised either way.
        (self.len == 0).then(|| unsafe { &mut *(&raw mut self.slots).cast() })
    }

    /// The buffers as raw ones, if all slots are filled.
    #[inline(always)]
    pub(crate) fn all_raw(&self) -> Option<&[RawMbuf; N]> {
        // SAFETY: all slots are filled, and Mbuf is a transparent RawMbuf.
        (self.len == N).then(|| unsafe { &*(&raw const self.slots).cast() })
    }

    /// Counts all slots as filled.
    ///
    /// # Safety
    /// They were filled with buffers that this burst now owns.
    #[inline(always)]
    pub(crate) unsafe fn assume_full(&mut self) {
        self.len = N;
    }

    /// Gives all buffers up without dropping them.
    ///
    /// # Safety
    /// Another owner has taken them over.
    #[inline(always)]
    pub(crate) unsafe fn assume_empty(&mut self) {
        self.len = 0;
    }

    /// Drops all buffers: each goes back to its pool's free list.
    pub fn clear(&mut self) {
        self.take_all(drop);
    }
}

impl<const N: usize> Default for Burst<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Drop for Burst<N> {
    #[inline]
    fn drop(&mut self) {
        if self.len != 0 {
            self.clear();
        }
    }
}

impl<const N: usize> Deref for Burst<N> {
    type Target = [Mbuf];

    #[inline]
    fn deref(&self) -> &[Mbuf] {
        // SAFETY: the first `len` slots are filled, and MaybeUninit has its content's layout.
        unsafe { core::slice::from_raw_parts(self.slots.as_ptr().cast(), self.len) }
    }
}

impl<const N: usize> DerefMut for Burst<N> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Mbuf] {
        // SAFETY: as in `deref`; the burst is borrowed exclusively.
        unsafe { core::slice::from_raw_parts_mut(self.slots.as_mut_ptr().cast(), self.len) }
    }
}

impl<const N: usize> fmt::Debug for Burst<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Closes the gap in front of a burst even if a closure panics: what was taken is no longer in it.
struct Gap<'a, 'b> {
    burst: &'b mut BurstMut<'a>,
    taken: usize,
}

impl Drop for Gap<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: exactly the first `taken` buffers were moved out.
        unsafe { self.burst.forget_front(self.taken) };
    }
}

/// A [`Burst`] of any size, borrowed.
pub struct BurstMut<'a> {
    slots: &'a mut [MaybeUninit<Mbuf>],
    len: &'a mut usize,
}

impl BurstMut<'_> {
    /// Buffers in the burst.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        *self.len
    }

    /// Whether there is none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        *self.len == 0
    }

    /// Buffers that still fit.
    #[must_use]
    #[inline]
    pub fn free(&self) -> usize {
        self.slots.len() - *self.len
    }

    /// The same view for a shorter time.
    #[inline]
    pub fn reborrow(&mut self) -> BurstMut<'_> {
        BurstMut {
            slots: self.slots,
            len: self.len,
        }
    }

    /// The buffers.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[Mbuf] {
        // SAFETY: the first `len` slots are filled.
        unsafe { core::slice::from_raw_parts(self.slots.as_ptr().cast(), *self.len) }
    }

    /// The buffers, to be changed.
    #[must_use]
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [Mbuf] {
        // SAFETY: the first `len` slots are filled; the view borrows them exclusively.
        unsafe { core::slice::from_raw_parts_mut(self.slots.as_mut_ptr().cast(), *self.len) }
    }

    /// Adds a buffer behind the others.
    ///
    /// # Errors
    /// Gives it back if the burst is full.
    #[inline]
    pub fn push(&mut self, mbuf: Mbuf) -> Result<(), Mbuf> {
        match self.slots.get_mut(*self.len) {
            Some(slot) => {
                slot.write(mbuf);
                *self.len += 1;
                Ok(())
            }
            None => Err(mbuf),
        }
    }

    /// Adds the buffers that `make` makes of the elements, and of their places, behind the others,
    /// until it makes none or no more fit; returns how many. For whole bursts: the length is not in
    /// memory meanwhile.
    #[inline(always)]
    pub fn extend_from<T>(
        &mut self,
        elements: &[T],
        mut make: impl FnMut(usize, &T) -> Option<Mbuf>,
    ) -> usize {
        /// Counts the filled slots even if `make` panics.
        struct Filled<'a> {
            len: &'a mut usize,
            made: usize,
        }
        impl Drop for Filled<'_> {
            fn drop(&mut self) {
                *self.len += self.made;
            }
        }
        let slots = &mut self.slots[*self.len..];
        let mut filled = Filled {
            len: self.len,
            made: 0,
        };
        for (i, (slot, element)) in slots.iter_mut().zip(elements).enumerate() {
            filled.made = i;
            let Some(mbuf) = make(i, element) else {
                return i;
            };
            slot.write(mbuf);
        }
        filled.made = slots.len().min(elements.len());
        filled.made
    }

    /// Takes the last buffer.
    #[inline]
    pub fn pop(&mut self) -> Option<Mbuf> {
        let last = self.len.checked_sub(1)?;
        *self.len = last;
        // SAFETY: slot `last` was filled, and the shorter length gives it up.
        Some(unsafe { self.slots[last].assume_init_read() })
    }

    /// Takes the first `n` buffers (or all, if there are fewer) out, in order, and closes the gap.
    #[inline]
    pub fn take_front(&mut self, n: usize, mut take: impl FnMut(Mbuf)) {
        let n = n.min(*self.len);
        let mut gap = Gap {
            burst: self,
            taken: 0,
        };
        while gap.taken < n {
            // SAFETY: slots below `len` are filled; `taken` grows first, so that none is read twice.
            let mbuf = unsafe { gap.burst.slots[gap.taken].assume_init_read() };
            gap.taken += 1;
            take(mbuf);
        }
    }

    /// Takes buffers out of the front, in order, until `take` gives one back, which stays in front of
    /// those behind it; closes the gap. Returns how many were taken.
    #[inline(always)]
    pub fn take_while(&mut self, mut take: impl FnMut(Mbuf) -> Result<(), Mbuf>) -> usize {
        let n = *self.len;
        let mut gap = Gap {
            burst: self,
            taken: 0,
        };
        while gap.taken < n {
            // SAFETY: slots below `len` are filled; `taken` grows first, so that none is read twice.
            let mbuf = unsafe { gap.burst.slots[gap.taken].assume_init_read() };
            gap.taken += 1;
            if let Err(mbuf) = take(mbuf) {
                gap.taken -= 1;
                gap.burst.slots[gap.taken].write(mbuf);
                break;
            }
        }
        gap.taken
    }

    /// The buffers as raw ones, in order.
    #[inline]
    pub(crate) fn raw(&self) -> &[RawMbuf] {
        // SAFETY: the first `len` slots are filled, and Mbuf is a transparent RawMbuf.
        unsafe { core::slice::from_raw_parts(self.slots.as_ptr().cast(), *self.len) }
    }

    /// The empty slots behind the buffers.
    #[inline]
    pub(crate) fn vacant(&mut self) -> &mut [MaybeUninit<RawMbuf>] {
        let vacant = &mut self.slots[*self.len..];
        // SAFETY: Mbuf is a transparent RawMbuf, and the slots are uninitialised either way.
        unsafe { core::slice::from_raw_parts_mut(vacant.as_mut_ptr().cast(), vacant.len()) }
    }

    /// Gives up the first `n` buffers without dropping them, and closes the gap.
    ///
    /// # Safety
    /// `n` is at most the length, and another owner has taken them over.
    #[inline]
    pub(crate) unsafe fn forget_front(&mut self, n: usize) {
        let rest = *self.len - n;
        if rest != 0 {
            let base = self.slots.as_mut_ptr();
            // SAFETY: both ranges are inside the slots.
            unsafe { ptr::copy(base.add(n), base, rest) };
        }
        *self.len = rest;
    }

    /// Counts `n` more slots as filled.
    ///
    /// # Safety
    /// The first `n` vacant slots were filled with buffers that this burst now owns.
    #[inline]
    pub(crate) unsafe fn assume_pushed(&mut self, n: usize) {
        *self.len += n;
    }
}
