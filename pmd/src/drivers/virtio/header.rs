//! The header in front of each frame: virtio 1.2 section 5.1.6, `struct virtio_net_hdr`.
//!
//! All of it is zero, but for its last field (in how many buffers a received frame lies, which is 1
//! unless receive buffers may be merged), and for checksums where they are agreed on.

use std::ptr::NonNull;

use pollux_mempool::ChecksumRequest;

/// Bytes of the header; `num_buffers` is part of it for every device of the standard.
pub(crate) const LEN: usize = 12;

/// Where `num_buffers` is.
const NUM_BUFFERS: usize = 10;

/// In the flags, the first byte: the checksum is to be finished (`VIRTIO_NET_HDR_F_NEEDS_CSUM`), or
/// has been verified (`VIRTIO_NET_HDR_F_DATA_VALID`).
const NEEDS_CHECKSUM: u8 = 1;
const VERIFIED: u8 = 2;

/// What a header says of its frame's checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing.
    Nothing,
    /// It has been verified.
    Verified,
    /// It is the sum from `start` on, belongs to `field`, and has not been made.
    Left {
        /// In bytes from the frame's first.
        start: u16,
        /// Likewise.
        field: usize,
    },
    /// Of a frame that was to be cut into segments, which nobody agreed on.
    Nonsense,
}

/// What the header of a received frame says.
///
/// # Safety
/// `header` is valid for reads of [`LEN`] bytes.
#[inline(always)]
pub(super) unsafe fn told(header: NonNull<u8>) -> Told {
    // SAFETY: inside the header. Unaligned: a header begins anywhere. Volatile: it is read once,
    // whatever the device does to it meanwhile.
    let bytes = unsafe { header.cast::<[u8; LEN]>().read_volatile() };
    let [flags, segmented, _, _, _, _, a, b, c, d, ..] = bytes;
    let (start, offset) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
    if segmented != 0 {
        Told::Nonsense
    } else if flags & NEEDS_CHECKSUM != 0 {
        let field = usize::from(start) + usize::from(offset);
        Told::Left { start, field }
    } else if flags & VERIFIED != 0 {
        Told::Verified
    } else {
        Told::Nothing
    }
}

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

/// Makes the header of a frame to be sent: all zero, but for a checksum that is left to the device.
///
/// # Safety
/// `header` is valid for reads and writes of [`LEN`] bytes.
#[inline(always)]
pub(super) unsafe fn send(header: NonNull<u8>, request: Option<ChecksumRequest>) {
    let (first, rest) = (header.cast::<u64>(), header.cast::<u32>());
    // Flags, four fields about segments, and where the sum begins; the field from there.
    let (flags, offset) = request.map_or((0, 0), |request| {
        let start = request.start();
        let offset = (request.field() - start) as u32;
        (u64::from(NEEDS_CHECKSUM) | (start as u64) << 48, offset)
    });
    // SAFETY: 8 + 4 bytes. Most buffers were sent before and hold the same still: the cache line
    // then stays as it is, shared with a device that may have looked at it.
    unsafe {
        if first.read_unaligned() != flags || rest.add(2).read_unaligned() != offset {
            first.write_unaligned(flags);
            rest.add(2).write_unaligned(offset);
        }
    }
}
