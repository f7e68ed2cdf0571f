//! Poll loop of a capture: moves frames from a receive queue to the ring of the writer, without
//! waiting for the writer.

use std::sync::Arc;

use pollux_pmd::lcore::StopFlag;
use pollux_pmd::mempool::{Burst, MbufProducer, PoolCache};
use pollux_pmd::{Cause, Clock, Count, RxQueue, Tally, TallyView, TscClock};

use super::filter::Filter;
use crate::frame_budget::FrameBudget;
use crate::ticker::Ticker;

/// Burst size.
const BURST: usize = 64;

/// Counters in addition to the ledger.
#[derive(Default)]
pub(super) struct Counts {
    /// Frames that the filter accepted.
    pub(super) accepted: Count,
    /// Frames that the filter rejected.
    pub(super) filtered: Count,
    /// Frames dropped because the ring to the writer was full.
    pub(super) lost: Count,
}

/// Poll loop, with the resources that it owns.
pub(super) struct Receiver {
    pub(super) rx: Vec<RxQueue>,
    pub(super) ring: MbufProducer,
    pub(super) cache: PoolCache,
    pub(super) filter: Option<Filter>,
    pub(super) budget: Option<Arc<FrameBudget>>,
    /// Frames can wait: the source is a recording.
    pub(super) patient: bool,
    pub(super) stop: StopFlag,
    pub(super) tally: Tally,
    pub(super) counts: Arc<Counts>,
}

impl Receiver {
    pub(super) fn tally(&self) -> TallyView {
        self.tally.view()
    }

    /// Polls until the stop flag is set, all queues have ended, or the frame budget is used up.
    /// Returns the queues.
    pub(super) fn run(mut self) -> Vec<RxQueue> {
        let clock = TscClock::get();
        let mut ticker = Ticker::for_counters(clock);
        let (mut burst, mut wanted) = (Burst::<BURST>::new(), Burst::<BURST>::new());
        while !self.stop.is_set() && !self.is_done() {
            let mut received = 0;
            for queue in 0..self.rx.len() {
                received += self.rx[queue].rx(&mut self.cache, &mut burst);
                if self.filter.is_some() {
                    self.choose(&mut burst, &mut wanted);
                    self.hand_over(&mut wanted, clock);
                } else {
                    self.hand_over(&mut burst, clock);
                }
            }
            if received == 0 {
                if self.rx.iter().all(|queue| queue.state().is_final()) {
                    break;
                }
                clock.relax();
            }
            if ticker.is_due() {
                self.rx.iter_mut().for_each(RxQueue::sync_counters);
            }
        }
        self.rx.iter_mut().for_each(RxQueue::sync_counters);
        self.rx
    }

    fn is_done(&self) -> bool {
        self.budget
            .as_ref()
            .is_some_and(|budget| budget.is_used_up())
    }

    /// Moves the frames that the filter accepts, and drops the others.
    #[inline]
    fn choose(&mut self, burst: &mut Burst<BURST>, wanted: &mut Burst<BURST>) {
        let Some(filter) = &self.filter else { return };
        let (tally, cache) = (&mut self.tally, &mut self.cache);
        let mut left_out = 0;
        burst.take_all(|frame| match filter.judge(&frame) {
            // It fits: both bursts have the same capacity.
            Ok(()) => drop(wanted.push(frame)),
            Err(cause) => {
                tally.count_dropped(cause, 1);
                cache.free(frame);
                left_out += 1;
            }
        });
        self.counts.filtered.add(left_out);
    }

    /// Puts frames into the ring. Frames that do not fit are dropped, unless they can wait.
    #[inline]
    fn hand_over(&mut self, wanted: &mut Burst<BURST>, clock: TscClock) {
        let n = wanted.len();
        if n == 0 {
            return;
        }
        let granted = self.budget.as_ref().map_or(n, |budget| budget.claim(n));
        let mut moved = self.ring.push_front(&mut wanted.as_mut(), granted);
        while self.patient && moved < granted && !self.stop.is_set() {
            clock.relax();
            moved += self.ring.push_front(&mut wanted.as_mut(), granted - moved);
        }
        if let Some(budget) = &self.budget {
            budget.settle(granted, moved);
        }
        self.counts.accepted.add(granted as u64);
        if wanted.is_empty() {
            return;
        }
        let lost = (granted - moved) as u64;
        self.counts.lost.add(lost);
        self.tally.count_dropped(Cause::RingFull, lost);
        // More than the requested number.
        self.tally
            .count_dropped(Cause::Aborted, (n - granted) as u64);
        self.cache.free_burst(wanted);
    }
}
