//! What the queues ask of the device: tails, link, losses, vectors, rest.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::counters::Counters;
use super::nic::Nic;
use super::registers::{IMC, IMS, IMS_RXQ0, IMS_RXQ1, RDFPC, RDT, TDT};
use super::setup;
use crate::bus::{Bus, Device, Interrupts};
use crate::drivers::intel::counters::Losses;
use crate::drivers::intel::rx::RxControl;
use crate::drivers::intel::tx::TxControl;
use crate::ledger::{Cause, Tally};
use crate::port::{RxState, SharedRxState};

/// More frames than the packet buffer of 40 KiB holds: the register of a device that is gone.
const MOST_WAITING: u32 = 640;

/// The device, as a receive queue sees it.
pub(super) struct RxQueue<D: Device> {
    pub(super) nic: Nic<D>,
    pub(super) queue: usize,
    pub(super) state: SharedRxState,
    /// Whether there are two of them.
    pub(super) shared: bool,
    pub(super) counters: Arc<Counters>,
    /// Of losses, which the device counts for both queues: the first tells.
    pub(super) losses: Losses,
    /// The vector of this queue has its number.
    pub(super) interrupts: Option<Arc<Interrupts>>,
}

impl<D: Device> RxQueue<D> {
    fn cause(&self) -> u32 {
        [IMS_RXQ0, IMS_RXQ1][self.queue.min(1)]
    }
}

impl<D: Device> RxControl for RxQueue<D> {
    #[inline]
    fn set_tail(&self, slot: u32) {
        self.nic.bus.write32(RDT.of(self.queue), slot);
    }

    fn state(&self) -> RxState {
        self.state.get()
    }

    /// A receive queue has no switch of its own: the flows of one of two go to the other.
    fn disable(&self) {
        if self.shared {
            setup::share_to(&self.nic.bus, 1 - self.queue.min(1));
        }
    }

    fn count_losses(&mut self, tally: &mut Tally) {
        if self.queue == 0 {
            self.losses
                .tell(&self.counters.single, &self.nic.bus, tally);
        }
    }

    fn count_left(&self, tally: &mut Tally) {
        if self.queue == 0 {
            let left = self.nic.bus.read32(RDFPC.at);
            let left = u64::from(if left > MOST_WAITING { 0 } else { left });
            tally.count_from_wire(left, 0);
            tally.count_dropped(Cause::Aborted, left);
        }
    }

    fn event(&self) -> Option<BorrowedFd<'_>> {
        self.interrupts.as_ref()?.event(self.queue as u16)
    }

    fn arm(&self) {
        // A cause that came while it was masked signals at once (section 7.4).
        self.nic.bus.write32(IMS.at, self.cause());
    }

    fn disarm(&self) {
        self.nic.bus.write32(IMC.at, self.cause());
    }
}

/// The device, as a transmit queue sees it.
pub(super) struct TxQueue<D: Device> {
    pub(super) nic: Nic<D>,
    pub(super) queue: usize,
}

impl<D: Device> TxControl for TxQueue<D> {
    #[inline]
    fn set_tail(&self, slot: u32) {
        self.nic.bus.write32(TDT.of(self.queue), slot);
    }

    fn disable(&self) {
        setup::disable_tx_ring(&self.nic.bus, self.queue);
    }
}
