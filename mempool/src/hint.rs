//! What a processor can be told ahead of time. Hints: nothing but time depends on them.

use core::arch::asm;
use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Asks for the cache line at `at`, to read it soon. It need not be an address of anything.
#[inline(always)]
pub fn expect_read<T>(at: *const T) {
    // Miri has no caches.
    if cfg!(miri) {
        return;
    }
    // SAFETY: it changes neither memory nor registers, and does nothing where there is no memory.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
}

/// Asks for the cache line at `at`, to write it soon: one that another core has had would be
/// fetched by [`expect_read`] to be read alone, and asked for once more by the store. It need not
/// be an address of anything.
#[inline(always)]
pub fn expect_write<T>(at: *const T) {
    // Miri executes no assembly.
    if cfg!(miri) {
        return;
    }
    // SAFETY: it changes neither memory nor registers nor flags, and cannot fault. In assembly: for
    // a target without PREFETCHW, which every x86-64 CPU executes or takes for a NOP,
    // `_mm_prefetch` would ask for the line to read.
    unsafe { asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags)) };
}
