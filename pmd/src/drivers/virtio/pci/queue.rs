//! Queues of a started port.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use pollux_mempool::time::Ns;
use pollux_mempool::{BurstMut, PoolCache};

use super::notify::NotifyRegister;
use super::running::Running;
use crate::bus::Device;
use crate::driver::{Origin, RxDriver, TxDriver};
use crate::drivers::virtio::{DriverRx, DriverTx, LINGER};
use crate::ledger::{Sent, Tally};
use crate::port::RxState;

/// A receive queue.
#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Rx<D: Device> {
    pub(super) ring: DriverRx<NotifyRegister<D::Bus>>,
    /// Interrupt vector of the queue, if it has one.
    pub(super) vector: Option<u16>,
    pub(super) running: Arc<Running<D>>,
}

impl<D: Device> RxDriver for Rx<D> {
    #[inline]
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        let was_broken = self.ring.is_broken();
        let n = self.ring.rx(cache, out, origin, tally);
        if self.ring.is_broken() && !was_broken {
            self.running.count_broken_queue();
        }
        n
    }

    fn state(&self) -> RxState {
        if self.running.is_gone() {
            RxState::Gone
        } else if self.running.is_live() && !self.ring.is_broken() {
            RxState::Live
        } else {
            RxState::Down
        }
    }

    fn event(&self) -> Option<BorrowedFd<'_>> {
        self.vector.and_then(|vector| self.running.event(vector))
    }

    fn arm(&mut self) {
        self.ring.set_listening(true);
    }

    fn disarm(&mut self) {
        self.ring.set_listening(false);
    }

    fn finish(&mut self, tally: &mut Tally) {
        self.ring.finish(tally);
    }
}

/// A single queue of a device cannot be stopped: the device continues to use its buffers, as do the
/// other queues.
impl<D: Device> Drop for Rx<D> {
    fn drop(&mut self) {
        self.running.park(self.ring.take_posted());
    }
}

/// A transmit queue.
#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Tx<D: Device> {
    pub(super) ring: DriverTx<NotifyRegister<D::Bus>>,
    pub(super) running: Arc<Running<D>>,
}

impl<D: Device> TxDriver for Tx<D> {
    #[inline]
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        // The outcome of frames that are given to a dead device is unknown.
        if !self.running.is_live() {
            return 0;
        }
        let was_broken = self.ring.is_broken();
        let n = self.ring.tx(cache, burst, sent);
        if self.ring.is_broken() && !was_broken {
            self.running.count_broken_queue();
        }
        n
    }

    fn finish(&mut self, sent: &mut Sent) {
        // A device that is gone takes no more frames.
        let patience = if self.running.look() { LINGER } else { Ns(0) };
        self.ring.finish(&self.running.clock(), patience, sent);
    }
}

/// As for [`Rx`].
impl<D: Device> Drop for Tx<D> {
    fn drop(&mut self) {
        self.running.park(self.ring.take_posted());
    }
}
