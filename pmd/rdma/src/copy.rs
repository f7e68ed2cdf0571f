//! Copies from and to memory that a peer may access at the same time.
//!
//! Such an access is no read or write of the language, for which a race would be undefined: it is volatile,
//! or done by an instruction that the compiler does not look into, as for memory that a device writes. What
//! a race leaves in the destination is a mixture of bytes, and no more.

//!
//! Short copies are moves of the largest registers that every processor has; from [`STRING`] bytes on the
//! string instruction is as fast or faster (Zen 4, GB/s within the caches for moves and string: 128 B 59 and
//! 14, 512 B 59 and 41, 1 KiB 58 and 67, 4 KiB 59 and 97, 64 KiB 59 and 57; memcpy 57 at 64 KiB).

use std::arch::asm;

/// Bytes from which on the string instruction is used: its start takes some 10 ns.
const STRING: usize = 1024;

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
    if len >= STRING {
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
        return;
    }
    // Every length but the shortest is two moves, or rows of moves, that overlap where they meet.
    let end = |size: usize| {
        let at = len - size;
        (to.wrapping_add(at), from.wrapping_add(at))
    };
    // SAFETY: the caller's; each move begins at the first byte, or ends with the last one, and is not longer
    // than all.
    unsafe {
        match len {
            0..4 => {
                for n in 0..len {
                    to.add(n).write_volatile(from.add(n).read_volatile());
                }
            }
            4..8 => {
                let (to_end, from_end) = end(4);
                move_4(to, from);
                move_4(to_end, from_end);
            }
            8..16 => {
                let (to_end, from_end) = end(8);
                move_8(to, from);
                move_8(to_end, from_end);
            }
            16..32 => {
                let (to_end, from_end) = end(16);
                move_16(to, from);
                move_16(to_end, from_end);
            }
            32..64 => {
                let (to_end, from_end) = end(32);
                move_16(to, from);
                move_16(to.add(16), from.add(16));
                move_16(to_end, from_end);
                move_16(to_end.add(16), from_end.add(16));
            }
            _ => {
                let (to_end, from_end) = end(64);
                move_rows(to, from, len / 64);
                move_rows(to_end, from_end, 1);
            }
        }
    }
}

/// Copies 4 bytes.
///
/// # Safety
/// They can be read and written.
#[inline(always)]
unsafe fn move_4(to: *mut u8, from: *const u8) {
    // SAFETY: the caller's.
    unsafe {
        asm!(
            "mov {word:e}, [{from}]", "mov [{to}], {word:e}",
            word = out(reg) _, to = in(reg) to, from = in(reg) from,
            options(nostack, preserves_flags)
        );
    }
}

/// Copies 8 bytes.
///
/// # Safety
/// They can be read and written.
#[inline(always)]
unsafe fn move_8(to: *mut u8, from: *const u8) {
    // SAFETY: the caller's.
    unsafe {
        asm!(
            "mov {word}, [{from}]", "mov [{to}], {word}",
            word = out(reg) _, to = in(reg) to, from = in(reg) from,
            options(nostack, preserves_flags)
        );
    }
}

/// Copies 16 bytes.
///
/// # Safety
/// They can be read and written.
#[inline(always)]
unsafe fn move_16(to: *mut u8, from: *const u8) {
    // SAFETY: the caller's.
    unsafe {
        asm!(
            "movdqu {row}, [{from}]", "movdqu [{to}], {row}",
            row = out(xmm_reg) _, to = in(reg) to, from = in(reg) from,
            options(nostack, preserves_flags)
        );
    }
}

/// Copies rows of 64 bytes, one at least.
///
/// # Safety
/// They can be read and written.
#[inline(always)]
unsafe fn move_rows(to: *mut u8, from: *const u8, rows: usize) {
    // SAFETY: the caller's.
    unsafe {
        asm!(
            "2:",
            "movdqu {a}, [{from}]", "movdqu {b}, [{from} + 16]",
            "movdqu {c}, [{from} + 32]", "movdqu {d}, [{from} + 48]",
            "movdqu [{to}], {a}", "movdqu [{to} + 16], {b}",
            "movdqu [{to} + 32], {c}", "movdqu [{to} + 48], {d}",
            "add {from}, 64", "add {to}, 64",
            "dec {rows}", "jnz 2b",
            a = out(xmm_reg) _, b = out(xmm_reg) _, c = out(xmm_reg) _, d = out(xmm_reg) _,
            to = inout(reg) to => _, from = inout(reg) from => _, rows = inout(reg) rows => _,
            options(nostack)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_and_nothing_beside_it() {
        let from: Vec<u8> = (0..3000_u32).map(|n| (n * 7 + n / 256) as u8 | 1).collect();
        for len in (0..300).chain(1000..1100).chain([2047, 2900]) {
            for (at, offset) in [(0, 0), (1, 3), (54, 2)] {
                let mut to = vec![0; 3000];
                let target = to[offset..offset + len].as_mut_ptr();
                // SAFETY: both have so many bytes.
                unsafe { copy_shared(target, from[at..at + len].as_ptr(), len) };
                assert!(to[offset..offset + len] == from[at..at + len], "{len} B");
                assert!(
                    to[..offset]
                        .iter()
                        .chain(&to[offset + len..])
                        .all(|&byte| byte == 0),
                    "{len} B"
                );
            }
        }
    }
}
