//! Event records.

use crate::layouts::EVENT_RECORD_SIZE;

/// A record for a queue.
pub(super) type Record = [u8; EVENT_RECORD_SIZE];

/// Puts bytes into a record.
pub(super) fn put(record: &mut Record, at: usize, bytes: &[u8]) {
    for (place, &byte) in record.iter_mut().skip(at).zip(bytes) {
        *place = byte;
    }
}
