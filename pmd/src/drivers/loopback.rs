//! A wire inside the process: what transmit queue `q` sends, receive queue `q` gets.
//!
//! Buffers are moved, not copied. A frame's arrival is the moment when it was put on the wire, so
//! that time spent in the ring counts as latency, as it does on a NIC.

use pollux_mempool::{BurstMut, MbufConsumer, MbufProducer, PoolCache, mbuf_ring};

use crate::arrival::ArrivalTime;
use crate::clock::{Clock, TscClock};
use crate::driver::{
    Capabilities, Description, Driver, Feature, Origin, Queues, RxDriver, Support, TxDriver,
};
use crate::ledger::{Cause, Sent, Tally};
use crate::net::MacAddr;
use crate::port::{PortConfig, PortError};
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

pub(crate) fn open(spec: &PortSpec) -> Box<dyn Driver> {
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
        if config.rx_queues == config.tx_queues {
            return Ok(());
        }
        Err(PortError::Unsupported {
            port: self.spec.clone(),
            asked: format!(
                "{} receive and {} transmit queues",
                config.rx_queues, config.tx_queues
            ),
            offered: "the same number of each: every queue loops back to itself".into(),
        })
    }

    fn start(&mut self, config: &PortConfig, _port: u16) -> Result<Queues, PortError> {
        let mut queues = Queues {
            rx: Vec::new(),
            tx: Vec::new(),
        };
        for _ in 0..config.rx_queues {
            let (producer, consumer) =
                mbuf_ring(config.ring).map_err(|error| PortError::Device {
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
        // One producer: what was free stays free, so all that were counted go in.
        let n = self.wire.push_front(burst, fits);
        sent.count(n as u64, bytes);
        n
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::bus::Ids;
    use crate::bus::adversary::{Choices, Trial, run};
    use crate::bus::fake::{Model, World};
    use crate::testing::pool;

    /// There is no device.
    struct Nothing;

    impl Model for Nothing {
        fn ids(&self) -> Ids {
            Ids::default()
        }

        fn bars(&self) -> [usize; 6] {
            [0; 6]
        }

        fn read(&mut self, _: &mut World, _: u8, _: usize, _: usize) -> u32 {
            u32::MAX
        }

        fn write(&mut self, _: &mut World, _: u8, _: usize, _: usize, _: u32) {}

        fn reset(&mut self, _: &mut World) {}
    }

    /// The other end is the port's own, of the same process and safe code: all that it can do is
    /// send what it likes, when it likes.
    #[test]
    fn whatever_is_sent_comes_back_or_is_counted() {
        let pool = pool(200, 1024);
        let trial = Trial {
            model: &|| Nothing,
            open: &|_| Ok(open(&"loopback".parse().unwrap())),
            arrive: &|_, _, _| {},
            pool: &pool,
            shortest: 0,
        };
        let outcome = run(&trial, Choices::Seeded(1), 1_000_000);
        let lost = outcome.received.dropped_for(Cause::Aborted);
        assert_eq!(outcome.received.delivered + lost, outcome.sent);
        assert!(outcome.received.delivered > 10_000, "{outcome:?}");
        assert!(outcome.starts > 100 && lost > 0, "{outcome:?}");
        assert_eq!(outcome.violations(), 0, "{outcome:?}");
    }
}
