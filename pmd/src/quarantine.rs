//! Quarantine: memory that a device or a peer was told of, kept until it is proven to have let go.
//!
//! A buffer that was posted may be written by the device at any time. Stopping a queue is no proof
//! that the writing has ended: a device can hang, a register that reads all ones can be a broken
//! bus, and the kernel or a peer process can finish later than the call that told it to stop. A
//! buffer that went back to its pool meanwhile would be written under its next owner.
//!
//! A port that stops therefore parks what it had posted here, and calls [`Quarantine::release`]
//! once it has a proof: the device is reset and says so, its memory is unmapped behind an IOMMU,
//! the kernel lets the queue be bound again, the peer has acknowledged. Without a proof the memory
//! is leaked when the last clone of the quarantine is dropped: the pool keeps its region for the
//! life of the process, and [`leaked_buffers`] counts what was lost.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Buffers that were leaked in this process. Relaxed: a count, which orders nothing.
static LEAKED: AtomicU64 = AtomicU64::new(0);

/// Packet buffers that this process has given up for good, since no device or peer that they were
/// posted to was proven to have let go of them.
#[must_use]
pub fn leaked_buffers() -> u64 {
    LEAKED.load(Ordering::Relaxed)
}

/// Memory of one port that may still be written from outside. Clones are the same quarantine; the
/// port has one, and so has each of its queues.
#[derive(Clone)]
pub(crate) struct Quarantine(Arc<Mutex<Held>>);

struct Held {
    port: String,
    kept: Vec<Box<dyn Send>>,
    buffers: usize,
}

impl Quarantine {
    /// An empty quarantine; `port` names it in messages.
    pub(crate) fn new(port: impl Into<String>) -> Self {
        Self(Arc::new(Mutex::new(Held {
            port: port.into(),
            kept: Vec::new(),
            buffers: 0,
        })))
    }

    /// Keeps `memory`, which is or holds so many packet buffers, until it is released. Allocates:
    /// for the end of a queue, not for its life.
    pub(crate) fn hold(&self, memory: impl Send + 'static, buffers: usize) {
        let mut held = self.lock();
        held.kept.push(Box::new(memory));
        held.buffers += buffers;
    }

    /// Packet buffers in quarantine now.
    pub(crate) fn buffers(&self) -> usize {
        self.lock().buffers
    }

    /// Drops all that is kept, so that buffers go back to their pools. The caller has the proof
    /// that nothing of it is written from outside any more.
    pub(crate) fn release(&self) {
        let mut held = self.lock();
        held.buffers = 0;
        let kept = mem::take(&mut held.kept);
        // Outside the lock: what is dropped may own a clone of this.
        drop(held);
        drop(kept);
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.kept.is_empty() {
            return;
        }
        LEAKED.fetch_add(self.buffers as u64, Ordering::Relaxed);
        tracing::warn!(
            port = self.port,
            buffers = self.buffers,
            "leaked: it was not proven that the device or peer has let go of this memory"
        );
        mem::take(&mut self.kept).into_iter().for_each(mem::forget);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use pollux_mempool::{Mempool, PoolConfig};

    use super::*;

    fn pool() -> Mempool {
        let config = PoolConfig {
            buffers: 8,
            ..PoolConfig::default()
        };
        Mempool::new(config).unwrap()
    }

    #[test]
    fn quarantined_buffers_come_back_only_when_released() {
        let (pool, quarantine) = (pool(), Quarantine::new("test"));
        let queue = quarantine.clone();
        queue.hold(vec![pool.alloc().unwrap(), pool.alloc().unwrap()], 2);
        drop(queue);
        assert_eq!((quarantine.buffers(), pool.available()), (2, 6));
        quarantine.release();
        assert_eq!((quarantine.buffers(), pool.available()), (0, 8));
    }

    #[test]
    fn buffers_that_are_never_released_are_leaked_and_counted() {
        let (pool, quarantine) = (pool(), Quarantine::new("test"));
        let before = leaked_buffers();
        quarantine.hold(pool.alloc().unwrap(), 1);
        drop(quarantine);
        assert_eq!(pool.available(), 7);
        assert!(leaked_buffers() > before);
    }
}
