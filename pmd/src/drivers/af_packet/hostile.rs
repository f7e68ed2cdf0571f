//! A receive queue for which the caller plays the kernel, badly: for tests and fuzzing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use libc::tpacket2_hdr;
use pollux_mempool::{BurstMut, PoolCache};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::interface::{Control, Interface, Link};
use super::ring::{Geometry, Ring};
use super::rx::Rx;
use super::socket::Socket;
use crate::clock::{Clock, TscClock};
use crate::driver::{Origin, RxDriver};
use crate::ledger::Tally;
use crate::port::RxState;

/// A queue over a ring of which nothing can be trusted.
pub struct HostileRing(Rx);

impl HostileRing {
    /// Slots of the ring.
    pub const SLOTS: usize = 4;

    /// Longest frame that a slot can hold, and the tag that may be put into it.
    pub const LONGEST: usize = 2048 + 4;

    /// A queue whose ring is plain memory; `None` without the right to open a packet socket.
    #[must_use]
    pub fn new() -> Option<Self> {
        let socket = Socket::new().ok()?;
        let geometry = Geometry::new(Self::SLOTS, 1518);
        let memory = memfd_create("ring", MemfdFlags::CLOEXEC).ok()?;
        ftruncate(&memory, geometry.bytes() as u64).ok()?;
        let control = Control::new().ok()?;
        let lo = Interface::find(&control, "lo").ok()?;
        let clock = TscClock::get();
        Some(Self(Rx {
            ring: Ring::map(memory, geometry).ok()?,
            socket,
            next: 0,
            scratch: vec![0; geometry.bytes() / Self::SLOTS].into(),
            hardware_stamps: false,
            link: Arc::new(Link::new(control, lo)),
            state: RxState::Live,
            clock,
            watch_at: clock.now(),
        }))
    }

    /// Fills the slot that the queue looks at next, as the kernel does: its header, then its
    /// status, which always says that the slot is the program's.
    pub fn post(&mut self, header: &tpacket2_hdr) {
        let Rx { ring, next, .. } = &self.0;
        ring.put_header(*next, header);
        let status = header.tp_status | libc::TP_STATUS_USER;
        ring.status(*next).store(status, Ordering::Release);
    }

    /// Polls the queue.
    pub fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        self.0.rx(cache, out, origin, tally)
    }

    /// Whether all slots are the kernel's.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        (0..Self::SLOTS).all(|slot| self.0.ring.status(slot).load(Ordering::Relaxed) == 0)
    }
}
