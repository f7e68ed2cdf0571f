//! Memory for poll-mode packet I/O: DMA-able regions, packet buffers, pools and rings.
//!
//! | what | type |
//! | --- | --- |
//! | locked, NUMA-bound memory that can be shared by file descriptor | [`MemoryRegion`] |
//! | I/O addresses of that memory, as a device sees it | [`IovaMap`] |
//! | a packet buffer with exactly one owner | [`Mbuf`] |
//! | a fixed array of owned buffers, the unit of receive and transmit | [`Burst`] |
//! | a read-only, cloneable buffer, and `bytes::Bytes` without a copy | [`Frozen`] |
//! | the shared list of free buffers | [`Mempool`] |
//! | a poll loop's own cache of free buffers | [`PoolCache`] |
//! | lock-free queues of buffers or descriptors | [`ring`] |
//! | a queue of shared frames to one of several consumers | [`frozen_ring`](fn@frozen_ring) |
//! | a queue of boxed values between two threads | [`box_ring`](fn@box_ring) |
//! | a thread's own cache of free descriptors | [`ObjectCache`] |
//!
//! A dropped buffer returns to its pool, so buffers cannot leak. A hot path frees whole bursts into its
//! [`PoolCache`] instead, at a few cycles per buffer.
//!
//! ```
//! use pollux_mempool::{Burst, Mempool, PoolConfig};
//!
//! let pool = Mempool::new(PoolConfig { buffers: 1024, ..PoolConfig::default() })?;
//! let mut cache = pool.cache(256)?;
//! let mut burst = Burst::<32>::new();
//! assert_eq!(cache.alloc_burst(&mut burst, 32), 32);
//! burst[0].append(5).unwrap().copy_from_slice(b"hello");
//! cache.free_burst(&mut burst);
//! drop(cache);
//! assert_eq!(pool.available(), 1024);
//! # Ok::<(), pollux_mempool::PoolError>(())
//! ```

mod box_ring;
mod buffers;
mod burst;
mod cache;
#[cfg(doctest)]
mod compile_fail;
mod free_list;
mod frozen;
mod frozen_ring;
pub mod iova;
mod local_cache;
mod mbuf;
mod mbuf_map;
mod mbuf_ring;
mod metadata;
mod objects;
mod pool;
pub mod prefetch;
pub mod region;
mod returns;
pub mod ring;
mod ring_state;
mod sync;
pub mod time;

pub use box_ring::{BoxConsumer, BoxProducer, box_ring};
pub use burst::{Burst, BurstMut};
pub use cache::PoolCache;
pub use frozen::Frozen;
pub use frozen_ring::{FrozenConsumer, FrozenProducer, frozen_ring};
pub use iova::{Iova, IovaMap};
pub use mbuf::{ChecksumRequest, Mbuf, MbufFlags, Segments};
pub use mbuf_map::{Arrivals, MbufMap, MbufSlot, WINDOW};
pub use mbuf_ring::{MbufConsumer, MbufProducer, mbuf_ring};
pub use metadata::{Metadata, Network, Transport};
pub use objects::ObjectCache;
pub use pool::{BufferLayout, MAX_BUFFERS, MAX_DATA_ROOM, Mempool, PoolConfig, PoolError, PoolId};
pub use region::{MemoryRegion, RegionError};

/// The example of the page that the package shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
