//! Loopback port: receive queue `q` receives the frames of transmit queue `q`, inside the process.
//!
//! Buffers are moved, not copied. A frame's arrival time is the time of its transmission, so that
//! its wait in the ring counts as latency, as it does on a NIC.

use pollux_mempool::{BurstMut, MbufConsumer, MbufProducer, PoolCache, mbuf_ring};

use crate::arrival::ArrivalTime;
use crate::clock::{Clock, TscClock};
use crate::driver::{
    Capabilities, Description, Driver, Feature, Origin, Queues, RxDriver, Support, TxDriver,
};
use crate::ledger::{Cause, Sent, Tally};
use crate::net::MacAddr;
use crate::port::{PortConfig, PortError, QueueSupport};
use crate::spec::PortSpec;

pub(crate) const DESCRIPTION: Description = Description {
    features: &[
        (Feature::Receive, Support::Yes),
        (Feature::Send, Support::Yes),
        (Feature::MultiQueue, Support::Partly("64 each way")),
        (Feature::Link, Support::Partly("always up")),
        (Feature::Jumbo, Support::Yes),
        (Feature::ZeroCopyRx, Support::Yes),
        (Feature::ZeroCopyTx, Support::Yes),
    ],
    opening_only_looks: true,
    ..Description::new(
        "loopback",
        "a wire inside the process; each queue loops back to itself",
    )
};

const MAX_QUEUES: u16 = 64;

struct Loopback {
    spec: String,
}

/// Opens the port of a checked spec.
#[must_use]
pub fn open(spec: &PortSpec) -> Box<dyn Driver> {
    Box::new(Loopback {
        spec: spec.to_string(),
    })
}

impl Driver for Loopback {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_rx_queues: MAX_QUEUES,
            max_tx_queues: MAX_QUEUES,
            mac: Some(MacAddr([0x02, 0, 0, 0, 0, 0x01])),
            max_frame: 1 << 20,
            checksum_offload: false,
            wire_time: false,
            recorded: false,
            kernel_backed: false,
        }
    }

    fn validate(&self, config: &PortConfig) -> Result<(), PortError> {
        let (rx, tx) = (config.rx_queues, config.tx_queues);
        let refuse = |asked: String, offered: &str| {
            Err(PortError::Unsupported {
                port: self.spec.clone(),
                asked,
                offered: offered.into(),
            })
        };
        if rx != tx {
            let asked = format!("{rx} receive and {tx} transmit queues");
            return refuse(
                asked,
                "the same number of each: every queue loops back to itself",
            );
        }
        let rings = |&queue: &u16| config.rx_ring(queue) != config.tx_ring(queue);
        if let Some(queue) = (0..rx).find(rings) {
            let (rx, tx) = (config.rx_ring(queue), config.tx_ring(queue));
            let asked =
                format!("a ring of {rx} to receive and one of {tx} to send on queue {queue}");
            return refuse(asked, "one size for both: every queue loops back to itself");
        }
        Ok(())
    }

    fn queue_support(&self) -> QueueSupport {
        QueueSupport::RING
    }

    fn start(&mut self, config: &PortConfig, _port: u16) -> Result<Queues, PortError> {
        let mut queues = Queues {
            rx: Vec::new(),
            tx: Vec::new(),
        };
        for queue in 0..config.rx_queues {
            let (producer, consumer) =
                mbuf_ring(config.rx_ring(queue)).map_err(|error| PortError::Device {
                    port: self.spec.clone(),
                    what: error.to_string(),
                })?;
            queues.rx.push(Box::new(Rx { wire: consumer }));
            queues.tx.push(Box::new(Tx {
                wire: producer,
                clock: TscClock::get(),
            }));
        }
        Ok(queues)
    }
}

#[repr(align(128))] // as CachePadded: no line shared with another loop
struct Rx {
    wire: MbufConsumer,
}

impl RxDriver for Rx {
    #[inline]
    fn rx(
        &mut self,
        _cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        let old = out.len();
        let n = self.wire.pop(out);
        if n == 0 {
            return 0;
        }
        let mut bytes = 0;
        for mbuf in &mut out.as_mut_slice()[old..] {
            bytes += mbuf.total_len() as u64;
            let arrival = mbuf.arrival();
            origin.stamp(mbuf, arrival);
        }
        tally.count_from_wire(n as u64, bytes);
        n
    }

    fn arrival_time(&self) -> ArrivalTime {
        ArrivalTime::Hardware
    }

    fn finish(&mut self, tally: &mut Tally) {
        let mut rest = pollux_mempool::Burst::<32>::new();
        loop {
            let n = self.wire.pop(&mut rest.as_mut());
            if n == 0 {
                break;
            }
            let bytes = rest.iter().map(|mbuf| mbuf.total_len() as u64).sum();
            tally.count_from_wire(n as u64, bytes);
            tally.count_dropped(Cause::Aborted, n as u64);
            rest.clear();
        }
    }
}

#[repr(align(128))] // as CachePadded: no line shared with another loop
struct Tx {
    wire: MbufProducer,
    clock: TscClock,
}

impl TxDriver for Tx {
    #[inline]
    fn tx(&mut self, _cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        let fits = self.wire.free().min(burst.len());
        if fits == 0 {
            return 0;
        }
        let now = self.clock.now();
        let mut bytes = 0;
        for mbuf in &mut burst.as_mut_slice()[..fits] {
            bytes += mbuf.total_len() as u64;
            mbuf.set_arrival(now);
        }
        // One producer: free slots stay free, so all counted frames fit.
        let n = self.wire.push_front(burst, fits);
        sent.count(n as u64, bytes);
        n
    }
}
