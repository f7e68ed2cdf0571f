//! Cache lines of frames, which are asked for before they are needed: all at a time, where each for
//! itself would be waited for.

use pollux_pmd::mempool::prefetch::{prefetch_read, prefetch_write};

/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes of a message that are written before its other lines would have come.
const SHORT: usize = 4 * LINE;

/// A frame that has arrived: it is in the cache of the core that has written it.
#[inline]
pub(super) fn to_read(frame: &[u8]) {
    let mut at = 0;
    while at < frame.len() {
        prefetch_read(frame.as_ptr().wrapping_add(at));
        at += LINE;
    }
}

/// A message that is written: another core may have read its buffer last. Where it is short, the next one is
/// written behind it soon.
#[inline]
pub(super) fn to_write(message: &[u8]) {
    let (start, end) = if message.len() > SHORT {
        (SHORT, message.len())
    } else {
        (message.len(), 2 * message.len())
    };
    let mut at = start;
    while at < end {
        prefetch_write(message.as_ptr().wrapping_add(at));
        at += LINE;
    }
}
