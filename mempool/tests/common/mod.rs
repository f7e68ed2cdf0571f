//! Pools, and what the process holds.
#![allow(dead_code)] // each test binary uses its part

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// For tests that count what the process holds: one at a time.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Mappings of our memory files, and their descriptors.
pub(crate) fn held() -> (usize, usize) {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let fds = fs::read_dir("/proc/self/fd").unwrap().filter(|entry| {
        let target = fs::read_link(entry.as_ref().unwrap().path()).unwrap_or_default();
        target.to_string_lossy().contains("memfd:pollux")
    });
    (maps.matches("memfd:pollux").count(), fds.count())
}
