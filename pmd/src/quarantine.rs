//! Quarantine: memory that a device or a peer was told of, kept until it is proven to have let go.
//!
//! A buffer that was posted may be written by the device at any time. Stopping a queue is no proof
//! that the writing has ended: a device can hang, a register that reads all ones can be a broken
//! bus, and the kernel or a peer process can finish later than the call that told it to stop. A
//! buffer that went back to its pool meanwhile would be written under its next owner.
//!
//! A port that stops therefore parks what it had posted here, and releases it
//! once it has a proof: the device is reset and says so, its memory is unmapped behind an IOMMU,
//! the kernel lets the queue be bound again, the peer has acknowledged. Without a proof the memory
//! is leaked when the last clone of the quarantine is dropped: the pool keeps its region for the
//! life of the process, and [`leaked_buffers`] counts what was lost.
//!
//! The quarantine of a PCI device also keeps the mappings by which the device reaches our memory
//! (`lend`), rings included: they end together (`settle`), and behind an IOMMU their end is a proof
//! for a device that gives no other.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pollux_mempool::Mbuf;

use crate::bus::DmaMapping;

/// Buffers that are in quarantine in this process, and those that were leaked. Relaxed: counts, which
/// order nothing.
static HELD: AtomicU64 = AtomicU64::new(0);
static LEAKED: AtomicU64 = AtomicU64::new(0);

/// Packet buffers of all ports of this process that are kept out of use, until the devices and peers
/// that they were posted to are proven to have let go of them.
#[must_use]
pub fn quarantined_buffers() -> u64 {
    HELD.load(Ordering::Relaxed)
}

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
    /// What the device reaches.
    lent: Vec<DmaMapping>,
    kept: Vec<Box<dyn Send>>,
    buffers: usize,
    /// Nothing is written from outside any more, for good.
    settled: bool,
}

impl Quarantine {
    /// An empty quarantine; `port` names it in messages.
    pub(crate) fn new(port: impl Into<String>) -> Self {
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

    /// Keeps `memory`, which is or holds so many packet buffers, until it is released. Allocates:
    /// for the end of a queue, not for its life. Drops it at once if all is [settled](Self::settle).
    pub(crate) fn hold(&self, memory: impl Send + 'static, buffers: usize) {
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
    pub(crate) fn park(&self, posted: impl IntoIterator<Item = Mbuf>) {
        let posted: Vec<_> = posted.into_iter().collect();
        let buffers = posted.iter().map(Mbuf::segment_count).sum();
        if buffers > 0 {
            self.hold(posted, buffers);
        }
    }

    /// Packet buffers in quarantine now.
    pub(crate) fn buffers(&self) -> usize {
        self.lock().buffers
    }

    /// Drops all that is kept, so that buffers go back to their pools. The caller has the proof
    /// that nothing of it is written from outside any more.
    pub(crate) fn release(&self) {
        let mut held = self.lock();
        let buffers = mem::take(&mut held.buffers);
        HELD.fetch_sub(buffers as u64, Ordering::Relaxed);
        let kept = mem::take(&mut held.kept);
        // Outside the lock: what is dropped may own a clone of this.
        drop(held);
        drop(kept);
    }

    /// Ends what was lent, and then releases what is kept, if the device was proven to be `at_rest`
    /// or all of the mappings to be gone. Returns whether it did: nothing is kept from then on.
    /// Without a proof the regions that were lent are kept, too.
    pub(crate) fn settle(&self, at_rest: bool) -> bool {
        let mut held = self.lock();
        // In any case: a device at rest keeps no mapping either.
        let revoked = held.revoke();
        held.settled |= at_rest || revoked;
        let settled = held.settled;
        drop(held);
        if settled {
            self.release();
        }
        settled
    }

    /// Whether nothing is lent or kept: there is nothing to be proven.
    pub(crate) fn is_empty(&self) -> bool {
        let held = self.lock();
        held.lent.is_empty() && held.kept.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Ends the mappings. Returns whether the device is proven to reach nothing of what is kept: it
    /// had a mapping, and all have been removed. Keeps their regions if not.
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
            "leaked: it was not proven that the device or peer has let go of this memory"
        );
        mem::take(&mut self.kept).into_iter().for_each(mem::forget);
    }
}

/// A line of the statistics of a port whose device writes into our memory: buffers of queues that
/// have ended, kept until the device is proven to be at rest.
pub(crate) fn quarantined(quarantine: &Quarantine) -> (std::borrow::Cow<'static, str>, u64) {
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

    /// A mapping of a pool, whose end proves something or not.
    fn mapping(pool: &Mempool, proven: bool) -> DmaMapping {
        let region = Arc::clone(pool.region());
        let addresses = IovaMap::virtual_(&region);
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
        // Whether the device is at rest, whether its mappings are gone, and buffers that come back.
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
            // A mapping that has ended without a proof is none later, and another look may be.
            assert_eq!(quarantine.settle(false), expected == 8);
            assert!(quarantine.settle(true) && quarantine.is_empty());
            // Of a queue that outlives its port.
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
