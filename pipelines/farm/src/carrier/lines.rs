//! Cache lines of frames, which are asked for before they are needed: all at a time, where each for
//! itself would be waited for.

use pollux_pmd::mempool::prefetch::{prefetch_read, prefetch_write};

/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes of a frame that are written before its other lines would have come.
const SHORT: usize = 4 * LINE;

/// A frame that has arrived: it is in the cache of the core that has written it.
#[inline]
pub(super) fn to_read(frame: &[u8]) {
    for at in (0..frame.len()).step_by(LINE) {
        prefetch_read(frame.as_ptr().wrapping_add(at));
    }
}

/// A frame that is written next: another core may have read its buffer last.
#[inline]
pub(super) fn to_write(frame: &[u8]) {
    for at in (SHORT..frame.len()).step_by(LINE) {
        prefetch_write(frame.as_ptr().wrapping_add(at));
    }
}

/// The bytes behind a message of a frame: the next one is written there soon.
#[inline]
pub(super) fn to_write_next(message: &[u8]) {
    let behind = message.as_ptr_range().end;
    for at in (0..message.len()).step_by(LINE) {
        prefetch_write(behind.wrapping_add(at));
    }
}
