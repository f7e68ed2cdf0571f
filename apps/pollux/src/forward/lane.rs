//! The poll loop: from a receive queue to a transmit queue.

use std::sync::Arc;

use pollux_pmd::lcore::StopFlag;
use pollux_pmd::lcore::idle::{Idle, IdleError, IdlePolicy};
use pollux_pmd::mempool::time::Ns;
use pollux_pmd::mempool::{Burst, PoolCache};
use pollux_pmd::{Cause, Clock, Count, RxQueue, Tally, TallyView, TscClock, TxQueue};

use super::swap::Mode;
use crate::quota::Quota;
use crate::ticker::Ticker;

/// From one attempt to the next, where a transmit queue has no room.
const PAUSE: Ns = Ns(1000);

/// Longest sleep of an idle loop, which looks then whether it is to end.
const SLEEP: Ns = Ns(1_000_000);

/// Idle rounds from one look after frames that a driver still has to the next: so many that
/// looking costs nothing.
const KICK: u32 = 1024;

/// One way through the loop.
pub(super) struct Lane {
    pub(super) rx: RxQueue,
    pub(super) tx: TxQueue,
}

/// What is counted beside the ledger.
#[derive(Default)]
pub(super) struct Counts {
    /// Attempts to send the rest of a burst.
    pub(super) retries: Count,
}

/// A poll loop and all that it owns.
pub(super) struct Forwarder {
    pub(super) lanes: Vec<Lane>,
    pub(super) cache: PoolCache,
    pub(super) mode: Mode,
    /// How often the rest of a burst is offered again.
    pub(super) retries: u32,
    pub(super) quota: Option<Arc<Quota>>,
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
        quota: Option<Arc<Quota>>,
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
            quota,
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

    /// Polls until it is to stop, all queues have come to their end, or the quota is used up.
    /// Moves up to `N` frames at once. Gives the queues back.
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
                    // A burst of nothing: frames go out that the kernel had no room for.
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
        self.quota.as_ref().is_some_and(|quota| quota.is_used_up())
    }

    /// Moves one burst; how many frames came.
    #[inline]
    fn forward<const N: usize>(&mut self, lane: &mut Lane, burst: &mut Burst<N>) -> usize {
        let n = match &self.quota {
            None => lane.rx.rx(&mut self.cache, burst),
            Some(quota) => {
                let claimed = quota.claim(N);
                let n = lane.rx.rx_up_to(&mut self.cache, burst, claimed);
                quota.settle(claimed, n);
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

    /// Offers the rest of a burst again, and drops in the end what found no room.
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

/// Reads the counters that live outside the process.
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

    /// Takes so many frames each time, in turn.
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

    /// From `null` to a port that is opened with `registry`, so many frames.
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
        let (cache, quota) = (pool.cache(64).unwrap(), Some(Arc::new(Quota::new(count))));
        let mode = Mode::FiveTuple;
        let forwarder = Forwarder::new(
            vec![lane],
            cache,
            mode,
            retries,
            quota,
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
        let ((), noise) = pollux_quiet::listen(|ear| {
            let mut lanes = std::mem::take(&mut forwarder.lanes);
            ear.during(|| forwarder.work::<64>(&mut lanes));
        });
        noise.assert_none();
        assert_eq!(ledger.check().unwrap().delivered, 100_000);
    }
}
