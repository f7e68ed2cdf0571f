//! Receive packet steering (RPS): several receive queues over the one queue of a device, in
//! software, as Linux has it for its own stack (Documentation/networking/scaling.rst).
//!
//! ```text
//!   device --> queue 0 --+--> frames of the flows of queue 0
//!                        +--> ring --> queue 1
//!                        +--> ring --> queue 2
//! ```
//!
//! The loop that polls queue 0 polls the device. It keeps the frames of its own flows, and puts the
//! others into the rings of their queues. As with RSS, the frames of a flow keep their order, and a
//! queue that is polled too slowly loses frames of its own flows only, as
//! [`Cause::RingFull`](crate::Cause::RingFull). Queue 0 counts what comes from the wire, for all.

use std::sync::atomic::{Ordering, fence};

use pollux_mempool::{Burst, BurstMut, MbufConsumer, MbufProducer, PoolCache, mbuf_ring};

use crate::arrival::{ArrivalTime, Waited};
use crate::clock::{Clock, TscClock};
use crate::driver::{Capabilities, Driver, Link, Origin, Queues, RxDriver, SpecOption, Statistics};
use crate::ledger::{Cause, Tally};
use crate::net::{ParseOptions, classify, flow};
use crate::port::{PortConfig, PortError, RxState, SharedRxState};
use crate::spec::PortSpec;

/// Option `rps`, of all drivers.
pub const RPS: SpecOption = SpecOption {
    key: "rps",
    values: "QUEUES",
    default: "none",
    text: "so many receive queues in software, over which flows are distributed",
};

/// Maximum number of frames that a poll takes from the device.
const BURST: usize = 32;

/// A driver over another one.
struct Rps {
    inner: Box<dyn Driver>,
    queues: u16,
    spec: String,
}

/// Takes the option out of a spec; the number of queues, if the spec has it.
///
/// # Errors
/// A number out of range.
pub(crate) fn take(spec: &mut PortSpec) -> Result<Option<u16>, PortError> {
    let queues = spec.number(RPS.key, 2..=64)?;
    spec.remove_option(RPS.key);
    Ok(queues.map(|queues| queues as u16))
}

/// Gives a device so many receive queues.
///
/// # Errors
/// A device that does not receive, or a recording.
pub(crate) fn steer(
    inner: Box<dyn Driver>,
    queues: u16,
    spec: String,
) -> Result<Box<dyn Driver>, PortError> {
    let device = inner.capabilities();
    let offered = if device.recorded {
        "none: a recording is shared out by its receive queues"
    } else if device.max_rx_queues == 0 {
        "none: the device does not receive"
    } else {
        let rps = Rps {
            inner,
            queues,
            spec,
        };
        return Ok(Box::new(rps));
    };
    Err(PortError::Unsupported {
        port: spec,
        asked: format!("rps={queues}"),
        offered: offered.into(),
    })
}

/// The configuration of the device itself.
fn of_device(config: &PortConfig) -> PortConfig {
    PortConfig {
        rx_queues: 1,
        ..config.clone()
    }
}

impl Driver for Rps {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_rx_queues: self.queues,
            ..self.inner.capabilities()
        }
    }

    fn validate(&self, config: &PortConfig) -> Result<(), PortError> {
        if config.rx_queues != self.queues {
            return Err(PortError::Unsupported {
                port: self.spec.clone(),
                asked: format!("{} receive queues", config.rx_queues),
                offered: format!("{}, as rps={} says", self.queues, self.queues),
            });
        }
        self.inner.validate(&of_device(config))
    }

    fn spread(&self) -> u16 {
        self.queues
    }

    fn unpolled(&self) -> Vec<u16> {
        self.inner.unpolled()
    }

    fn start(&mut self, config: &PortConfig, port: u16) -> Result<Queues, PortError> {
        let Queues { rx, tx } = self.inner.start(&of_device(config), port)?;
        let state = SharedRxState::default();
        let mut queues: Vec<Box<dyn RxDriver>> = Vec::new();
        for driver in rx {
            let mut shares = Vec::new();
            let mut steered: Vec<Box<dyn RxDriver>> = Vec::new();
            for _ in 1..self.queues {
                let (to, from) =
                    mbuf_ring(config.ring).map_err(|error| PortError::Unsupported {
                        port: self.spec.clone(),
                        asked: format!("a ring of {}", config.ring),
                        offered: error.to_string(),
                    })?;
                shares.push(Share {
                    to,
                    frames: Burst::new(),
                });
                steered.push(Box::new(Steered {
                    from,
                    arrival_time: driver.arrival_time(),
                    state: state.clone(),
                }));
            }
            let clock = TscClock::get();
            let waits = driver.arrival_time() == ArrivalTime::Poll;
            queues.push(Box::new(Steering {
                waited: waits.then(|| Waited::new(&clock, config.ring)),
                clock,
                driver,
                queues: self.queues,
                shares,
                state: state.clone(),
            }));
            queues.append(&mut steered);
        }
        Ok(Queues { rx: queues, tx })
    }

    fn end_receiving(&mut self) {
        self.inner.end_receiving();
    }

    fn stop(&mut self) -> Result<(), PortError> {
        self.inner.stop()
    }

    fn link(&self) -> Link {
        self.inner.link()
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }

    fn registers(&self) -> String {
        self.inner.registers()
    }
}

/// The way to one of the other queues.
struct Share {
    to: MbufProducer,
    /// Frames of the current poll.
    frames: Burst<BURST>,
}

/// Queue 0: polls the device.
#[repr(align(128))] // as CachePadded: no line shared with another loop
struct Steering {
    driver: Box<dyn RxDriver>,
    queues: u16,
    shares: Vec<Share>,
    /// Of the device's queue, for the other queues.
    state: SharedRxState,
    clock: TscClock,
    /// Charges all frames for gaps between polls of the device, where they are stamped by polls.
    waited: Option<Waited>,
}

impl RxDriver for Steering {
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        // All of them may be of this queue.
        let asked = out.free().min(BURST);
        let mut burst = Burst::<BURST>::new();
        let now = self.waited.as_ref().map(|_| self.clock.now());
        let received = self
            .driver
            .rx(cache, &mut burst.up_to(asked), origin, tally);
        if let (Some(waited), Some(now)) = (&mut self.waited, now) {
            waited.charge(now, asked, &mut burst);
        }
        if received == 0 {
            let state = self.driver.state();
            if state != self.state.get() {
                // Pairs with the fence of `Steered::state`: all frames are in the rings before.
                fence(Ordering::Release);
                self.state.set(state);
            }
            return 0;
        }
        let mut own = 0;
        burst.take_all(|mut mbuf| {
            let parsed = classify(&mbuf, &ParseOptions::TRUSTED);
            let queue = flow::queue_of(&parsed, self.queues);
            let share = usize::from(queue).checked_sub(1);
            let kept = match share.and_then(|share| self.shares.get_mut(share)) {
                None => {
                    own += 1;
                    out.push(mbuf)
                }
                Some(share) => {
                    mbuf.set_origin(origin.port, queue, mbuf.ordinal(), mbuf.arrival());
                    share.frames.push(mbuf)
                }
            };
            // Each has room for a whole poll.
            drop(kept);
        });
        for share in &mut self.shares {
            if share.frames.is_empty() {
                continue;
            }
            share.to.push(&mut share.frames.as_mut());
            let lost = share.frames.len() as u64;
            if lost > 0 {
                tally.count_dropped(Cause::RingFull, lost);
                share.frames.take_all(|mbuf| cache.free(mbuf));
            }
        }
        own
    }

    fn state(&self) -> RxState {
        self.driver.state()
    }

    fn arrival_time(&self) -> ArrivalTime {
        self.driver.arrival_time()
    }

    fn sync_counters(&mut self, tally: &mut Tally) {
        self.driver.sync_counters(tally);
    }

    // No event: a poll that yields no frame may have steered some, and more may wait in the device,
    // which would not signal them again.

    fn finish(&mut self, tally: &mut Tally) {
        self.driver.finish(tally);
    }
}

/// Another queue: takes what queue 0 steered to it.
#[repr(align(128))] // as CachePadded: no line shared with another loop
struct Steered {
    from: MbufConsumer,
    arrival_time: ArrivalTime,
    state: SharedRxState,
}

impl RxDriver for Steered {
    fn rx(
        &mut self,
        _cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        _origin: &mut Origin,
        _tally: &mut Tally,
    ) -> usize {
        self.from.pop(out)
    }

    fn state(&self) -> RxState {
        let state = self.state.get();
        // Pairs with the fence of `Steering::rx`: the frames that came before an end are seen.
        fence(Ordering::Acquire);
        if state.is_final() && !self.from.is_empty() {
            RxState::Live
        } else {
            state
        }
    }

    fn arrival_time(&self) -> ArrivalTime {
        self.arrival_time
    }

    fn finish(&mut self, tally: &mut Tally) {
        let mut burst = Burst::<BURST>::new();
        loop {
            let left = self.from.pop(&mut burst.as_mut());
            if left == 0 {
                break;
            }
            tally.count_dropped(Cause::Aborted, left as u64);
            burst.clear();
        }
    }
}
