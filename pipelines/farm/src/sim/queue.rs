//! One server with Poisson arrivals and a fixed service time (M/D/1).

use std::collections::VecDeque;

use super::engine::Engine;
use super::statistics::{Progress, Results, Times};
use crate::time::Time;
use crate::trigger::Poisson;

/// An M/D/1 queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// Mean share of time in which the server is busy, below 1.
    pub(super) load: f64,
    /// Service time.
    pub(super) service: Time,
    /// Customers.
    pub(super) customers: u64,
}

#[derive(Clone, Copy, Debug, Hash)]
enum Event {
    Arrival,
    Departure,
}

impl Queue {
    pub(super) fn run(self, seed: u64, mut watch: impl FnMut(Progress) -> bool) -> Results {
        // The cast saturates.
        let mean = Time::from_ps((self.service.ps() as f64 / self.load).round() as u64);
        let mut arrivals = Poisson::every(mean, seed);
        let mut engine = Engine::new(seed);
        // Arrival times; the first is of the customer that is served.
        let mut present = VecDeque::new();
        let (mut arrived, mut served, mut busy_ps) = (0, 0, 0u128);
        let (mut waits, mut stays) = (Times::default(), Times::default());
        let mut stopped = false;
        engine.after(arrivals.interval(), Event::Arrival);
        while let Some(event) = engine.next_event() {
            let now = engine.now();
            match event {
                Event::Arrival => {
                    arrived += 1;
                    present.push_back(now);
                    if arrived < self.customers {
                        engine.after(arrivals.interval(), Event::Arrival);
                    }
                    if present.len() > 1 {
                        continue;
                    }
                }
                Event::Departure => {
                    served += 1;
                    busy_ps += u128::from(self.service.ps());
                    let since = present.pop_front();
                    stays.record(now - since.unwrap_or(now));
                }
            }
            // The customer whose service begins, if there is one.
            if let Some(&since) = present.front() {
                waits.record(now - since);
                engine.after(self.service, Event::Departure);
            }
            if engine.handled().is_multiple_of(Progress::EVERY) {
                stopped = !watch(Progress {
                    events: served,
                    of: self.customers,
                    simulated: now,
                });
                if stopped {
                    break;
                }
            }
        }
        let ps = (engine.now().ps() as f64).max(1.0);
        let busy = busy_ps as f64 / ps;
        Results {
            built: served,
            unfinished: self.customers - served,
            rate_hz: served as f64 * 1e12 / ps,
            utilisation: busy,
            wait_mean_ns: Some(waits.mean_ns()),
            latency_us: stays.latency(),
            busy_mean: Some(busy),
            hash: engine.digest(),
            stopped,
            over_time: engine.is_over_time(),
            ..Results::default()
        }
    }
}
