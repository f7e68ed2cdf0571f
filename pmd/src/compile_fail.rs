//! Compile-fail tests: each program that must not compile stands beside the nearest one that does.
//! The two differ in one line, so that the failure is caused by that line.
//!
//! # A frame that was sent is no longer accessible
//! ```
//! # use pollux_pmd::mempool::{Burst, Mempool, PoolConfig};
//! # let pool = Mempool::new(PoolConfig::default()).unwrap();
//! let (mbuf, mut burst) = (pool.alloc().unwrap(), Burst::<32>::new());
//! let _ = mbuf.data();
//! burst.push(mbuf).unwrap();
//! ```
//! ```compile_fail,E0382
//! # use pollux_pmd::mempool::{Burst, Mempool, PoolConfig};
//! # let pool = Mempool::new(PoolConfig::default()).unwrap();
//! let (mbuf, mut burst) = (pool.alloc().unwrap(), Burst::<32>::new());
//! burst.push(mbuf).unwrap();
//! let _ = mbuf.data();
//! ```
//!
//! ```
//! # use pollux_pmd::mempool::{Burst, Mempool, PoolConfig};
//! # use pollux_pmd::{PortConfig, Registry};
//! # let pool = Mempool::new(PoolConfig::default()).unwrap();
//! # let (mut cache, mut burst) = (pool.cache(32).unwrap(), Burst::<8>::new());
//! # cache.alloc_burst(&mut burst, 1);
//! # let port = Registry::builtin().open("null").unwrap();
//! # let mut tx = port.configure(PortConfig::new(pool)).unwrap().start().unwrap().tx;
//! let frame = &burst[0];
//! let _ = frame.data();
//! tx[0].tx(&mut cache, &mut burst);
//! ```
//! ```compile_fail,E0502
//! # use pollux_pmd::mempool::{Burst, Mempool, PoolConfig};
//! # use pollux_pmd::{PortConfig, Registry};
//! # let pool = Mempool::new(PoolConfig::default()).unwrap();
//! # let (mut cache, mut burst) = (pool.cache(32).unwrap(), Burst::<8>::new());
//! # cache.alloc_burst(&mut burst, 1);
//! # let port = Registry::builtin().open("null").unwrap();
//! # let mut tx = port.configure(PortConfig::new(pool)).unwrap().start().unwrap().tx;
//! let frame = &burst[0];
//! tx[0].tx(&mut cache, &mut burst);
//! let _ = frame.data();
//! ```
//!
//! # A buffer has one owner
//! ```
//! # use pollux_pmd::mempool::{Mempool, PoolConfig};
//! # let pool = Mempool::new(PoolConfig::default()).unwrap();
//! let frozen = pool.alloc().unwrap().freeze();
//! let other = frozen.clone();
//! ```
//! ```compile_fail,E0599
//! # use pollux_pmd::mempool::{Mempool, PoolConfig};
//! # let pool = Mempool::new(PoolConfig::default()).unwrap();
//! let mbuf = pool.alloc().unwrap();
//! let other = mbuf.clone();
//! ```
//!
//! # Shared buffers are read-only
//! ```
//! # use pollux_pmd::mempool::{Mempool, PoolConfig};
//! # let pool = Mempool::new(PoolConfig::default()).unwrap();
//! let mut frozen = pool.alloc().unwrap().freeze();
//! let _ = frozen.data();
//! ```
//! ```compile_fail,E0599
//! # use pollux_pmd::mempool::{Mempool, PoolConfig};
//! # let pool = Mempool::new(PoolConfig::default()).unwrap();
//! let mut frozen = pool.alloc().unwrap().freeze();
//! let _ = frozen.data_mut();
//! ```
//!
//! # A queue is polled by one thread
//! ```
//! # use pollux_pmd::mempool::{Burst, Mempool, PoolConfig};
//! # use pollux_pmd::{PortConfig, Registry};
//! # let pool = Mempool::new(PoolConfig::default()).unwrap();
//! # let port = Registry::builtin().open("null").unwrap();
//! # let config = PortConfig { rx_queues: 2, ..PortConfig::new(pool.clone()) };
//! let mut rx = port.configure(config).unwrap().start().unwrap().rx;
//! let [one, two] = &mut rx[..] else { return };
//! std::thread::scope(|s| {
//!     s.spawn(|| one.rx(&mut pool.cache(32).unwrap(), &mut Burst::<8>::new()));
//!     s.spawn(|| two.rx(&mut pool.cache(32).unwrap(), &mut Burst::<8>::new()));
//! });
//! ```
//! ```compile_fail,E0499
//! # use pollux_pmd::mempool::{Burst, Mempool, PoolConfig};
//! # use pollux_pmd::{PortConfig, Registry};
//! # let pool = Mempool::new(PoolConfig::default()).unwrap();
//! # let port = Registry::builtin().open("null").unwrap();
//! # let config = PortConfig { rx_queues: 2, ..PortConfig::new(pool.clone()) };
//! let mut rx = port.configure(config).unwrap().start().unwrap().rx;
//! let [one, two] = &mut rx[..] else { return };
//! std::thread::scope(|s| {
//!     s.spawn(|| one.rx(&mut pool.cache(32).unwrap(), &mut Burst::<8>::new()));
//!     s.spawn(|| one.rx(&mut pool.cache(32).unwrap(), &mut Burst::<8>::new()));
//! });
//! ```
//! A queue cannot be read from another thread while it is polled:
//! ```
//! fn goes_to_another_thread<T: Send>() {}
//! goes_to_another_thread::<pollux_pmd::RxQueue>();
//! goes_to_another_thread::<pollux_pmd::TxQueue>();
//! ```
//! ```compile_fail,E0277
//! fn is_shared_between_threads<T: Sync>() {}
//! is_shared_between_threads::<pollux_pmd::RxQueue>();
//! ```
//! ```compile_fail,E0277
//! fn is_shared_between_threads<T: Sync>() {}
//! is_shared_between_threads::<pollux_pmd::TxQueue>();
//! ```
//!
//! # A running port keeps its configuration
//! ```
//! # use pollux_pmd::mempool::{Mempool, PoolConfig};
//! # use pollux_pmd::{PortConfig, Registry, StartedPort};
//! # let config = PortConfig::new(Mempool::new(PoolConfig::default()).unwrap());
//! # let port = Registry::builtin().open("null").unwrap();
//! let StartedPort { port, rx, tx } = port.configure(config.clone()).unwrap().start().unwrap();
//! let port = port.stop(rx, tx).unwrap().deconfigure();
//! let port = port.configure(config).unwrap();
//! ```
//! ```compile_fail,E0599
//! # use pollux_pmd::mempool::{Mempool, PoolConfig};
//! # use pollux_pmd::{PortConfig, Registry, StartedPort};
//! # let config = PortConfig::new(Mempool::new(PoolConfig::default()).unwrap());
//! # let port = Registry::builtin().open("null").unwrap();
//! let StartedPort { port, rx, tx } = port.configure(config.clone()).unwrap().start().unwrap();
//! let port = port.configure(config).unwrap();
//! ```
//! A port does not stop while a loop holds one of its queues:
//! ```
//! # use pollux_pmd::mempool::{Burst, Mempool, PoolConfig};
//! # use pollux_pmd::{PortConfig, Registry, StartedPort};
//! # let pool = Mempool::new(PoolConfig::default()).unwrap();
//! # let (mut cache, mut burst) = (pool.cache(32).unwrap(), Burst::<8>::new());
//! # let port = Registry::builtin().open("null").unwrap();
//! # let port = port.configure(PortConfig::new(pool)).unwrap();
//! let StartedPort { port, mut rx, tx } = port.start().unwrap();
//! rx[0].rx(&mut cache, &mut burst);
//! port.stop(rx, tx).unwrap();
//! ```
//! ```compile_fail,E0382
//! # use pollux_pmd::mempool::{Burst, Mempool, PoolConfig};
//! # use pollux_pmd::{PortConfig, Registry, StartedPort};
//! # let pool = Mempool::new(PoolConfig::default()).unwrap();
//! # let (mut cache, mut burst) = (pool.cache(32).unwrap(), Burst::<8>::new());
//! # let port = Registry::builtin().open("null").unwrap();
//! # let port = port.configure(PortConfig::new(pool)).unwrap();
//! let StartedPort { port, mut rx, tx } = port.start().unwrap();
//! port.stop(rx, tx).unwrap();
//! rx[0].rx(&mut cache, &mut burst);
//! ```
//!
//! # Only a configured port starts
//! ```compile_fail,E0599
//! # use pollux_pmd::Registry;
//! let port = Registry::builtin().open("null").unwrap();
//! let started = port.start().unwrap();
//! ```
//!
//! # A region lives as long as a buffer in it
//! ```
//! # use pollux_pmd::mempool::{MemoryRegion, Mempool, PoolConfig};
//! # let config = PoolConfig { buffers: 64, ..PoolConfig::default() };
//! let region = MemoryRegion::builder(1 << 20).build().unwrap();
//! let pool = Mempool::in_region(region, &config).unwrap();
//! let mbuf = pool.alloc().unwrap();
//! drop(pool);
//! let _ = mbuf.data();
//! ```
//! ```compile_fail,E0382
//! # use pollux_pmd::mempool::{MemoryRegion, Mempool, PoolConfig};
//! # let config = PoolConfig { buffers: 64, ..PoolConfig::default() };
//! let region = MemoryRegion::builder(1 << 20).build().unwrap();
//! let pool = Mempool::in_region(region, &config).unwrap();
//! let mbuf = pool.alloc().unwrap();
//! drop(region);
//! let _ = mbuf.data();
//! ```
//! The same with a queue that receives into the region:
//! ```
//! # use pollux_pmd::mempool::{MemoryRegion, Mempool, PoolConfig};
//! # use pollux_pmd::{PortConfig, Registry};
//! # let config = PoolConfig { buffers: 64, ..PoolConfig::default() };
//! let region = MemoryRegion::builder(1 << 20).build().unwrap();
//! let pool = Mempool::in_region(region, &config).unwrap();
//! let port = Registry::builtin().open("null").unwrap();
//! let rx = port.configure(PortConfig::new(pool)).unwrap().start().unwrap().rx;
//! drop(rx);
//! ```
//! ```compile_fail,E0382
//! # use pollux_pmd::mempool::{MemoryRegion, Mempool, PoolConfig};
//! # use pollux_pmd::{PortConfig, Registry};
//! # let config = PoolConfig { buffers: 64, ..PoolConfig::default() };
//! let region = MemoryRegion::builder(1 << 20).build().unwrap();
//! let pool = Mempool::in_region(region, &config).unwrap();
//! let port = Registry::builtin().open("null").unwrap();
//! let rx = port.configure(PortConfig::new(pool)).unwrap().start().unwrap().rx;
//! drop(region);
//! ```
//! The program must promise how a peer uses the memory file of a region:
//! ```
//! # let region = pollux_pmd::mempool::MemoryRegion::builder(4096).build().unwrap();
//! // SAFETY: the descriptor is passed to no other process.
//! let fd = unsafe { region.fd() };
//! ```
//! ```compile_fail,E0133
//! # let region = pollux_pmd::mempool::MemoryRegion::builder(4096).build().unwrap();
//! let fd = region.fd();
//! ```
//!
//! # A device can write into memory only with a grant
//! Safe code cannot make a grant:
//! ```
//! // SAFETY: it is used for no device.
//! let grant = unsafe { pollux_pmd::MemoryGrant::new() };
//! ```
//! ```compile_fail,E0133
//! let grant = pollux_pmd::MemoryGrant::new();
//! ```
//! ```compile_fail,E0423
//! let grant = pollux_pmd::MemoryGrant(());
//! ```
//! ```compile_fail,E0277
//! fn is_made_from_nothing<T: Default>() {}
//! is_made_from_nothing::<pollux_pmd::MemoryGrant>();
//! ```
//! Without a grant no device gets memory, and no device without an IOMMU is opened:
//! ```
//! # use std::sync::Arc;
//! # use pollux_pmd::MemoryGrant;
//! # use pollux_pmd::bus::DmaMemory;
//! # use pollux_pmd::mempool::MemoryRegion;
//! fn give(device: &dyn DmaMemory, region: &Arc<MemoryRegion>, grant: MemoryGrant) {
//!     device.map(region, grant).map(drop).unwrap();
//! }
//! ```
//! ```compile_fail,E0061
//! # use std::sync::Arc;
//! # use pollux_pmd::MemoryGrant;
//! # use pollux_pmd::bus::DmaMemory;
//! # use pollux_pmd::mempool::MemoryRegion;
//! fn give(device: &dyn DmaMemory, region: &Arc<MemoryRegion>, grant: MemoryGrant) {
//!     device.map(region).map(drop).unwrap();
//! }
//! ```
//! ```
//! # use pollux_pmd::MemoryGrant;
//! # use pollux_pmd::bus::pci::Address;
//! # use pollux_pmd::bus::vfio::{VfioDevice, VfioOptions};
//! fn open(address: Address, options: &VfioOptions, grant: MemoryGrant) {
//!     VfioDevice::open(address, options, grant).map(drop).unwrap();
//! }
//! ```
//! ```compile_fail,E0061
//! # use pollux_pmd::MemoryGrant;
//! # use pollux_pmd::bus::pci::Address;
//! # use pollux_pmd::bus::vfio::{VfioDevice, VfioOptions};
//! fn open(address: Address, options: &VfioOptions, grant: MemoryGrant) {
//!     VfioDevice::open(address, options).map(drop).unwrap();
//! }
//! ```
//!
//! # The bytes of a receive buffer are readable while the buffer is held
//! ```
//! # use pollux_pmd::event::ClopBuffer;
//! fn sum(buffer: ClopBuffer) -> usize {
//!     let bytes = buffer.bytes();
//!     bytes.len()
//! }
//! ```
//! ```compile_fail,E0505
//! # use pollux_pmd::event::ClopBuffer;
//! fn sum(buffer: ClopBuffer) -> usize {
//!     let bytes = buffer.bytes();
//!     drop(buffer);
//!     bytes.len()
//! }
//! ```
