//! Memory of the system: what a region or a pool takes, refuses and gives back. What the process
//! holds is counted, so nothing else is tested in it.

#![cfg(not(loom))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bad_input;
mod region;

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// For tests that count what the process holds: one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Mappings of our memory files, and their descriptors.
fn held() -> (usize, usize) {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let fds = fs::read_dir("/proc/self/fd").unwrap().filter(|entry| {
        let target = fs::read_link(entry.as_ref().unwrap().path()).unwrap_or_default();
        target.to_string_lossy().contains("memfd:pollux")
    });
    (maps.matches("memfd:pollux").count(), fds.count())
}
