//! What the drivers of Intel's gigabit NICs share: rings of descriptors, which differ between the
//! 82574 and the 82576 in a word, the queues that work with them, their memory, and what they count.

pub(crate) mod counters;
pub(crate) mod descriptors;
pub(crate) mod link;
pub(crate) mod memory;
pub(crate) mod rx;
pub(crate) mod tx;

use crate::driver::rss::RssSupport;

/// What both NICs have for RSS (datasheets, sections 7.1.11 and 7.1.1.7).
pub(crate) const RSS: RssSupport = RssSupport {
    key: RSS_KEY.len(),
    table: 128,
};

/// The key of the examples of Microsoft's RSS specification, which is what NICs come with.
pub(crate) const RSS_KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];
