//! Queues with a hostile kernel, whose part the caller plays: for tests and fuzzing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use libc::tpacket2_hdr;
use pollux_mempool::{BurstMut, PoolCache};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::ring::{Geometry, Ring};
use super::rx::{Rx, Source, trusted_status};
use super::socket::Socket;
use super::tx::Tx;
use crate::arrival::Line;
use crate::clock::{Clock, TscClock};
use crate::driver::{Origin, RxDriver, TxDriver};
use crate::drivers::interface::{Control, Interface, Watch};
use crate::ledger::{Sent, Tally};
use crate::port::RxState;

/// Slots of each ring.
const SLOTS: usize = 4;

/// Longest frame that the interface carries, with its header.
const FRAME: usize = 1518;

/// A ring in plain memory, an unbound socket, a link that is up, and the size of a slot in bytes;
/// `None` without the privilege to open a packet socket.
fn parts() -> Option<(Ring, Socket, Arc<Watch>, usize)> {
    let socket = Socket::new().ok()?;
    let geometry = Geometry::new(SLOTS, FRAME);
    let memory = memfd_create("ring", MemfdFlags::CLOEXEC).ok()?;
    ftruncate(&memory, geometry.bytes() as u64).ok()?;
    let control = Control::new().ok()?;
    let lo = Interface::find(&control, "lo").ok()?;
    let link = Arc::new(Watch::new(control, lo));
    let ring = Ring::map(memory, geometry).ok()?;
    Some((ring, socket, link, geometry.bytes() / SLOTS))
}

/// A receive queue over an untrusted ring.
pub struct HostileRing(Rx);

impl HostileRing {
    /// Longest frame that a slot can hold, plus the tag that may be inserted.
    pub const LONGEST: usize = 2048 + 4;

    /// The queue; `None` without the privilege to open a packet socket.
    #[must_use]
    pub fn new() -> Option<Self> {
        Self::of_kernel("6.2")
    }

    /// The queue, as with a kernel of that release.
    #[must_use]
    pub fn of_kernel(release: &str) -> Option<Self> {
        let (ring, socket, link, slot) = parts()?;
        let clock = TscClock::get();
        Some(Self(Rx {
            ring,
            source: Source::new(socket),
            counted: 0,
            next: 0,
            scratch: vec![0; slot].into(),
            hardware_stamps: false,
            trusted: trusted_status(release),
            line: Line::of_kernel(clock),
            link,
            state: RxState::Live,
            clock,
            watch_at: clock.now(),
        }))
    }

    /// Fills the slot that the queue reads next, as the kernel does: first the header, then the
    /// status, which always passes the slot to the program.
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

    /// Whether the kernel owns all slots.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        (0..SLOTS).all(|slot| self.0.ring.status(slot).load(Ordering::Relaxed) == 0)
    }
}

/// A transmit queue over an untrusted ring.
pub struct HostileTxRing(Tx);

impl HostileTxRing {
    /// Maximum number of frames in flight.
    pub const SLOTS: usize = SLOTS;

    /// The queue; `None` without the privilege to open a packet socket.
    #[must_use]
    pub fn new() -> Option<Self> {
        let (ring, socket, link, _) = parts()?;
        Some(Self(Tx::new(ring, socket, FRAME - 18, link)))
    }

    /// Writes any status into any slot.
    pub fn set_status(&mut self, slot: usize, status: u32) {
        let slot = slot % SLOTS;
        self.0.ring.status(slot).store(status, Ordering::Release);
    }

    /// Sends.
    pub fn tx(
        &mut self,
        cache: &mut PoolCache,
        burst: &mut BurstMut<'_>,
        sent: &mut Sent,
    ) -> usize {
        self.0.tx(cache, burst, sent)
    }
}
