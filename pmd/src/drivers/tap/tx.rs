//! Transmit side: one system call for each frame.

use std::io::IoSlice;
use std::sync::Arc;

use pollux_mempool::time::Ns;
use pollux_mempool::{BurstMut, Mbuf, PoolCache};
use rustix::io::Errno;

use super::limits::{ETHERNET, MAX_SEGMENTS, TAG};
use super::queue::Queue;
use crate::clock::{Timeout, TscClock};
use crate::driver::TxDriver;
use crate::drivers::interface::Watch;
use crate::ledger::Sent;

/// Delay before transmission is retried while the interface is down.
const PAUSE: Ns = Ns(10_000_000);

#[repr(align(128))] // as CachePadded: no line shared with another loop
pub(super) struct Tx {
    queue: Arc<Queue>,
    watch: Arc<Watch>,
    /// Longest frame, in bytes.
    longest: usize,
    clock: TscClock,
    /// Time before the next request to the kernel; `None`: no delay.
    paused: Option<Timeout>,
}

/// Outcome of sending a frame.
enum End {
    Sent,
    /// The kernel will never accept it.
    Refused,
    /// The kernel has no space, or the interface is down: retry later.
    NotNow,
}

impl Tx {
    pub(super) fn new(queue: Arc<Queue>, watch: Arc<Watch>, mtu: usize) -> Self {
        Self {
            queue,
            watch,
            longest: mtu + ETHERNET + TAG,
            clock: TscClock::get(),
            paused: None,
        }
    }

    fn send(&mut self, mbuf: &Mbuf) -> End {
        let segments = mbuf.segment_count();
        if !(ETHERNET..=self.longest).contains(&mbuf.total_len()) || segments > MAX_SEGMENTS {
            return End::Refused;
        }
        let mut from = mbuf.segments();
        let next = |_| IoSlice::new(from.next().unwrap_or_default());
        let slices: [IoSlice<'_>; MAX_SEGMENTS] = std::array::from_fn(next);
        match self.queue.write(&slices[..segments]) {
            Ok(_) => End::Sent,
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS | Errno::NOMEM) => End::NotNow,
            // The interface is down (tun_get_user).
            Err(Errno::IO) => {
                self.pause();
                End::NotNow
            }
            Err(_) => End::Refused,
        }
    }

    fn is_paused(&mut self) -> bool {
        if let Some(paused) = &mut self.paused {
            if !paused.is_over(&self.clock) {
                return true;
            }
            self.paused = None;
        }
        false
    }

    #[cold]
    fn pause(&mut self) {
        self.watch.look();
        self.paused = Some(Timeout::new(&self.clock, PAUSE));
    }
}

impl TxDriver for Tx {
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        if self.is_paused() {
            return 0;
        }
        let (mut taken, mut frames, mut bytes) = (0, 0, 0);
        for mbuf in burst.as_slice() {
            match self.send(mbuf) {
                End::Sent => {
                    frames += 1;
                    bytes += mbuf.total_len() as u64;
                }
                End::Refused => {}
                End::NotNow => break,
            }
            taken += 1;
        }
        sent.count(frames, bytes);
        sent.count_errors(taken as u64 - frames);
        cache.free_front(burst, taken);
        taken
    }
}
