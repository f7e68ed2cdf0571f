//! Poll loop of the switch.

use pollux_pmd::lcore::StopFlag;
use pollux_pmd::lcore::idle::{Idle, IdleError, IdlePolicy};
use pollux_pmd::mempool::PoolCache;
use pollux_pmd::mempool::time::Ns;
use pollux_pmd::{RxQueue, Timeout, TscClock};
use pollux_switch::{Switch, SwitchConfig, SwitchPort};

use crate::ticker::Ticker;

/// Longest sleep of an idle loop; it then checks the stop flag.
const SLEEP: Ns = Ns(1_000_000);

/// Time that a port has to take its frames at the end, beyond what the rate needs.
const PATIENCE: Ns = Ns(1_000_000_000);

/// Poll loop, with the resources that it owns.
pub(super) struct Loop {
    switch: Switch,
    cache: PoolCache,
    idle: Idle,
    stop: StopFlag,
    clock: TscClock,
    /// Longest wait for the buffers to become empty.
    patience: Ns,
}

/// State of a loop that has ended.
pub(super) struct Done {
    pub(super) ports: Vec<SwitchPort>,
    /// Addresses known at the end.
    pub(super) addresses: usize,
}

impl Loop {
    pub(super) fn new(
        mut switch: Switch,
        cache: PoolCache,
        config: &SwitchConfig,
        idle: IdlePolicy,
        stop: StopFlag,
    ) -> Result<Self, IdleError> {
        let idle = Idle::new(idle, SLEEP, switch.inputs().map(|queue| &*queue))?;
        // A full buffer, at the rate.
        let full = config.rate.map_or(0, |rate| {
            config.buffer as u128 * 8_000_000_000 / u128::from(rate.max(1))
        });
        Ok(Self {
            switch,
            cache,
            idle,
            stop,
            clock: TscClock::get(),
            patience: Ns(u64::try_from(full).unwrap_or(u64::MAX)) + PATIENCE,
        })
    }

    /// Switches until the stop flag is set, or no frame can come any more; then sends what waits.
    pub(super) fn run(mut self) -> Done {
        self.work();
        self.drain();
        self.switch.inputs().for_each(RxQueue::sync_counters);
        let addresses = self.switch.known_addresses();
        Done {
            ports: self.switch.finish(&mut self.cache),
            addresses,
        }
    }

    fn work(&mut self) {
        let mut ticker = Ticker::for_counters(self.clock);
        while !self.stop.is_set() {
            let moved = self.switch.poll(&mut self.cache);
            if moved > 0 {
                self.idle.worked(self.switch.inputs());
            } else if self.switch.has_ended() {
                break;
            } else if self.switch.is_empty() {
                self.idle.rest(&self.clock, self.switch.inputs());
            }
            if ticker.is_due() {
                self.switch.inputs().for_each(RxQueue::sync_counters);
            }
        }
    }

    /// Sends the frames that wait, until all are gone, or a port has taken too long. After a signal
    /// or the end of the duration, it only sends those that have left the link.
    fn drain(&mut self) {
        let mut timeout = Timeout::new(&self.clock, self.patience);
        loop {
            self.switch.send(&mut self.cache);
            if self.switch.is_empty() || self.stop.is_set() || timeout.is_over(&self.clock) {
                break;
            }
        }
    }
}
