//! Queues of the port: each polls a ring that the control thread inserts and removes as peers
//! connect and disconnect.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use pollux_mempool::{BurstMut, PoolCache};

use super::control::Control;
use super::ended::Ended;
use crate::clock::TscClock;
use crate::driver::{Origin, RxDriver, TxDriver};
use crate::drivers::virtio::{DeviceRx, DeviceTx, DriverRx, DriverTx, LINGER};
use crate::ledger::{Balance, Sent, Tally};
use crate::port::RxState;

/// Slot of one ring. The poll loop never waits for it: while the control thread holds it, the queue
/// behaves as if its link were down.
#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Slot<R, L> {
    /// The slot contains a ring that the loop may use.
    open: AtomicBool,
    /// The peer has corrupted the ring.
    broken: AtomicBool,
    held: Mutex<Held<R, L>>,
}

struct Held<R, L> {
    ring: Option<R>,
    /// Counters of removed rings, which the loop adds to its own.
    last: Option<L>,
}

impl<R, L> Slot<R, L> {
    pub(super) fn new() -> Self {
        Self {
            open: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            held: Mutex::new(Held {
                ring: None,
                last: None,
            }),
        }
    }

    /// For the poll loop, once per burst: two locked instructions, and never a wait.
    #[inline]
    fn enter(&self) -> Option<MutexGuard<'_, Held<R, L>>> {
        // Relaxed, as everywhere here: a hint that the loop must not enter; the lock synchronises.
        if !self.open.load(Ordering::Relaxed) {
            return None;
        }
        self.try_lock()
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Held<R, L>>> {
        match self.held.try_lock() {
            Ok(held) => Some(held),
            // A loop that panicked inside has left a broken ring at worst.
            Err(TryLockError::Poisoned(held)) => Some(held.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// For the control thread: excludes the loop and waits until it has left, which takes one burst
    /// at most. It does not use `lock`: the loop would have to enter the kernel to wake this
    /// thread.
    fn close(&self) -> MutexGuard<'_, Held<R, L>> {
        self.open.store(false, Ordering::Relaxed);
        loop {
            if let Some(held) = self.try_lock() {
                return held;
            }
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    /// Excludes the loop; the ring stays in the slot.
    pub(super) fn pause(&self) {
        drop(self.close());
    }

    /// Inserts a ring.
    pub(super) fn put(&self, ring: R) {
        self.close().ring = Some(ring);
        self.open.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// Removes the ring and its error state: the next peer gets a new ring.
    fn take_ring(&self) -> (MutexGuard<'_, Held<R, L>>, Option<R>) {
        let mut held = self.close();
        self.broken.store(false, Ordering::Relaxed);
        let ring = held.ring.take();
        (held, ring)
    }

    #[cold]
    fn set_broken(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }
}

/// A ring from which frames are received.
pub(super) trait RxRing: Send {
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize;
    fn is_broken(&self) -> bool;
    /// The last call: counts frames that have arrived and will not be received.
    fn finish(&mut self, tally: &mut Tally);
}

/// A ring through which frames are sent.
pub(super) trait TxRing: Send {
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize;
    fn is_broken(&self) -> bool;
    /// The last call: counts the frames in flight.
    fn finish(&mut self, sent: &mut Sent);
}

impl RxRing for DriverRx {
    #[inline]
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        self.rx(cache, out, origin, tally)
    }

    fn is_broken(&self) -> bool {
        self.is_broken()
    }

    fn finish(&mut self, tally: &mut Tally) {
        self.finish(tally);
    }
}

impl TxRing for DriverTx {
    #[inline]
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        self.tx(cache, burst, sent)
    }

    fn is_broken(&self) -> bool {
        self.is_broken()
    }

    fn finish(&mut self, sent: &mut Sent) {
        self.finish(&TscClock::get(), LINGER, sent);
    }
}

/// A device has no frames in flight: frames that it has not taken out of a ring still belong to the
/// driver, and frames that it has put in have been sent.
impl RxRing for DeviceRx {
    #[inline]
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        self.rx(cache, out, origin, tally)
    }

    fn is_broken(&self) -> bool {
        self.is_broken()
    }

    fn finish(&mut self, _tally: &mut Tally) {}
}

impl TxRing for DeviceTx {
    #[inline]
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        self.tx(cache, burst, sent)
    }

    fn is_broken(&self) -> bool {
        self.is_broken()
    }

    fn finish(&mut self, _sent: &mut Sent) {}
}

pub(super) type RxSlot<R> = Slot<R, Balance>;
pub(super) type TxSlot<R> = Slot<R, Sent>;

impl<R: RxRing> RxSlot<R> {
    /// Removes the ring.
    pub(super) fn take(&self) -> Option<R> {
        let (mut held, ring) = self.take_ring();
        let mut ring = ring?;
        let mut tally = Tally::new();
        ring.finish(&mut tally);
        let last = held.last.get_or_insert_default();
        last.add(&tally.view().balance());
        Some(ring)
    }
}

impl<R: TxRing> TxSlot<R> {
    /// Removes the ring.
    pub(super) fn take(&self) -> Option<R> {
        let (mut held, ring) = self.take_ring();
        let mut ring = ring?;
        ring.finish(held.last.get_or_insert_default());
        Some(ring)
    }
}

/// Checks that the rings are valid: called by the control thread at intervals.
pub(super) fn watch<R, T>(rx: &[Arc<RxSlot<R>>], tx: &[Arc<TxSlot<T>>]) -> Result<(), Ended> {
    if rx.iter().any(|slot| slot.is_broken()) || tx.iter().any(|slot| slot.is_broken()) {
        return Err(Ended::Violation("what a ring says makes no sense".into()));
    }
    Ok(())
}

/// A receive queue.
#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Rx<R> {
    pub(super) slot: Arc<RxSlot<R>>,
    pub(super) control: Arc<Control>,
}

fn add_received(last: &mut Option<Balance>, tally: &mut Tally) {
    let Some(last) = last.take() else { return };
    tally.count_from_wire(last.from_wire, last.bytes);
    for (cause, frames) in last.drops() {
        tally.count_dropped(cause, frames);
    }
}

impl<R: RxRing> RxDriver for Rx<R> {
    #[inline]
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        let Some(mut held) = self.slot.enter() else {
            return 0;
        };
        let Held { ring, last } = &mut *held;
        add_received(last, tally);
        let Some(ring) = ring else { return 0 };
        let n = ring.rx(cache, out, origin, tally);
        if n == 0 && ring.is_broken() {
            self.slot.set_broken();
        }
        n
    }

    fn state(&self) -> RxState {
        if self.slot.is_open() {
            RxState::Live
        } else {
            RxState::Down
        }
    }

    fn finish(&mut self, tally: &mut Tally) {
        self.control.stop();
        add_received(&mut self.slot.close().last, tally);
    }
}

/// A transmit queue.
#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Tx<R> {
    pub(super) slot: Arc<TxSlot<R>>,
    pub(super) control: Arc<Control>,
}

fn add_sent(last: &mut Option<Sent>, sent: &mut Sent) {
    let Some(last) = last.take() else { return };
    let last = last.view();
    sent.count(last.packets(), last.bytes());
    sent.count_errors(last.errors());
}

impl<R: TxRing> TxDriver for Tx<R> {
    #[inline]
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        let Some(mut held) = self.slot.enter() else {
            return 0;
        };
        let Held { ring, last } = &mut *held;
        add_sent(last, sent);
        let Some(ring) = ring else { return 0 };
        let n = ring.tx(cache, burst, sent);
        if n == 0 && ring.is_broken() {
            self.slot.set_broken();
        }
        n
    }

    fn finish(&mut self, sent: &mut Sent) {
        // While the peer can still take the frames in flight.
        if let Some(mut held) = self.slot.enter()
            && let Some(ring) = &mut held.ring
        {
            ring.finish(sent);
        }
        self.control.stop();
        add_sent(&mut self.slot.close().last, sent);
    }
}
