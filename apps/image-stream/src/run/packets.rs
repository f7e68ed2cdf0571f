//! Reception of packets: polls receive queues, and places the packets of the detector.

use std::net::Ipv4Addr;

use pollux_mempool::time::{Ns, Tsc};
use pollux_mempool::{Burst, Mbuf, PoolCache};
use pollux_pipelines::Moment;
use pollux_pmd::endpoint::{PortEndpoint, Receiver};
use pollux_pmd::{Capabilities, RxQueue, TallyView, TxQueue};

use super::place::Place;
use super::received::ReceivedUntil;

/// Largest burst.
pub const BURST: usize = 32;

/// A receive queue.
pub struct Input {
    pub rx: RxQueue,
    /// Index of its port among the endpoints.
    pub port: usize,
}

/// The queues of one loop, and all that it does with their frames.
pub struct PacketReception<L> {
    inputs: Vec<Input>,
    receiver: Receiver,
    endpoints: Vec<PortEndpoint>,
    cache: PoolCache,
    place: L,
    /// The ports are recordings: time is that of capture.
    recorded: bool,
    /// Time of the last frame of a recording.
    captured: Moment,
    received: ReceivedUntil,
}

/// A port as a loop has it: what it offers, and its transmit queue if this loop has it.
pub type Host = (Capabilities, Option<TxQueue>);

impl<L: Place> PacketReception<L> {
    pub fn new(
        inputs: Vec<Input>,
        hosts: Vec<Host>,
        ip: Ipv4Addr,
        receiver: Receiver,
        cache: PoolCache,
        place: L,
    ) -> Self {
        let recorded = hosts.iter().any(|(offered, _)| offered.recorded);
        let endpoint = |(offered, tx): Host| PortEndpoint::new(&offered, tx, ip);
        Self {
            inputs,
            receiver,
            endpoints: hosts.into_iter().map(endpoint).collect(),
            cache,
            place,
            recorded,
            captured: Moment(0),
            received: ReceivedUntil::default(),
        }
    }

    /// Prepares the thread of the loop, before its first round.
    pub fn begin(&self) {
        self.place.prepare();
    }

    /// One round over the queues, which began at `time` by the clock and `now` after the start of the
    /// run. Returns whether there was a frame.
    #[inline]
    pub fn poll(&mut self, time: Tsc, now: Moment) -> bool {
        let (mut busy, mut all) = (false, true);
        for Input { rx, port, .. } in &mut self.inputs {
            let mut burst = Burst::<BURST>::new();
            let received = if self.recorded {
                rx.rx_up_to(&mut self.cache, &mut burst, BURST)
            } else {
                rx.rx_at(time, &mut self.cache, &mut burst, BURST)
            };
            // As many as asked for: there may be more.
            all &= received < BURST;
            if received == 0 {
                continue;
            }
            busy = true;
            burst.iter().for_each(Mbuf::prefetch_read);
            burst.take_all(|mbuf| {
                let at = if self.recorded {
                    Moment(mbuf.wire_time().unwrap_or_default().0)
                } else {
                    now
                };
                self.captured = self.captured.max(at);
                let (endpoints, cache) = (&mut self.endpoints, &mut self.cache);
                let frame = self
                    .receiver
                    .receive(mbuf, Ns(at.0), *port, endpoints, cache);
                if let Some(frame) = frame {
                    self.place.place(&frame, at);
                    cache.free(frame.mbuf);
                }
            });
        }
        if self.recorded {
            self.received.set(self.captured);
        } else if all {
            self.received.set(now);
        }
        busy
    }

    /// The time by which images are late: of a recording that of its last frame, else the begin of the
    /// last round that emptied the queues.
    pub fn received_until(&self) -> ReceivedUntil {
        self.received.clone()
    }

    /// Whether nothing more can be received.
    pub fn has_ended(&self) -> bool {
        self.inputs.iter().all(|input| input.rx.state().is_final())
    }

    /// The counter of the packets.
    pub fn placed(&self) -> TallyView {
        self.place.view()
    }

    /// The queues, for an idle loop.
    pub fn queues(&mut self) -> impl Iterator<Item = &mut RxQueue> {
        self.inputs.iter_mut().map(|input| &mut input.rx)
    }

    /// Reads the losses that devices and the kernel count, and sends what was refused: every now and then.
    #[cold]
    pub fn chores(&mut self) {
        for input in &mut self.inputs {
            input.rx.sync_counters();
        }
        for endpoint in &mut self.endpoints {
            endpoint.retry(&mut self.cache);
        }
    }

    /// The queues, with which the ports are stopped.
    pub fn finish(self) -> (Vec<RxQueue>, Vec<TxQueue>) {
        self.received.end();
        let rx = self.inputs.into_iter().map(|input| input.rx).collect();
        let endpoints = self.endpoints.into_iter();
        (rx, endpoints.filter_map(PortEndpoint::into_tx).collect())
    }
}
