//! Copies from and to memory that a peer may access at the same time.
//!
//! Such an access is no read or write of the language, for which a race would be undefined: it is volatile,
//! or done by an instruction that the compiler does not look into, as for memory that a device writes. What
//! a race leaves in the destination is a mixture of bytes, and no more.

use std::arch::asm;

/// Below so many bytes the start of the string instruction takes longer than single words.
const SMALL: usize = 128;

/// Copies `from.len()` bytes to shared memory.
///
/// # Safety
/// So many bytes at `to` can be written, and are not inside `from`.
#[inline]
pub(crate) unsafe fn copy_to_shared(to: *mut u8, from: &[u8]) {
    // SAFETY: the caller's, and `from` can be read.
    unsafe { copy_shared(to, from.as_ptr(), from.len()) }
}

/// Copies `to.len()` bytes from shared memory.
///
/// # Safety
/// So many bytes at `from` can be read, and are not inside `to`.
#[inline]
pub(crate) unsafe fn copy_from_shared(from: *const u8, to: &mut [u8]) {
    // SAFETY: the caller's, and `to` can be written.
    unsafe { copy_shared(to.as_mut_ptr(), from, to.len()) }
}

/// Copies bytes of which any may be shared. Where source and destination overlap, any bytes are there
/// afterwards.
///
/// # Safety
/// `len` bytes at `from` can be read, and at `to` written.
#[inline]
pub(crate) unsafe fn copy_shared(to: *mut u8, from: *const u8, len: usize) {
    if len < SMALL {
        // SAFETY: the caller's.
        return unsafe { copy_words(to, from, len) };
    }
    // SAFETY: the caller's; the direction flag is clear by the ABI.
    unsafe {
        asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags)
        );
    }
}

/// As [`copy_shared`], word by word.
///
/// # Safety
/// As there.
#[inline]
unsafe fn copy_words(to: *mut u8, from: *const u8, len: usize) {
    let words = len / 8;
    for n in 0..words {
        // SAFETY: the caller's; unaligned words are read and written as arrays of bytes.
        unsafe {
            let word = from.cast::<[u8; 8]>().add(n).read_volatile();
            to.cast::<[u8; 8]>().add(n).write_volatile(word);
        }
    }
    for n in words * 8..len {
        // SAFETY: the caller's.
        unsafe { to.add(n).write_volatile(from.add(n).read_volatile()) };
    }
}
