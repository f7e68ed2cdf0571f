//! The header in front of each frame: virtio 1.2 section 5.1.6, `struct virtio_net_hdr`.
//!
//! No offload is negotiated, so all of it is zero but for its last field: in how many buffers a
//! received frame lies, which is 1 unless receive buffers may be merged.

use std::ptr::NonNull;

/// Bytes of the header; `num_buffers` is part of it for every device of the standard.
pub(crate) const LEN: usize = 12;

/// Where `num_buffers` is.
const NUM_BUFFERS: usize = 10;

/// The header of a received frame that fills `buffers` buffers.
#[inline]
pub(super) fn received(buffers: u16) -> [u8; LEN] {
    let mut header = [0; LEN];
    header[NUM_BUFFERS..].copy_from_slice(&buffers.to_le_bytes());
    header
}

/// In how many buffers a received frame lies, as its header says.
///
/// # Safety
/// `header` is valid for reads of [`LEN`] bytes.
#[inline(always)]
pub(super) unsafe fn buffers(header: NonNull<u8>) -> u16 {
    // SAFETY: inside the header. Unaligned: a header begins anywhere. Volatile: it is read once,
    // whatever the device does to it meanwhile.
    let bytes = unsafe { header.add(NUM_BUFFERS).cast::<[u8; 2]>().read_volatile() };
    u16::from_le_bytes(bytes)
}

/// Makes the header of a frame to be sent: all zero.
///
/// # Safety
/// `header` is valid for reads and writes of [`LEN`] bytes.
#[inline(always)]
pub(super) unsafe fn clear(header: NonNull<u8>) {
    let (first, rest) = (header.cast::<u64>(), header.cast::<u32>());
    // SAFETY: 8 + 4 bytes. Most buffers were sent before and hold the zeros still: the cache line
    // then stays as it is, shared with a device that may have looked at it.
    unsafe {
        if first.read_unaligned() != 0 || rest.add(2).read_unaligned() != 0 {
            first.write_unaligned(0);
            rest.add(2).write_unaligned(0);
        }
    }
}
