//! Receive and transmit queues, each owned by a poll loop.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use pollux_mempool::time::Tsc;
use pollux_mempool::{Burst, PoolCache};

use super::state::RxState;
use crate::arrival::{ArrivalTime, Waited};
use crate::driver::{Origin, RxDriver, TxDriver};
use crate::ledger::{Sent, SentView, Tally, TallyView};

/// Identifies one start of one port in this process; all its queues have the same. Port numbers do
/// not identify it: they wrap after 65 536 ports, and drivers can change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run(u64);

impl Run {
    pub(super) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Relaxed: a unique number, which orders nothing.
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Bytes that one access of a core may bring into its cache: processors fetch lines of 64 bytes in
/// pairs.
const CACHE_LINES: usize = align_of::<CachePadded<u8>>();

/// A receive queue, owned by one poll loop.
#[repr(align(128))] // as CachePadded: no line shared with another loop
pub struct RxQueue {
    pub(super) driver: Box<dyn RxDriver>,
    pub(super) run: Run,
    pub(super) tally: Tally,
    pub(super) origin: Origin,
    /// Charges frames for gaps between polls, where the driver has no better arrival time.
    pub(super) waited: Option<Waited>,
    pub(super) core: Option<usize>,
}

impl RxQueue {
    /// Adds arrived frames to the burst, as many as fit, and returns their number. Never waits.
    /// Drivers that copy take buffers from `cache`.
    #[inline]
    pub fn rx<const N: usize>(&mut self, cache: &mut PoolCache, burst: &mut Burst<N>) -> usize {
        self.driver.rx(
            cache,
            &mut burst.as_mut(),
            &mut self.origin,
            &mut self.tally,
        )
    }

    /// As [`rx`](Self::rx), for at most `n` frames.
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

    /// As [`rx_up_to`](Self::rx_up_to), for a loop with a latency budget; `now` is the start of the
    /// loop's iteration. Where neither the device nor the kernel stamps frames, their [arrival
    /// time](pollux_mempool::Mbuf::arrival) is the time of the poll. If the queue was not polled
    /// for more than 50 us, frames that may have waited since the gap began get the last poll
    /// before the gap as their arrival time. That is the earliest possible time, so no frame looks
    /// younger than it is. Use this method for every poll of a queue, or for none.
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

    /// Source of the [arrival time](pollux_mempool::Mbuf::arrival) of its frames.
    #[must_use]
    pub fn arrival_time(&self) -> ArrivalTime {
        self.driver.arrival_time()
    }

    /// Whether the queue can still yield frames. Cheap, but meant for the loop's idle iterations.
    #[must_use]
    pub fn state(&self) -> RxState {
        self.driver.state()
    }

    /// Reads counters from outside the process (losses that the device or the kernel counts) into the
    /// ledger. May enter the kernel, or read registers: for housekeeping, not for each poll.
    pub fn sync_counters(&mut self) {
        self.driver.sync_counters(&mut self.tally);
    }

    /// File descriptor on which a loop can sleep once it has [armed](Self::arm) the queue. It
    /// becomes readable when frames arrive. Wait for it edge-triggered
    /// ([`Idle`](crate::lcore::idle::Idle)): a socket stays readable until the queue is polled.
    /// `None` if the device cannot signal.
    #[must_use]
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.driver.event()
    }

    /// Makes the device signal the [`event`](Self::event) once: when it has frames, or if frames
    /// arrived since the last signal. Poll once more after this call, then sleep.
    pub fn arm(&mut self) {
        self.driver.arm();
    }

    /// Stops the device from signalling the event.
    pub fn disarm(&mut self) {
        self.driver.disarm();
    }

    /// View of this queue's counters for a ledger.
    #[must_use]
    pub fn tally(&self) -> TallyView {
        self.tally.view()
    }

    /// Number of the port that the queue belongs to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.origin.port
    }

    /// Number of the queue on its port.
    #[must_use]
    pub fn queue(&self) -> u16 {
        self.origin.queue
    }

    /// CPU for its poll loop, as [configured](crate::QueueConfig::core).
    #[must_use]
    pub fn core(&self) -> Option<usize> {
        self.core
    }

    /// Whether the driver's state of the queue shares no cache line with other memory, so that loops
    /// on other cores do not slow its loop down: for tests of drivers.
    #[must_use]
    pub fn is_padded(&self) -> bool {
        is_padded(&*self.driver)
    }
}

/// A transmit queue, owned by one poll loop.
#[repr(align(128))] // as CachePadded: no line shared with another loop
pub struct TxQueue {
    pub(super) driver: Box<dyn TxDriver>,
    pub(super) run: Run,
    pub(super) sent: Sent,
    pub(super) port: u16,
    pub(super) queue: u16,
    pub(super) core: Option<usize>,
}

/// Queues stand side by side in vectors, and their loops on different cores.
const _: () = assert!(align_of::<RxQueue>() >= CACHE_LINES && align_of::<TxQueue>() >= CACHE_LINES);

fn is_padded<T: ?Sized>(driver: &T) -> bool {
    align_of_val(driver) >= CACHE_LINES
}

impl TxQueue {
    /// Sends frames from the front of the burst, as many as the queue has descriptors for; frames
    /// that do not fit remain in the burst. Returns the number of frames taken. Completed buffers
    /// go to `cache`.
    #[inline]
    pub fn tx<const N: usize>(&mut self, cache: &mut PoolCache, burst: &mut Burst<N>) -> usize {
        self.driver.tx(cache, &mut burst.as_mut(), &mut self.sent)
    }

    /// Frames that the queue took and the device refused, as far as it has said: a capture that cannot be
    /// written, for instance. As `errors` of [`sent`](Self::sent), for the loop that sends.
    #[inline]
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.sent.errors()
    }

    /// View of the queue's count of sent frames.
    #[must_use]
    pub fn sent(&self) -> SentView {
        self.sent.view()
    }

    /// Number of the port that the queue belongs to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Number of the queue on its port.
    #[must_use]
    pub fn queue(&self) -> u16 {
        self.queue
    }

    /// CPU for its poll loop, as [configured](crate::QueueConfig::core).
    #[must_use]
    pub fn core(&self) -> Option<usize> {
        self.core
    }

    /// As [`RxQueue::is_padded`].
    #[must_use]
    pub fn is_padded(&self) -> bool {
        is_padded(&*self.driver)
    }
}
