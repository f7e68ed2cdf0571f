//! What unit tests of this crate need over and over.

use pollux_mempool::region::PageSize;
use pollux_mempool::{Mempool, PoolConfig};

use crate::port::{Port, Started};

/// Buffers that a port has lent and not got back, by its own count.
pub(crate) fn quarantined(port: &Port<Started>) -> usize {
    let all = port.statistics();
    let found = all.iter().find(|(name, _)| name == "quarantined_buffers");
    found.unwrap().1 as usize
}

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
