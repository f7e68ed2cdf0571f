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
    let mut line = frame.as_ptr();
    for _ in 0..frame.len().div_ceil(LINE) {
        prefetch_read(line);
        line = line.wrapping_add(LINE);
    }
}

/// A message that is written: another core may have read its buffer last. Where it is short, the next one is
/// written behind it soon.
#[inline]
pub(super) fn to_write(message: &[u8]) {
    let (start, bytes) = match message.len().checked_sub(SHORT) {
        Some(rest) => (SHORT, rest),
        None => (message.len(), message.len()),
    };
    let mut line = message.as_ptr().wrapping_add(start);
    for _ in 0..bytes.div_ceil(LINE) {
        prefetch_write(line);
        line = line.wrapping_add(LINE);
    }
}
