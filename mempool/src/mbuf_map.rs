//! Maps foreign buffer descriptors (for example `rte_mbuf`) to mbufs, one for each buffer of a pool:
//! for a driver whose device owns buffers for which no handle exists.

mod avx512;
mod isa;
mod map;
mod slot;
#[cfg(all(test, not(loom)))]
mod tests;

use core::ptr::NonNull;

use crate::burst::BurstMut;
use crate::mbuf::Mbuf;
use crate::pool::Mempool;

pub use map::MbufMap;
pub use slot::{Arrivals, MbufSlot, WINDOW};

impl Mempool {
    /// The way between its buffers and an array that has an element for each of them, and that begins
    /// at `elements`.
    ///
    /// # Safety
    /// From `elements` on there are [`buffers`](Self::buffers) elements that begin
    /// [`E::SPACING`](MbufSlot::SPACING) bytes apart, all in one allocation, which stays where it is for
    /// as long as what this returns is used.
    #[must_use]
    pub unsafe fn mbuf_map<E: MbufSlot>(&self, elements: NonNull<u8>) -> MbufMap<E> {
        // SAFETY: by the caller's promise; the headers are the pool's own.
        unsafe { MbufMap::new(self, self.inner().headers.as_ptr().cast(), elements) }
    }
}

impl<E: MbufSlot> MbufMap<E> {
    /// Adds the handles of buffers that a device has filled to `out`, in order: as many as fit, and
    /// those in front of the first that is not of this array, not plain, or says that its data
    /// lies outside of its room. Returns how many, and their bytes.
    ///
    /// # Safety
    /// The window of each element can be read. Those that are of this array, and plain, are the
    /// caller's as for [`handle`](Self::handle), each of them once, and their buffers in no chain.
    #[inline(always)]
    pub unsafe fn receive<P>(
        &self,
        elements: &[*mut P],
        out: &mut BurstMut<'_>,
        from: Arrivals,
    ) -> (usize, u64) {
        let slots = out.vacant();
        let most = slots.len().min(elements.len());
        let (slots, elements) = (&mut slots[..most], &elements[..most]);
        // SAFETY: by the caller's promise.
        let (n, bytes) = unsafe {
            match self.vectors {
                Some(isa) if most >= avx512::FRAMES => isa.receive(self, elements, slots, from),
                _ => self.receive_rest(elements, slots, from, (0, 0)),
            }
        };
        // SAFETY: by the caller's promise these are the handles of buffers that have no other.
        unsafe { out.assume_pushed(n) };
        (n, bytes)
    }

    /// Writes the windows of frames that are to be sent, and the addresses of their elements to
    /// `elements`: as many as fit, and those in front of the first that is not of this pool, has
    /// several segments, or more bytes than 16 bits can say. Returns how many, and their bytes.
    ///
    /// # Safety
    /// The array is alive, and no other access to a slot happens while its buffer has a handle.
    #[inline(always)]
    pub unsafe fn send<P>(&self, frames: &mut [Mbuf], elements: &mut [*mut P]) -> (usize, u64) {
        let most = frames.len().min(elements.len());
        let (frames, elements) = (&frames[..most], &mut elements[..most]);
        // SAFETY: by the caller's promise, and the frames are borrowed exclusively.
        unsafe {
            match self.vectors {
                Some(isa) if most >= avx512::FRAMES => isa.send(self, frames, elements),
                _ => self.send_rest(frames, elements, (0, 0)),
            }
        }
    }
}
