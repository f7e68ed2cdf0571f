//! Frame header: virtio 1.2 section 5.1.6, `struct virtio_net_hdr`.
//!
//! All of it is zero, except its last field (the number of buffers of a received frame, which is 1
//! unless mergeable receive buffers are negotiated), and checksum fields where offload is
//! negotiated.

use std::ptr::NonNull;

use pollux_mempool::ChecksumRequest;

/// Size of the header; `num_buffers` is part of it for every device of the standard.
pub(crate) const LEN: usize = 12;

/// Offset of `num_buffers`.
const NUM_BUFFERS: usize = 10;

/// In the flags, the first byte: the checksum is partial (`VIRTIO_NET_HDR_F_NEEDS_CSUM`), or has
/// been verified (`VIRTIO_NET_HDR_F_DATA_VALID`).
const NEEDS_CHECKSUM: u8 = 1;
const VERIFIED: u8 = 2;

/// Checksum offload info of a frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChecksumInfo {
    /// None.
    None,
    /// The checksum has been verified.
    Verified,
    /// The checksum is partial: its sum from `start` on belongs into `field`.
    Partial {
        /// In bytes from the start of the frame.
        start: u16,
        /// Likewise.
        field: usize,
    },
    /// A header for segmentation, which was not negotiated.
    Invalid,
}

/// Reads the offload info of a received frame's header.
///
/// # Safety
/// `header` is valid for reads of [`LEN`] bytes.
#[inline(always)]
pub(super) unsafe fn told(header: NonNull<u8>) -> ChecksumInfo {
    // SAFETY: inside the header. Unaligned: a header begins anywhere. Volatile: it is read once,
    // whatever the device writes concurrently.
    let bytes = unsafe { header.cast::<[u8; LEN]>().read_volatile() };
    let [flags, segmented, _, _, _, _, a, b, c, d, ..] = bytes;
    let (start, offset) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
    if segmented != 0 {
        ChecksumInfo::Invalid
    } else if flags & NEEDS_CHECKSUM != 0 {
        let field = usize::from(start) + usize::from(offset);
        ChecksumInfo::Partial { start, field }
    } else if flags & VERIFIED != 0 {
        ChecksumInfo::Verified
    } else {
        ChecksumInfo::None
    }
}

/// The header of a received frame that fills `buffers` buffers.
#[inline]
pub(super) fn received(buffers: u16) -> [u8; LEN] {
    let mut header = [0; LEN];
    header[NUM_BUFFERS..].copy_from_slice(&buffers.to_le_bytes());
    header
}

/// The number of buffers of a received frame, by its header.
///
/// # Safety
/// `header` is valid for reads of [`LEN`] bytes.
#[inline(always)]
pub(super) unsafe fn buffers(header: NonNull<u8>) -> u16 {
    // SAFETY: inside the header. Unaligned: a header begins anywhere. Volatile: it is read once,
    // whatever the device writes concurrently.
    let bytes = unsafe { header.add(NUM_BUFFERS).cast::<[u8; 2]>().read_volatile() };
    u16::from_le_bytes(bytes)
}

/// Writes the header of a frame to be sent: all zero, except for checksum offload.
///
/// # Safety
/// `header` is valid for reads and writes of [`LEN`] bytes.
#[inline(always)]
pub(super) unsafe fn send(header: NonNull<u8>, request: Option<ChecksumRequest>) {
    let (first, rest) = (header.cast::<u64>(), header.cast::<u32>());
    // Flags, four fields about segments, and the start of the sum; the offset of the field from
    // there.
    let (flags, offset) = request.map_or((0, 0), |request| {
        let start = request.start();
        let offset = (request.field() - start) as u32;
        (u64::from(NEEDS_CHECKSUM) | (start as u64) << 48, offset)
    });
    // SAFETY: 8 + 4 bytes. Most buffers were sent before and already hold the same bytes: the cache
    // line then stays unchanged, shared with a device that may have read it.
    unsafe {
        if first.read_unaligned() != flags || rest.add(2).read_unaligned() != offset {
            first.write_unaligned(flags);
            rest.add(2).write_unaligned(offset);
        }
    }
}
