//! Null port: receives empty frames of a given length as fast as it is polled, and frees the frames
//! that are sent. It measures everything but a device.

use pollux_mempool::{BurstMut, PoolCache};

use crate::arrival::ArrivalTime;
use crate::clock::{Clock, TscClock};
use crate::driver::{
    Capabilities, Description, Driver, Feature, Origin, Queues, RxDriver, SpecOption, Support,
    TxDriver,
};
use crate::ledger::{Cause, Sent, Tally};
use crate::port::{PortConfig, PortError};
use crate::spec::{PortSpec, SpecError};

pub(crate) const DESCRIPTION: Description = Description {
    options: &[SpecOption {
        key: "size",
        values: "BYTES",
        default: "64",
        text: "length of the frames that are received, up to one buffer; 0: receive nothing",
    }],
    features: &[
        (Feature::Receive, Support::Partly("blank frames")),
        (Feature::Send, Support::Partly("frames are freed")),
        (Feature::MultiQueue, Support::Partly("64 each way")),
        (Feature::Link, Support::Partly("always up")),
        (Feature::Jumbo, Support::Partly("to send")),
        (Feature::ZeroCopyRx, Support::Yes),
        (Feature::ZeroCopyTx, Support::Yes),
    ],
    check: |spec| Null::parse(spec).map(drop),
    opening_only_looks: true,
    ..Description::new(
        "null",
        "no wire: receives blank frames when polled, frees sent frames",
    )
};

const MAX_QUEUES: u16 = 64;

struct Null {
    spec: String,
    size: usize,
}

impl Null {
    fn parse(spec: &PortSpec) -> Result<Self, SpecError> {
        let expected = "a frame length of 0 to 65535 bytes (0: receive nothing)";
        let size: u16 = spec.parse_option("size", 64, expected)?;
        Ok(Self {
            spec: spec.to_string(),
            size: usize::from(size),
        })
    }
}

pub(crate) fn open(spec: &PortSpec) -> Result<Box<dyn Driver>, PortError> {
    Ok(Box::new(Null::parse(spec)?))
}

impl Driver for Null {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_rx_queues: MAX_QUEUES,
            max_tx_queues: MAX_QUEUES,
            mac: None,
            max_frame: 1 << 20,
            checksum_offload: false,
            wire_time: false,
            recorded: false,
            kernel_backed: false,
        }
    }

    fn validate(&self, config: &PortConfig) -> Result<(), PortError> {
        if self.size <= config.pool.data_room() {
            return Ok(());
        }
        Err(PortError::Unsupported {
            port: self.spec.clone(),
            asked: format!("frames of {} B", self.size),
            offered: format!(
                "frames that fit one buffer of {} B",
                config.pool.data_room()
            ),
        })
    }

    fn start(&mut self, config: &PortConfig, _port: u16) -> Result<Queues, PortError> {
        let size = self.size;
        let clock = TscClock::get();
        Ok(Queues {
            rx: (0..config.rx_queues)
                .map(|_| Box::new(Rx { size, clock }) as Box<_>)
                .collect(),
            tx: (0..config.tx_queues)
                .map(|_| Box::new(Tx) as Box<_>)
                .collect(),
        })
    }
}

#[repr(align(128))] // as CachePadded: no line shared with another loop
struct Rx {
    size: usize,
    clock: TscClock,
}

impl RxDriver for Rx {
    #[inline]
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        if self.size == 0 {
            return 0;
        }
        let old = out.len();
        let wanted = out.free();
        let n = cache.alloc_into(out, wanted);
        let now = self.clock.now();
        for mbuf in &mut out.as_mut_slice()[old..] {
            // The frame fits: `validate` compared the size with the pool's.
            let _ = mbuf.append(self.size);
            origin.stamp(mbuf, now);
        }
        tally.count_from_wire(wanted as u64, (wanted * self.size) as u64);
        if n < wanted {
            tally.count_dropped(Cause::NoMbuf, (wanted - n) as u64);
        }
        n
    }

    fn arrival_time(&self) -> ArrivalTime {
        ArrivalTime::Read
    }
}

#[repr(align(128))] // as CachePadded: no line shared with another loop
struct Tx;

impl TxDriver for Tx {
    #[inline]
    fn tx(&mut self, cache: &mut PoolCache, burst: &mut BurstMut<'_>, sent: &mut Sent) -> usize {
        let n = burst.len();
        let bytes = burst
            .as_slice()
            .iter()
            .map(|mbuf| mbuf.total_len() as u64)
            .sum();
        cache.free_front(burst, n);
        sent.count(n as u64, bytes);
        n
    }
}
