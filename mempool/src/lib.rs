//! Memory for poll-mode packet I/O: DMA-able regions, packet buffers, pools and rings.
//!
//! | what | type |
//! | --- | --- |
//! | locked, NUMA-bound memory that can be shared by file descriptor | [`MemoryRegion`] |
//! | how a device addresses that memory | [`IovaMap`] |
//! | a packet buffer with exactly one owner | [`Mbuf`] |
//! | a fixed array of owned buffers, the unit of receive and transmit | [`Burst`] |
//! | a read-only, cloneable buffer, and `bytes::Bytes` without a copy | [`Frozen`] |
//! | the shared depot of free buffers | [`Mempool`] |
//! | a poll loop's own stock of free buffers | [`PoolCache`] |
//! | lock-free queues of buffers or descriptors | [`ring`] |
//! | a queue of boxes that change their owner in place | [`box_ring`](fn@box_ring) |
//! | a thread's own stock of free descriptors | [`ObjectCache`] |
//!
//! A buffer that is dropped goes back to its pool by itself, so losing one is not possible; a hot
//! path frees whole bursts into its [`PoolCache`] instead, which costs a few cycles a buffer.
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

mod beside;
mod box_ring;
mod buffers;
mod burst;
mod cache;
mod depot;
mod ends;
mod frozen;
pub mod hint;
pub mod iova;
mod mbuf;
mod mbuf_ring;
#[cfg(doctest)]
mod misuse;
mod objects;
mod pool;
pub mod region;
mod returns;
pub mod ring;
mod stock;
mod sync;
pub mod time;

pub use beside::{Arrivals, Beside, Element, WINDOW};
pub use box_ring::{BoxConsumer, BoxProducer, box_ring};
pub use burst::{Burst, BurstMut};
pub use cache::PoolCache;
pub use frozen::Frozen;
pub use iova::{Iova, IovaMap};
pub use mbuf::{ChecksumRequest, Mbuf, MbufFlags, Segments};
pub use mbuf_ring::{MbufConsumer, MbufProducer, mbuf_ring};
pub use objects::ObjectCache;
pub use pool::{MAX_BUFFERS, MAX_ROOM, Mempool, PoolConfig, PoolError, PoolId, Rooms};
pub use region::{MemoryRegion, RegionError};
