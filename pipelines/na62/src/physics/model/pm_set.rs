//! A set of photomultipliers, a bit each.

use crate::rich::geometry::PMS;

/// A set of photomultipliers.
pub(super) type PmSet = [u64; PMS.div_ceil(64)];

/// Puts `pm` into `set`; whether it was not there before.
pub(super) fn insert(set: &mut PmSet, pm: u16) -> bool {
    let (word, bit) = (usize::from(pm) / 64, 1u64 << (pm % 64));
    let new = set[word] & bit == 0;
    set[word] |= bit;
    new
}
