//! Queues: values that a poll loop owns.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use pollux_mempool::time::Tsc;
use pollux_mempool::{Burst, PoolCache};

use super::state::RxState;
use crate::arrival::{ArrivalTime, Waited};
use crate::driver::{Origin, RxDriver, TxDriver};
use crate::ledger::{Sent, SentView, Tally, TallyView};

/// One start of one port in this process. What belongs together has the same: numbers of ports are
/// for people, begin again after 65 536 of them, and pass through drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run(u64);

impl Run {
    pub(super) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Relaxed: a number of its own, which orders nothing.
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A receive queue, owned by one poll loop.
pub struct RxQueue {
    pub(super) driver: Box<dyn RxDriver>,
    pub(super) run: Run,
    pub(super) tally: Tally,
    pub(super) origin: Origin,
    /// What charges its frames for gaps between polls, where nothing better is known.
    pub(super) waited: Option<Waited>,
}

impl RxQueue {
    /// Adds frames that have arrived to the burst, as many as fit, and returns how many. Never
    /// waits. Buffers for drivers that copy are taken from `cache`.
    #[inline]
    pub fn rx<const N: usize>(&mut self, cache: &mut PoolCache, burst: &mut Burst<N>) -> usize {
        self.driver.rx(
            cache,
            &mut burst.as_mut(),
            &mut self.origin,
            &mut self.tally,
        )
    }

    /// As [`rx`](Self::rx), but takes no more than `n` frames.
    #[inline]
    pub fn rx_up_to<const N: usize>(
        &mut self,
        cache: &mut PoolCache,
        burst: &mut Burst<N>,
        n: usize,
    ) -> usize {
        self.driver.rx(
            cache,
            &mut burst.up_to(n),
            &mut self.origin,
            &mut self.tally,
        )
    }

    /// As [`rx_up_to`](Self::rx_up_to), for a loop that answers within a time: `now` is when its
    /// round began, on the clock. Where neither a device nor the kernel tells when frames
    /// [arrived](pollux_mempool::Mbuf::arrival), it is when the poll took them. If the queue has not been polled for
    /// more than 50 us, those that can have waited for so long are charged for it: their arrival is
    /// the last poll before. That is the earliest that it can have been; no frame looks fresher than
    /// it is. Poll a queue in this way always, or never.
    #[inline]
    pub fn rx_at<const N: usize>(
        &mut self,
        now: Tsc,
        cache: &mut PoolCache,
        burst: &mut Burst<N>,
        n: usize,
    ) -> usize {
        let before = burst.len();
        let asked = n.min(burst.free());
        let taken = self.rx_up_to(cache, burst, n);
        if let Some(waited) = &mut self.waited {
            waited.charge(now, asked, &mut burst[before..]);
        }
        taken
    }

    /// Where the [arrival](pollux_mempool::Mbuf::arrival) of its frames comes from.
    #[must_use]
    pub fn arrival_time(&self) -> ArrivalTime {
        self.driver.arrival_time()
    }

    /// Whether the queue can still yield frames. Cheap, but for the loop's idle rounds.
    #[must_use]
    pub fn state(&self) -> RxState {
        self.driver.state()
    }

    /// Reads counters that live outside the process (the kernel's drops) into the ledger. May
    /// enter the kernel: for housekeeping, not for each poll.
    pub fn sync_counters(&mut self) {
        self.driver.sync_counters(&mut self.tally);
    }

    /// What a loop can sleep on until frames come, if it [arms](Self::arm) the queue: a file that
    /// becomes readable, to be waited for by its edges ([`Idle`](crate::lcore::idle::Idle)), as
    /// only a poll of the queue makes that of a socket unreadable again. `None` if the device cannot
    /// wake anybody.
    #[must_use]
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.driver.event()
    }

    /// Has the device signal the [`event`](Self::event), once, when it has frames, or if some came
    /// since the last time. Poll once more after this, then sleep.
    pub fn arm(&mut self) {
        self.driver.arm();
    }

    /// Has the device leave the event alone.
    pub fn disarm(&mut self) {
        self.driver.disarm();
    }

    /// The ledger's view of this queue.
    #[must_use]
    pub fn tally(&self) -> TallyView {
        self.tally.view()
    }

    /// Port that the queue belongs to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.origin.port
    }

    /// Number of the queue on its port.
    #[must_use]
    pub fn queue(&self) -> u16 {
        self.origin.queue
    }
}

/// A transmit queue, owned by one poll loop.
pub struct TxQueue {
    pub(super) driver: Box<dyn TxDriver>,
    pub(super) run: Run,
    pub(super) sent: Sent,
    pub(super) port: u16,
    pub(super) queue: u16,
}

impl TxQueue {
    /// Takes frames out of the front of the burst and sends them, as many as the device has room
    /// for; the rest stays with the caller. Returns how many were taken. Buffers that are done
    /// with go to `cache`.
    #[inline]
    pub fn tx<const N: usize>(&mut self, cache: &mut PoolCache, burst: &mut Burst<N>) -> usize {
        self.driver.tx(cache, &mut burst.as_mut(), &mut self.sent)
    }

    /// What the queue has sent.
    #[must_use]
    pub fn sent(&self) -> SentView {
        self.sent.view()
    }

    /// Port that the queue belongs to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Number of the queue on its port.
    #[must_use]
    pub fn queue(&self) -> u16 {
        self.queue
    }
}
