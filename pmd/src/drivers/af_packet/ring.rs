//! Frame ring shared with the kernel: the kernel's Documentation/networking/packet_mmap.rst,
//! TPACKET_V2.
//!
//! A slot starts with a `tpacket2_hdr`, whose first word is the status that passes ownership of the
//! slot. The kernel may be writing a slot that it owns, so the only references into slot memory are
//! to the atomic status; data is copied in and out.

use std::io;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use libc::{tpacket_req, tpacket2_hdr};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Bytes in front of a sent frame: TPACKET2_HDRLEN without its `sockaddr_ll` (tpacket_snd).
pub(super) const TX_DATA: usize = size_of::<tpacket2_hdr>();

/// Maximum number of bytes in front of a received frame: TPACKET2_HDRLEN and a link header of 16
/// bytes, rounded up to 16 (tpacket_rcv).
const RX_DATA: usize = 80;

const _: () = assert!(size_of::<tpacket2_hdr>() == 32 && libc::TPACKET2_HDRLEN == 52);

/// Sizes of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    slots: usize,
    slot: usize,
}

impl Geometry {
    /// A ring of at least `slots` slots for frames of up to `frame` bytes. Slots must fill blocks
    /// of whole pages: either several slots per page, or whole pages per slot.
    pub(super) fn new(slots: usize, frame: usize) -> Self {
        let page = rustix::param::page_size();
        let needed = RX_DATA + frame;
        let slot = if needed <= page {
            needed.next_power_of_two()
        } else {
            needed.next_multiple_of(page)
        };
        let slots = slots.next_multiple_of((page / slot).max(1));
        Self { slots, slot }
    }

    fn block(self) -> usize {
        self.slot.max(rustix::param::page_size())
    }

    /// The request to the kernel; `None` if the numbers exceed 32 bits.
    pub(super) fn request(self) -> Option<tpacket_req> {
        let blocks = self.slots * self.slot / self.block();
        Some(tpacket_req {
            tp_block_size: u32::try_from(self.block()).ok()?,
            tp_block_nr: u32::try_from(blocks).ok()?,
            tp_frame_size: u32::try_from(self.slot).ok()?,
            tp_frame_nr: u32::try_from(self.slots).ok()?,
        })
    }

    pub(super) fn bytes(self) -> usize {
        self.slots * self.slot
    }
}

/// A mapped ring.
pub(super) struct Ring {
    base: NonNull<u8>,
    geometry: Geometry,
}

// SAFETY: this value alone owns the mapping, and one thread at a time accesses it through the
// value; the kernel's accesses do not depend on the thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring that the socket got by `Geometry::request`.
    pub(super) fn map(socket: impl AsFd, geometry: Geometry) -> io::Result<Self> {
        let (read_write, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice affects no existing memory.
        let base = unsafe {
            mmap(
                ptr::null_mut(),
                geometry.bytes(),
                read_write,
                shared,
                socket,
                0,
            )
        }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, geometry })
    }

    pub(super) fn slots(&self) -> usize {
        self.geometry.slots
    }

    /// The slot behind this one.
    #[inline]
    pub(super) fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.geometry.slots {
            0
        } else {
            slot + 1
        }
    }

    /// Start of a slot, for any slot number.
    #[inline]
    fn at(&self, slot: usize) -> NonNull<u8> {
        let slot = slot.min(self.geometry.slots - 1);
        // SAFETY: the slot lies in the mapping: slots * slot size is its length.
        unsafe { self.base.add(slot * self.geometry.slot) }
    }

    /// The status of a slot, which determines its owner.
    #[inline]
    pub(super) fn status(&self, slot: usize) -> &AtomicU32 {
        // SAFETY: slots are at least 16-byte aligned and start with the status word, which both
        // sides access atomically; the mapping lives as long as `self`.
        unsafe { AtomicU32::from_ptr(self.at(slot).cast().as_ptr()) }
    }

    /// The header of a slot that this side owns.
    #[inline]
    pub(super) fn header(&self, slot: usize) -> tpacket2_hdr {
        // SAFETY: a slot holds more than a header, is aligned for it, and any bytes are a valid
        // header. Volatile, so that each field is read once whatever the kernel writes.
        unsafe { self.at(slot).cast::<tpacket2_hdr>().read_volatile() }
    }

    /// Writes the length of a frame into the header of a slot that this side owns.
    #[inline]
    pub(super) fn set_len(&self, slot: usize, len: u32) {
        let header = self.at(slot).cast::<tpacket2_hdr>().as_ptr();
        // SAFETY: the header lies in the slot.
        unsafe { (&raw mut (*header).tp_len).write_volatile(len) };
    }

    /// Copies bytes out of a slot that this side owns; `false`, with no effect, if they are not all
    /// inside it.
    #[inline]
    #[must_use]
    pub(super) fn copy_out(&self, slot: usize, offset: usize, to: &mut [u8]) -> bool {
        let inside = self.is_inside(offset, to.len());
        if inside {
            // SAFETY: the source lies in the slot; the destination is memory of this process alone.
            unsafe {
                ptr::copy_nonoverlapping(
                    self.at(slot).add(offset).as_ptr(),
                    to.as_mut_ptr(),
                    to.len(),
                );
            };
        }
        inside
    }

    /// Copies bytes into a slot that this side owns; `false`, with no effect, if they do not fit.
    #[inline]
    #[must_use]
    pub(super) fn copy_in(&self, slot: usize, offset: usize, from: &[u8]) -> bool {
        let inside = self.is_inside(offset, from.len());
        if inside {
            // SAFETY: the destination lies in the slot; the source is memory of this process alone.
            unsafe {
                ptr::copy_nonoverlapping(
                    from.as_ptr(),
                    self.at(slot).add(offset).as_ptr(),
                    from.len(),
                );
            };
        }
        inside
    }

    /// Copies everything behind the status word from one slot to another; this side owns both.
    pub(super) fn copy_slot(&self, from: usize, to: usize) {
        let skip = size_of::<u32>();
        let (from, to) = (self.at(from), self.at(to));
        // SAFETY: both ranges lie in their slots; `copy` allows for the same slot twice.
        unsafe {
            ptr::copy(
                from.add(skip).as_ptr(),
                to.add(skip).as_ptr(),
                self.geometry.slot - skip,
            );
        };
    }

    /// Writes a whole header, as the kernel does.
    #[cfg(any(test, fuzzing))]
    pub(super) fn put_header(&self, slot: usize, header: &tpacket2_hdr) {
        // SAFETY: the header lies in the slot.
        unsafe { self.at(slot).cast::<tpacket2_hdr>().write_volatile(*header) };
    }

    #[inline]
    fn is_inside(&self, offset: usize, len: usize) -> bool {
        offset
            .checked_add(len)
            .is_some_and(|end| end <= self.geometry.slot)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and no reference into it exists.
        let result = unsafe { munmap(self.base.as_ptr().cast(), self.geometry.bytes()) };
        debug_assert!(result.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_fill_whole_pages() {
        for slots in [2, 3, 1000, 1024] {
            for frame in [60, 1518, 4016, 4017, 9018, 65_554] {
                let geometry = Geometry::new(slots, frame);
                assert!(geometry.slots >= slots && geometry.slot >= RX_DATA + frame);
                assert!(geometry.bytes().is_multiple_of(geometry.block()));
                assert!(geometry.block().is_multiple_of(rustix::param::page_size()));
                assert!(geometry.slot.is_multiple_of(libc::TPACKET_ALIGNMENT));
            }
        }
        assert_eq!(
            Geometry::new(1024, 1518),
            Geometry {
                slots: 1024,
                slot: 2048
            }
        );
    }
}
