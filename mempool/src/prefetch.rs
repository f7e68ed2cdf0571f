//! Prefetch hints. They change nothing but time.

use core::arch::asm;
use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Prefetches the cache line at `at` for a read. The address may be invalid; a prefetch never faults.
#[inline(always)]
pub fn prefetch_read<T>(at: *const T) {
    // Miri has no caches.
    if cfg!(miri) {
        return;
    }
    // SAFETY: it changes neither memory nor registers, and does nothing where there is no memory.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
}

/// Prefetches the cache line at `at` for a write. [`prefetch_read`] would fetch a line of another core
/// as shared, and the store would request it again. The address may be invalid; a prefetch never faults.
#[inline(always)]
pub fn prefetch_write<T>(at: *const T) {
    // Miri executes no assembly.
    if cfg!(miri) {
        return;
    }
    // SAFETY: it changes neither memory nor registers nor flags, and cannot fault. In assembly: for
    // a target without PREFETCHW, which every x86-64 CPU executes or takes for a NOP,
    // `_mm_prefetch` would ask for the line to read.
    unsafe { asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags)) };
}
