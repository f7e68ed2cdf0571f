//! Allocation of frames that may need a chain of buffers.

use pollux_mempool::{Mbuf, PoolCache};

use crate::ledger::Cause;

/// Copies a frame into as many buffers as it needs.
///
/// # Errors
/// The cause for which it is dropped.
pub(super) fn alloc_frame(cache: &mut PoolCache, frame: &[u8]) -> Result<Mbuf, Cause> {
    let longest = cache.pool().longest_frame();
    cache.alloc_from(frame).ok_or(if frame.len() > longest {
        Cause::Oversize
    } else {
        Cause::NoMbuf
    })
}
