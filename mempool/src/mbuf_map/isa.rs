//! Whether the CPU has the instructions for eight frames at a time.

use std::arch::is_x86_feature_detected;

/// Proof that the CPU has AVX-512 F, BW and VBMI: there is no other way to make one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Isa(());

impl Isa {
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi"))
        .then_some(Self(()))
    }
}
