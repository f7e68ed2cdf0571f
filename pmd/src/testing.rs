//! What unit tests of this crate need over and over.

use pollux_mempool::region::PageSize;
use pollux_mempool::{Mempool, PoolConfig};

/// A pool on normal pages.
pub(crate) fn pool(buffers: usize, data_room: usize) -> Mempool {
    Mempool::new(PoolConfig {
        buffers,
        data_room,
        pages: PageSize::Kib4,
        ..PoolConfig::default()
    })
    .unwrap()
}
