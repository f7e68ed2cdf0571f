//! Frames that may need a chain of buffers.

use pollux_mempool::{Mbuf, PoolCache};

use crate::ledger::Cause;

/// Most buffers that one frame may have ([`Mbuf::chain`]).
pub(super) const MAX_SEGMENTS: usize = 1024;

/// Puts a frame into as many buffers as it needs.
///
/// # Errors
/// The cause to drop it for.
pub(super) fn alloc_frame(cache: &mut PoolCache, frame: &[u8]) -> Result<Mbuf, Cause> {
    let longest = cache.pool().data_room() * MAX_SEGMENTS;
    cache.alloc_from(frame).ok_or(if frame.len() > longest {
        Cause::Oversize
    } else {
        Cause::NoMbuf
    })
}
