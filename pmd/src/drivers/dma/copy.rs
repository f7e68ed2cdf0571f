//! Copies of the size of a frame.

use std::ptr::{self, NonNull};

/// Copies `len` bytes. Frames are short and of many lengths; up to 256 bytes a few vector moves,
/// the last of which overlap, are faster than the call of `memcpy` and its choice among loops.
///
/// # Safety
/// `from` is valid for reads and `to` for writes of `len` bytes, and they do not overlap. Another
/// process may write to either concurrently: the copy is then a mixture of old and new bytes.
#[inline(always)]
pub unsafe fn copy_frame(from: NonNull<u8>, to: NonNull<u8>, len: usize) {
    let (from, to) = (from.as_ptr().cast_const(), to.as_ptr());
    // SAFETY: each branch copies its first and its last bytes, and `len` is at least as long;
    // together they cover all bytes.
    unsafe {
        match len {
            8..16 => ends::<8>(from, to, len),
            16..32 => ends::<16>(from, to, len),
            32..64 => ends::<32>(from, to, len),
            64..=128 => ends::<64>(from, to, len),
            129..=256 => ends::<128>(from, to, len),
            _ => ptr::copy_nonoverlapping(from, to, len),
        }
    }
}

/// The first `N` and the last `N` bytes.
///
/// # Safety
/// As for [`copy_frame`], and N <= len <= 2 N.
#[inline(always)]
unsafe fn ends<const N: usize>(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: N <= len.
    unsafe {
        ptr::copy_nonoverlapping(from, to, N);
        ptr::copy_nonoverlapping(from.add(len - N), to.add(len - N), N);
    }
}
