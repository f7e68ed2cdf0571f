//! Forwarding poll loop: from receive queues to transmit queues.

use std::sync::Arc;

use pollux_pmd::lcore::StopFlag;
use pollux_pmd::lcore::idle::{Idle, IdleError, IdlePolicy};
use pollux_pmd::mempool::time::Ns;
use pollux_pmd::mempool::{Burst, PoolCache};
use pollux_pmd::{Cause, Clock, Count, RxQueue, Tally, TallyView, TscClock, TxQueue};

use super::swap::Mode;
use crate::frame_budget::FrameBudget;
use crate::ticker::Ticker;

/// Pause between two attempts on a full transmit queue.
const PAUSE: Ns = Ns(1000);

/// Longest sleep of an idle loop; it then checks the stop flag.
const SLEEP: Ns = Ns(1_000_000);

/// Idle rounds between two calls of a driver that may hold frames: many, so that the calls cost
/// nothing.
const KICK: u32 = 1024;

/// A receive queue and the transmit queue that it feeds.
pub(super) struct Lane {
    pub(super) rx: RxQueue,
    pub(super) tx: TxQueue,
}

/// Counters in addition to the ledger.
#[derive(Default)]
pub(super) struct Counts {
    /// Attempts to send the rest of a burst.
    pub(super) retries: Count,
}

/// Poll loop, with the resources that it owns.
pub(super) struct Forwarder {
    pub(super) lanes: Vec<Lane>,
    pub(super) cache: PoolCache,
    pub(super) mode: Mode,
    /// Number of repeated attempts for the rest of a burst.
    pub(super) retries: u32,
    pub(super) budget: Option<Arc<FrameBudget>>,
    pub(super) stop: StopFlag,
    tally: Tally,
    counts: Arc<Counts>,
    clock: TscClock,
    idle: Idle,
}

impl Forwarder {
    pub(super) fn new(
        lanes: Vec<Lane>,
        cache: PoolCache,
        mode: Mode,
        retries: u32,
        budget: Option<Arc<FrameBudget>>,
        stop: StopFlag,
        idle: IdlePolicy,
    ) -> Result<Self, IdleError> {
        let idle = Idle::new(idle, SLEEP, lanes.iter().map(|lane| &lane.rx))?;
        Ok(Self {
            idle,
            lanes,
            cache,
            mode,
            retries,
            budget,
            stop,
            tally: Tally::new(),
            counts: Arc::default(),
            clock: TscClock::get(),
        })
    }

    pub(super) fn tally(&self) -> TallyView {
        self.tally.view()
    }

    pub(super) fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// Polls until the stop flag is set, all queues have ended, or the frame budget is used up.
    /// Moves up to `N` frames at once. Returns the queues.
    pub(super) fn run<const N: usize>(mut self) -> Vec<Lane> {
        let mut lanes = std::mem::take(&mut self.lanes);
        self.work::<N>(&mut lanes);
        lanes
    }

    fn work<const N: usize>(&mut self, lanes: &mut [Lane]) {
        let mut burst = Burst::<N>::new();
        let mut ticker = Ticker::for_counters(self.clock);
        let (mut live, mut idle) = (true, 0_u32);
        while live && !self.stop.is_set() && !self.is_done() {
            live = false;
            let mut received = 0;
            for lane in &mut *lanes {
                let n = self.forward(lane, &mut burst);
                received += n;
                live |= n > 0 || !lane.rx.state().is_final();
            }
            if received == 0 {
                idle += 1;
                if idle.is_multiple_of(KICK) {
                    // An empty burst makes the driver send frames that the kernel refused before.
                    for lane in &mut *lanes {
                        lane.tx.tx(&mut self.cache, &mut burst);
                    }
                }
            } else {
                idle = 0;
            }
            let queues = lanes.iter_mut().map(|lane| &mut lane.rx);
            if received == 0 {
                self.idle.rest(&self.clock, queues);
            } else {
                self.idle.worked(queues);
            }
            if ticker.is_due() {
                sync(lanes);
            }
        }
        sync(lanes);
    }

    fn is_done(&self) -> bool {
        self.budget
            .as_ref()
            .is_some_and(|budget| budget.is_used_up())
    }

    /// Moves one burst; returns the number of received frames.
    #[inline]
    fn forward<const N: usize>(&mut self, lane: &mut Lane, burst: &mut Burst<N>) -> usize {
        let n = match &self.budget {
            None => lane.rx.rx(&mut self.cache, burst),
            Some(budget) => {
                let claimed = budget.claim(N);
                let n = lane.rx.rx_up_to(&mut self.cache, burst, claimed);
                budget.settle(claimed, n);
                n
            }
        };
        if n == 0 {
            return 0;
        }
        self.mode.apply(burst);
        let sent = lane.tx.tx(&mut self.cache, burst);
        self.tally.count_delivered(sent as u64);
        if !burst.is_empty() {
            self.insist(lane, burst);
        }
        n
    }

    /// Retries the rest of a burst, and finally drops the frames that do not fit.
    #[cold]
    fn insist<const N: usize>(&mut self, lane: &mut Lane, burst: &mut Burst<N>) {
        for _ in 0..self.retries {
            self.clock.pause(PAUSE);
            self.counts.retries.add(1);
            let sent = lane.tx.tx(&mut self.cache, burst);
            self.tally.count_delivered(sent as u64);
            if burst.is_empty() || self.stop.is_set() {
                break;
            }
        }
        self.tally.count_dropped(Cause::TxFull, burst.len() as u64);
        self.cache.free_burst(burst);
    }
}

/// Reads counters outside the process.
fn sync(lanes: &mut [Lane]) {
    for lane in lanes {
        lane.rx.sync_counters();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use pollux_pmd::driver::{Capabilities, Description, Driver, Queues, TxDriver};
    use pollux_pmd::ledger::Sent;
    use pollux_pmd::mempool::{BurstMut, Mempool, PoolConfig};
    use pollux_pmd::{Ledger, PortConfig, PortError, Registry};

    /// Accepts these numbers of frames, in turn.
    #[derive(Clone)]
    struct Slow(&'static [usize], usize);

    impl Driver for Slow {
        fn capabilities(&self) -> Capabilities {
            Registry::builtin().open("null").unwrap().capabilities()
        }

        fn start(&mut self, _: &PortConfig, _: u16) -> Result<Queues, PortError> {
            let tx: Vec<Box<dyn TxDriver>> = vec![Box::new(self.clone())];
            Ok(Queues { rx: vec![], tx })
        }
    }

    impl TxDriver for Slow {
        fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, _: &mut Sent) -> usize {
            let takes = self.0[self.1 % self.0.len()].min(burst.len());
            self.1 += 1;
            cache.free_front(burst, takes);
            takes
        }
    }

    /// Forwards so many frames from `null` to a port that `registry` opens.
    fn forwarder(registry: &Registry, to: &str, count: u64, retries: u32) -> (Forwarder, Ledger) {
        let pool = Mempool::new(PoolConfig {
            buffers: 1024,
            ..PoolConfig::default()
        });
        let pool = pool.unwrap();
        let start = |spec, rx_queues, tx_queues| {
            let config = PortConfig {
                rx_queues,
                tx_queues,
                ..PortConfig::new(pool.clone())
            };
            let port = registry.open(spec).unwrap().configure(config);
            port.unwrap().start().unwrap()
        };
        let lane = Lane {
            rx: start("null", 1, 0).rx.remove(0),
            tx: start(to, 0, 1).tx.remove(0),
        };
        let mut ledger = Ledger::new();
        ledger.add("rx", lane.rx.tally());
        let (cache, budget) = (
            pool.cache(64).unwrap(),
            Some(Arc::new(FrameBudget::new(count))),
        );
        let mode = Mode::FiveTuple;
        let forwarder = Forwarder::new(
            vec![lane],
            cache,
            mode,
            retries,
            budget,
            StopFlag::new(),
            IdlePolicy::Busy,
        )
        .unwrap();
        ledger.add("loop", forwarder.tally());
        (forwarder, ledger)
    }

    #[test]
    fn what_finds_no_room_is_offered_again_and_dropped_in_the_end() {
        let mut registry = Registry::builtin();
        // Of each burst of 32: 20, then nothing twice, then 5.
        registry.register(Description::new("slow", "takes its time"), |_| {
            Ok(Box::new(Slow(&[20, 0, 0, 5], 0)))
        });
        let (forwarder, ledger) = forwarder(&registry, "slow", 320, 3);
        let counts = forwarder.counts();
        forwarder.run::<32>();
        let balance = ledger.check().unwrap();
        assert_eq!((balance.from_wire, balance.delivered), (320, 250));
        assert_eq!(balance.dropped_for(Cause::TxFull), 70);
        assert_eq!(counts.retries.get(), 30);
    }

    #[test]
    fn the_loop_does_nothing_but_work() {
        let (mut forwarder, ledger) = forwarder(&Registry::builtin(), "null", 100_000, 1);
        let ((), noise) = pollux_pmd_testkit::guard::listen(|ear| {
            let mut lanes = std::mem::take(&mut forwarder.lanes);
            ear.during(|| forwarder.work::<64>(&mut lanes));
        });
        noise.assert_none();
        assert_eq!(ledger.check().unwrap().delivered, 100_000);
    }
}
