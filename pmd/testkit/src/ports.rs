//! Pools and statistics of ports under test.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)] // a panic is how a test fails

use pollux_mempool::region::PageSize;
use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::port::{Port, Started};

/// Buffers that a port has lent and not got back, by its own count.
#[must_use]
pub fn quarantined(port: &Port<Started>) -> usize {
    let all = port.statistics();
    let found = all.iter().find(|(name, _)| name == "quarantined_buffers");
    found.unwrap().1 as usize
}

/// A pool on normal pages.
#[must_use]
pub fn pool(buffers: usize, data_room: usize) -> Mempool {
    Mempool::new(PoolConfig {
        buffers,
        data_room,
        pages: PageSize::Kib4,
        ..PoolConfig::default()
    })
    .unwrap()
}
