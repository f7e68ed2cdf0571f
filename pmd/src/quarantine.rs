//! Quarantine: memory that was posted to a device or a peer, kept until it is proven to have been
//! released.
//!
//! The device may write a posted buffer at any time. Stopping a queue does not prove that the
//! writes have ended: a device can hang, a register that reads all ones can be a broken bus, and
//! the kernel or a peer process can finish later than the call that stops it. If such a buffer
//! returned to its pool, the device would write into it under its next owner.
//!
//! A port that stops therefore parks its posted buffers here, and releases them once it has a
//! proof: the device reports that it is reset, its memory is unmapped behind an IOMMU, the kernel
//! permits a new bind of the queue, or the peer has acknowledged. Without a proof the memory is
//! leaked when the last clone of the quarantine is dropped: the pool keeps its region for the life
//! of the process, and [`leaked_buffers`] counts the loss.
//!
//! The quarantine of a PCI device also keeps the DMA mappings of the device (`lend`), rings
//! included. All end together (`settle`); behind an IOMMU their end is a proof for a device that
//! gives no other.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pollux_mempool::Mbuf;

use crate::bus::DmaMapping;

/// Buffers of this process in quarantine, and leaked buffers. Relaxed: the counts order nothing.
static HELD: AtomicU64 = AtomicU64::new(0);
static LEAKED: AtomicU64 = AtomicU64::new(0);

/// Number of packet buffers of all ports of this process that are quarantined: the devices and
/// peers that they were posted to are not yet proven to have released them.
#[must_use]
pub fn quarantined_buffers() -> u64 {
    HELD.load(Ordering::Relaxed)
}

/// Number of packet buffers that this process has leaked, because the devices and peers that they
/// were posted to were never proven to have released them.
#[must_use]
pub fn leaked_buffers() -> u64 {
    LEAKED.load(Ordering::Relaxed)
}

/// Memory of one port that a device or peer may still write. Clones share one quarantine; the port
/// and each of its queues hold one.
#[derive(Clone)]
pub struct Quarantine(Arc<Mutex<Held>>);

struct Held {
    port: String,
    /// Mappings that the device can access.
    lent: Vec<DmaMapping>,
    kept: Vec<Box<dyn Send>>,
    buffers: usize,
    /// Nothing outside the process writes the memory any more; final.
    settled: bool,
}

impl Quarantine {
    /// An empty quarantine; `port` names it in messages.
    pub fn new(port: impl Into<String>) -> Self {
        Self(Arc::new(Mutex::new(Held {
            port: port.into(),
            lent: Vec::new(),
            kept: Vec::new(),
            buffers: 0,
            settled: false,
        })))
    }

    /// Keeps a mapping for as long as the device may use it.
    pub(crate) fn lend(&self, mapping: DmaMapping) {
        self.lock().lent.push(mapping);
    }

    /// Keeps `memory`, which is or contains `buffers` packet buffers, until it is released.
    /// Allocates: for the end of a queue only. Drops the memory at once if all is
    /// [settled](Self::settle).
    pub fn hold(&self, memory: impl Send + 'static, buffers: usize) {
        let mut held = self.lock();
        if held.settled {
            drop(held);
            drop(memory);
            return;
        }
        held.kept.push(Box::new(memory));
        held.buffers += buffers;
        HELD.fetch_add(buffers as u64, Ordering::Relaxed);
    }

    /// Keeps the frames that a queue had posted when it ended.
    pub fn park(&self, posted: impl IntoIterator<Item = Mbuf>) {
        let posted: Vec<_> = posted.into_iter().collect();
        let buffers = posted.iter().map(Mbuf::segment_count).sum();
        if buffers > 0 {
            self.hold(posted, buffers);
        }
    }

    /// Packet buffers in quarantine now.
    #[must_use]
    pub fn buffers(&self) -> usize {
        self.lock().buffers
    }

    /// Drops all memory, so that buffers return to their pools. The caller has the proof that no
    /// device or peer writes it any more.
    pub(crate) fn release(&self) {
        let mut held = self.lock();
        let buffers = mem::take(&mut held.buffers);
        HELD.fetch_sub(buffers as u64, Ordering::Relaxed);
        let kept = mem::take(&mut held.kept);
        // Dropped outside the lock: the memory may own a clone of this.
        drop(held);
        drop(kept);
    }

    /// Ends the mappings, then releases the memory if the device was proven to be `at_rest` or all
    /// mappings to be removed. Returns whether it did; from then on nothing is kept. Without a
    /// proof the regions of the mappings are kept, too.
    #[allow(clippy::must_use_candidate)] // a port that stops has nothing more to do
    pub fn settle(&self, at_rest: bool) -> bool {
        let mut held = self.lock();
        // Always: a device at rest keeps no mapping either.
        let revoked = held.revoke();
        held.settled |= at_rest || revoked;
        let settled = held.settled;
        drop(held);
        if settled {
            self.release();
        }
        settled
    }

    /// Whether nothing is lent or kept, so that no proof is needed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let held = self.lock();
        held.lent.is_empty() && held.kept.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Ends the mappings. Returns whether the device is proven to have no access to the memory: it
    /// had a mapping, and all have been removed. Otherwise keeps their regions.
    fn revoke(&mut self) -> bool {
        let lent = mem::take(&mut self.lent);
        let mut revoked = !lent.is_empty();
        let mut regions = Vec::with_capacity(lent.len());
        for mapping in lent {
            regions.push(mapping.region().clone());
            revoked &= mapping.end();
        }
        if !revoked {
            let keep = |region| -> Box<dyn Send> { Box::new(region) };
            self.kept.extend(regions.into_iter().map(keep));
        }
        revoked
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let is_settled = self.revoke();
        HELD.fetch_sub(self.buffers as u64, Ordering::Relaxed);
        if is_settled || self.kept.is_empty() {
            return;
        }
        LEAKED.fetch_add(self.buffers as u64, Ordering::Relaxed);
        tracing::warn!(
            port = self.port,
            buffers = self.buffers,
            "leaked: the device or peer was not proven to have released this memory"
        );
        mem::take(&mut self.kept).into_iter().for_each(mem::forget);
    }
}

/// Statistics line of a port whose device writes into our memory: buffers of ended queues that are
/// kept until the device is proven to be at rest.
#[must_use]
pub fn quarantined(quarantine: &Quarantine) -> (std::borrow::Cow<'static, str>, u64) {
    ("quarantined_buffers".into(), quarantine.buffers() as u64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use pollux_mempool::{IovaMap, Mempool, PoolConfig};

    use super::*;

    fn pool() -> Mempool {
        let config = PoolConfig {
            buffers: 8,
            ..PoolConfig::default()
        };
        Mempool::new(config).unwrap()
    }

    /// A mapping of a pool; `proven` is the result of ending it.
    fn mapping(pool: &Mempool, proven: bool) -> DmaMapping {
        let region = Arc::clone(pool.region());
        let addresses = IovaMap::identity(&region);
        DmaMapping::new(region, addresses, move || proven)
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
        assert!(quarantined_buffers() >= 1);
        drop(quarantine);
        assert_eq!(pool.available(), 7);
        assert!(leaked_buffers() > before);
    }

    #[test]
    fn one_proof_is_enough_and_none_is_not() {
        // Device at rest, mappings removed, and the buffers that return.
        let cases = [
            (false, &[true, true][..], 8),
            (true, &[false, true], 8),
            (false, &[false, true], 7),
            (false, &[], 7),
        ];
        for (at_rest, mappings, expected) in cases {
            let (pool, quarantine) = (pool(), Quarantine::new("test"));
            for &proven in mappings {
                quarantine.lend(mapping(&pool, proven));
            }
            quarantine.hold(pool.alloc().unwrap(), 1);
            assert_eq!(quarantine.settle(at_rest), expected == 8);
            assert_eq!(pool.available(), expected);
            // A mapping that ended without a proof gives none later; a later check of the device
            // may.
            assert_eq!(quarantine.settle(false), expected == 8);
            assert!(quarantine.settle(true) && quarantine.is_empty());
            // Memory of a queue that outlives its port.
            quarantine.hold(pool.alloc().unwrap(), 1);
            assert_eq!((quarantine.buffers(), pool.available()), (0, 8));
        }
    }

    #[test]
    fn what_is_never_settled_comes_back_only_behind_an_iommu() {
        for (proven, expected) in [(true, 8), (false, 7)] {
            let (pool, quarantine) = (pool(), Quarantine::new("test"));
            quarantine.lend(mapping(&pool, proven));
            quarantine.hold(pool.alloc().unwrap(), 1);
            drop(quarantine);
            assert_eq!(pool.available(), expected);
        }
    }
}
