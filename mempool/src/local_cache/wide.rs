//! Copies of one burst of handles by moves of 32 bytes (AVX).
//!
//! A core stores once or twice a cycle, however wide the store is, and a burst of 32 handles is
//! nothing but loads and stores: twice as wide, it takes half of them.

use core::ptr;
use std::arch::is_x86_feature_detected;

/// Bytes of 32 handles.
pub(super) const BYTES: usize = 256;

/// Bytes of a move. A copy of as many, which says nothing of what they are (they may be pointers, and
/// padding), becomes one load and one store of a register.
const MOVE: usize = 32;

/// Proof that the CPU has AVX: there is no other way to make one.
#[derive(Clone, Copy)]
pub(super) struct Wide(());

impl Wide {
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx").then_some(Self(()))
    }

    /// Copies [`BYTES`] bytes, aligned or not.
    ///
    /// # Safety
    /// As for [`ptr::copy_nonoverlapping`] of so many bytes.
    #[inline(always)]
    pub(super) unsafe fn copy(self, from: *const u8, to: *mut u8) {
        // SAFETY: `self` proves that the CPU has the instructions; the rest by the caller's promise.
        unsafe { copy(self, from, to) }
    }
}

#[target_feature(enable = "avx")]
unsafe fn copy(_: Wide, from: *const u8, to: *mut u8) {
    for at in (0..BYTES).step_by(MOVE) {
        // SAFETY: the moves make up `BYTES` bytes, which are the caller's to read and write.
        unsafe { ptr::copy_nonoverlapping(from.add(at), to.add(at), MOVE) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_copied_whole_and_nothing_beside_it() {
        let Some(wide) = Wide::detect() else {
            println!("skipped: this CPU lacks AVX");
            return;
        };
        let from: Vec<u8> = (0..BYTES + 64).map(|at| at as u8 ^ 0x35).collect();
        for shift in [0, 8, 24, 33] {
            let mut to = vec![0xee; BYTES + 64];
            // SAFETY: both are 64 bytes longer, and the shift is less.
            unsafe { wide.copy(from.as_ptr().add(shift), to.as_mut_ptr().add(shift)) };
            let mut expected = vec![0xee; BYTES + 64];
            expected[shift..][..BYTES].copy_from_slice(&from[shift..][..BYTES]);
            assert_eq!(to, expected);
        }
    }
}
