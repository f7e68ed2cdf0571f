//! RoCEv2 back end: an endpoint in software, on a receive and a transmit queue of any port.
//!
//! | item | what it is |
//! | --- | --- |
//! | [`RoceEndpoint`] | control side: registers memory, makes and connects queue pairs |
//! | [`RoceLoop`] | loop side: one lcore polls it |
//! | [`RoceCounts`] | counters |
//!
//! The services are those of InfiniBand (Architecture Specification, volume 1, chapter 9; RoCEv2: annex
//! A17), over IPv4: reliable connections with SEND, WRITE and READ, unreliable ones with SEND and WRITE.
//!
//! Program and loop share the work queues and the event queue of each queue pair, and the registered
//! ranges. The rest of a queue pair is the loop's: its requester sends what the program has posted, its
//! responder executes what the peer has. The control side hands queue pairs over by a mailbox.
//!
//! ```
//! use std::net::Ipv4Addr;
//!
//! use pollux_pmd::mempool::region::MemoryRegion;
//! use pollux_pmd::mempool::time::Ns;
//! use pollux_pmd::mempool::{Mempool, PoolConfig};
//! use pollux_pmd::{PortConfig, Registry, StartedPort};
//! use pollux_rdma::roce::{RoceEndpoint, RoceOptions};
//! use pollux_rdma::{Access, Event, Memory, PathOptions, Payload, Put, QpOptions, Status};
//!
//! let pool = Mempool::new(PoolConfig::default())?;
//! let config = PortConfig::new(pool.clone());
//! let port = Registry::builtin().open("loopback")?.configure(config)?;
//! let capabilities = port.capabilities();
//! let StartedPort { port, mut rx, mut tx } = port.start()?;
//! let queues = rx.pop().zip(tx.pop()).ok_or("no queues")?;
//!
//! // An endpoint, and two queue pairs of it that are connected to each other by the loopback.
//! let options = RoceOptions::new(Ipv4Addr::new(10, 0, 0, 1));
//! let cache = pool.cache(64)?;
//! let (control, mut poll) = RoceEndpoint::new(&options, &capabilities, queues, cache)?;
//! let mut endpoint = control.endpoint();
//! let mut a = endpoint.create_queue_pair(&QpOptions::default())?;
//! let b = endpoint.create_queue_pair(&QpOptions::default())?;
//! endpoint.connect(&a, &b.address(), &PathOptions::default())?;
//! endpoint.connect(&b, &a.address(), &PathOptions::default())?;
//!
//! let memory = Memory::new(MemoryRegion::builder(4096).build()?);
//! let buffer = endpoint.register_buffer(&memory, 0..4096, Access::WRITE)?;
//! let payload = Payload::Immediate(b"hits");
//! a.put(Put { cookie: 1, payload, to: buffer.remote().at(100), immediate: None })?;
//! a.doorbell();
//! // The loop of an lcore, with the time of its clock.
//! let mut now = Ns(0);
//! let event = loop {
//!     now.0 += 1000;
//!     poll.poll(now);
//!     if let Some(event) = a.poll_event() {
//!         break event;
//!     }
//! };
//! assert!(matches!(event, Event::Done(done) if done.status == Status::Ok));
//! let mut there = [0; 4];
//! buffer.read(100, &mut there)?;
//! assert_eq!(&there, b"hits");
//! drop((a, b));
//! let (rx, tx) = poll.into_queues();
//! port.stop(vec![rx], tx.into_iter().collect())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod congestion;
mod connection;
mod counts;
mod drops;
mod endpoint;
mod events;
mod handle;
mod idle;
mod mailbox;
mod management;
mod message;
mod output;
mod poll;
mod qp;
mod reads;
mod requester;
mod responder;
mod retry;
mod table;
mod wake;

pub use counts::{RoceCounts, RoceCountsView};
pub use endpoint::{QpIdentity, RoceEndpoint, RoceError, RoceOptions};
pub use poll::RoceLoop;
