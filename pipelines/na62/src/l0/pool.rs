//! Pools of the trigger.

use pollux_mempool::region::PageSize;
use pollux_mempool::{Mempool, PoolConfig, PoolError};

/// A pool for the trigger's own buffers, which no port uses: no headroom, and no page of 1 GiB.
pub(super) fn own_pool(
    buffers: usize,
    data_room: usize,
    memory: PoolConfig,
) -> Result<Mempool, PoolError> {
    Mempool::new(PoolConfig {
        buffers,
        data_room,
        headroom: 0,
        pages: match memory.pages {
            PageSize::Gib1 => PageSize::Mib2,
            pages => pages,
        },
        ..memory
    })
}
