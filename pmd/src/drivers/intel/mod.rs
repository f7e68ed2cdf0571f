//! What the drivers of Intel's gigabit NICs share: rings of descriptors, which differ between the
//! 82574 and the 82576 in a word, the queues that work with them, their memory, and what they count.

pub(crate) mod counters;
pub(crate) mod descriptors;
pub(crate) mod link;
pub(crate) mod memory;
#[cfg(any(test, fuzzing))]
pub(crate) mod model;
pub(crate) mod rx;
pub(crate) mod tx;
