//! Network endpoint: makes a port a host on its network, and received frames frames of streams.
//!
//! | item | what it does |
//! | --- | --- |
//! | [`Classifier`] | classifies frames and reassembles IPv4 fragments |
//! | [`Receiver`] | classifies, answers by the endpoints, and demultiplexes datagrams to streams |
//! | [`PortEndpoint`] | owns the transmit queue of a port: answers ARP and ping, joins multicast groups |
//! | [`ReceiveLoop`], [`Lane`] | receive on further cores, for the loop that has the `Receiver` |
//! | [`Neighbour`] | learns MAC address and port of the host that answers are sent to |
//!
//! A poll loop passes each received frame to [`Receiver::receive`]. From time to time it calls
//! [`PortEndpoint::report_groups`], [`PortEndpoint::retry`], [`Receiver::request_neighbour`] and
//! [`Receiver::expire`]. All times are those of the loop, from its start on; for a recording, the
//! time of capture. None of this allocates after the construction.
//!
//! Ports are numbered by their place in the list of endpoints.
//!
//! ```
//! use std::net::{Ipv4Addr, SocketAddrV4};
//!
//! use pollux_mempool::time::Ns;
//! use pollux_mempool::{Burst, Mempool, PoolConfig};
//! use pollux_pmd::endpoint::{Classifier, PortEndpoint, Receiver};
//! use pollux_pmd::net::{MacAddr, ParseOptions, UDP_HEADERS, UdpEndpoint, UdpTemplate};
//! use pollux_pmd::stream::{DemuxBuilder, StreamId};
//! use pollux_pmd::{PortConfig, Registry, StartedPort};
//!
//! let pool = Mempool::new(PoolConfig::default())?;
//! let port = Registry::builtin().open("loopback")?.configure(PortConfig::new(pool.clone()))?;
//! let capabilities = port.capabilities();
//! let StartedPort { port, mut rx, mut tx } = port.start()?;
//! let mut cache = pool.cache(64)?;
//!
//! // A frame to UDP port 9000, which is stream 0, on the loopback.
//! let host = |host, port| UdpEndpoint {
//!     mac: MacAddr([2, 0, 0, 0, 0, host]),
//!     socket: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host), port),
//! };
//! let mut frame = [0; UDP_HEADERS + 64];
//! UdpTemplate::new(host(2, 7), host(1, 9000)).write(&mut frame, 64);
//! let mut burst = Burst::<32>::new();
//! burst.push(cache.alloc_from(&frame).ok_or("no buffer")?).map_err(|_| "no room")?;
//! tx[0].tx(&mut cache, &mut burst);
//!
//! let demux = DemuxBuilder::new().port(9000, StreamId(0)).build()?;
//! let mut receiver = Receiver::new(Classifier::new(ParseOptions::default()), demux, None);
//! let ip = Ipv4Addr::new(10, 0, 0, 1);
//! let mut endpoints = [PortEndpoint::new(&capabilities, tx.pop(), ip)];
//! rx[0].rx(&mut cache, &mut burst);
//! burst.take_all(|mbuf| {
//!     let frame = receiver.receive(mbuf, Ns(0), 0, &mut endpoints, &mut cache);
//!     let frame = frame.expect("a frame of a stream");
//!     assert_eq!((frame.stream, frame.len), (StreamId(0), 64));
//!     cache.free(frame.mbuf);
//!     receiver.tally().count_delivered(1);
//! });
//! port.stop(rx, endpoints.into_iter().filter_map(PortEndpoint::into_tx).collect())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod classifier;
mod neighbour;
mod port_endpoint;
mod receive_loop;
mod receiver;

pub use classifier::{Classified, Classifier};
pub use neighbour::{Neighbour, Route};
pub use port_endpoint::{PortEndpoint, leave_groups};
pub use receive_loop::{Lane, LaneFrame, ReceiveCounts, ReceiveLoop};
pub use receiver::{Receiver, StreamFrame};
