//! Buffers, pools and rings.

#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod metadata;
mod objects;
mod ownership;
mod placement;
mod ring;
mod stopped;
mod threads;

use pollux_mempool::region::PageSize;
use pollux_mempool::{Mempool, PoolConfig};

/// A pool on normal pages.
fn pool(buffers: usize, data_room: usize) -> Mempool {
    Mempool::new(PoolConfig {
        buffers,
        data_room,
        pages: PageSize::Kib4,
        ..PoolConfig::default()
    })
    .unwrap()
}
