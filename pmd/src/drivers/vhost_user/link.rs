//! State of the port as its control thread reports it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pollux_mempool::region::MemoryRegion;

use super::lent::Lent;
use crate::count::Count;
use crate::driver::{Link, Statistics};

/// The control thread is the only writer.
#[derive(Default)]
pub(super) struct State {
    up: AtomicBool,
    changes: Count,
    sessions: Count,
    violations: Count,
    untouched: Count,
    /// The memory of the pool, once it was shared.
    shared: Mutex<Weak<MemoryRegion>>,
    /// Memory that back ends have not released.
    pub(super) lent: Lent,
}

impl State {
    /// Sets whether a peer is connected.
    pub(super) fn set_up(&self, up: bool) {
        if self.up.swap(up, Ordering::Relaxed) != up {
            self.changes.add(1);
            self.sessions.add(u64::from(up));
        }
    }

    /// Counts a protocol violation of the peer.
    pub(super) fn count_violation(&self) {
        self.violations.add(1);
    }

    /// Counts a peer that shares memory into which it has written nothing.
    pub(super) fn count_untouched(&self) {
        self.untouched.add(1);
    }

    /// Records that the memory of the pool is shared with a back end.
    pub(super) fn set_shared(&self, region: &Arc<MemoryRegion>) {
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(region);
    }

    /// Number of pages of the pool that a back end has removed from its file.
    fn damaged_pages(&self) -> usize {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().map_or(0, |region| region.replaced_pages())
    }

    pub(super) fn link(&self) -> Link {
        Link {
            up: self.up.load(Ordering::Relaxed),
            changes: self.changes.get(),
            ..Link::DOWN
        }
    }

    pub(super) fn statistics(&self) -> Statistics {
        vec![
            ("sessions".into(), self.sessions.get()),
            ("protocol-violations".into(), self.violations.get()),
            ("untouched_memory".into(), self.untouched.get()),
            ("quarantined_buffers".into(), self.lent.buffers() as u64),
            ("damaged_pages".into(), self.damaged_pages() as u64),
        ]
    }
}
