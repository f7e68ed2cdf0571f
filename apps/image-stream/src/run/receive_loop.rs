//! Receive loops of `--rx-loops`: they place packets for the loop that takes the images.

use pollux_mempool::time::{Ns, Tsc};
use pollux_pipelines::Moment;
use pollux_pmd::lcore::idle::Idle;
use pollux_pmd::lcore::{JitterMeter, StopFlag};
use pollux_pmd::{Clock, RxQueue, TscClock, TxQueue};

use super::place::Place;
use super::reception::Reception;

/// How often counters outside of the process are read.
pub const CHORES: Ns = Ns(100_000_000);

/// A receive loop before its launch.
pub struct ReceiveLoop<L> {
    pub reception: Reception<L>,
    pub idle: Idle,
    pub clock: TscClock,
    pub jitter: JitterMeter,
    pub stop: StopFlag,
    /// Rounds that empty full receive rings.
    pub last_rounds: usize,
    /// The loops share CPUs.
    pub gives_way: bool,
}

impl<L: Place> ReceiveLoop<L> {
    /// Receives until it has to end or all its queues have; returns its queues.
    pub fn run(mut self, start: Tsc) -> (Vec<RxQueue>, Vec<TxQueue>) {
        self.reception.begin();
        let chores = self.clock.to_cycles(CHORES);
        let mut next_chores = start;
        while !self.stop.is_set() && !self.reception.has_ended() {
            let now = self.jitter.tick();
            let moment = Moment(self.clock.to_ns(now.since(start)).0);
            if self.reception.poll(now, moment) {
                self.idle.worked(self.reception.queues());
            } else {
                if self.gives_way {
                    std::thread::yield_now();
                }
                if self.idle.rest(&self.clock, self.reception.queues()) {
                    self.jitter.skip();
                }
            }
            if now >= next_chores {
                next_chores = Tsc(now.0 + chores);
                self.reception.chores();
            }
        }
        // What is in the rings when the run ends belongs to it.
        for _ in 0..self.last_rounds {
            let now = self.clock.now();
            let moment = Moment(self.clock.to_ns(now.since(start)).0);
            if !self.reception.poll(now, moment) {
                break;
            }
        }
        self.reception.finish()
    }
}
