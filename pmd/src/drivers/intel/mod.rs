//! What the drivers of Intel's gigabit NICs share: rings of descriptors, which differ between the
//! 82574 and the 82576 in a word, the queues that work with them, and their memory.

pub(crate) mod descriptors;
pub(crate) mod link;
pub(crate) mod memory;
pub(crate) mod rx;
pub(crate) mod tx;
