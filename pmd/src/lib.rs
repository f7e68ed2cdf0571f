//! Poll-mode packet I/O: ports and queues, poll loops, headers, stream demux, event queues.
//!
//! A port is opened by its spec, configured, and started; its queues are values that a poll loop
//! owns. Frames are [`Mbuf`](pollux_mempool::Mbuf)s and move in bursts. Every frame is accounted
//! for in a [`Ledger`].
//!
//! ```
//! use pollux_mempool::{Burst, Mempool, PoolConfig};
//! use pollux_pmd::{Ledger, PortConfig, Registry, StartedPort, Tally};
//!
//! let pool = Mempool::new(PoolConfig::default())?;
//! let port = Registry::builtin().open("loopback")?.configure(PortConfig::new(pool.clone()))?;
//! let StartedPort { port, mut rx, mut tx } = port.start()?;
//! let (mut cache, mut burst) = (pool.cache(256)?, Burst::<32>::new());
//!
//! cache.alloc_burst(&mut burst, 8);
//! tx[0].tx(&mut cache, &mut burst);
//! let n = rx[0].rx(&mut cache, &mut burst);
//!
//! let (mut ledger, mut consumer) = (Ledger::new(), Tally::new());
//! ledger.add("rx", rx[0].tally());
//! ledger.add("consumer", consumer.view());
//! consumer.count_delivered(n as u64);
//! cache.free_burst(&mut burst);
//! port.stop(rx, tx)?;
//! assert_eq!(ledger.check()?.delivered, 8);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// Items that drivers share are compiled in whole, whichever drivers are enabled.
#![cfg_attr(
    not(all(
        feature = "af_packet",
        feature = "af_xdp",
        feature = "card",
        feature = "e1000e",
        feature = "igb",
        feature = "pcap",
        feature = "tap",
        feature = "unix",
        feature = "vhost-user",
        feature = "virtio",
    )),
    allow(dead_code, unused_imports, unused_macros)
)]

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("pollux-pmd needs Linux on x86_64: its clock is the CPU's time stamp counter");

pub mod arrival;
pub mod builders;
pub mod bus;
pub mod cause;
pub mod clock;
#[cfg(doctest)]
mod compile_fail;
pub mod count;
pub mod driver;
pub mod drivers;
pub mod endpoint;
pub mod event;
pub mod grant;
pub mod histogram;
pub mod lcore;
pub mod ledger;
pub mod net;
pub mod port;
pub mod quarantine;
pub mod registry;
pub mod spec;
pub mod stream;

pub use arrival::ArrivalTime;
pub use cause::{Cause, CauseError};
pub use clock::{
    BadClockChoice, Clock, ClockChoice, ClockInUse, ClockSource, ManualClock, Timeout, TscClock,
    TscFacts,
};
pub use count::Count;
pub use driver::Capabilities;
pub use grant::MemoryGrant;
pub use histogram::{LatencyHistogram, LatencyMark, LatencyView, Percentiles};
pub use ledger::{Balance, Ledger, Share, Tally, TallyView};
pub use port::{
    Configured, Port, PortConfig, PortError, Probed, QueueConfig, RxQueue, RxState, Started,
    StartedPort, TxQueue,
};
pub use registry::Registry;
pub use spec::PortSpec;

pub use pollux_mempool as mempool;

/// The example in the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The example programs of the page on embedding the crate; packages do not contain the page.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
struct Embedding;
