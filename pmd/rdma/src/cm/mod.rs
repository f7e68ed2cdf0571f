//! Connection management (RDMA CM): connections by IP address and port, agreed upon by datagrams of queue
//! pair 1, as Linux's `rdma_cm` does (InfiniBand, chapter 12; RDMA IP CM Service, annex A11).
//!
//! ```text
//!  active                         passive
//!    connect       -- REQ -->     Requested
//!                                 accept
//!    Accepted      <-- REP --     confirm
//!    confirm       -- RTU -->     Established
//!    disconnect    -- DREQ -->    Disconnected
//!    Disconnected  <-- DREP --
//! ```
//!
//! [`ConnectionManager`] has no sockets, no queue pairs and no clock: datagrams and time go in, datagrams
//! and events come out. It repeats a message until there is an answer, and answers a repeated message as
//! it did the first time. Reliable connections only.
//!
//! ```
//! use std::net::Ipv4Addr;
//!
//! use pollux_pmd::mempool::time::Ns;
//! use pollux_rdma::cm::{CmEvent, CmOptions, ConnectionManager, Offer};
//! use pollux_rdma::{Mad, PathOptions, QpNumber};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let hosts = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
//! let mut active = ConnectionManager::new(CmOptions::new(hosts[0]))?;
//! let mut passive = ConnectionManager::new(CmOptions::new(hosts[1]))?;
//! passive.listen(7174);
//! let offer = |qp| Offer {
//!     qp,
//!     path: PathOptions::default(),
//!     answers: 16,
//! };
//! let numbers = [17, 18].map(|number| QpNumber::new(number).expect("24 bits"));
//! let now = Ns(0);
//! active.connect(hosts[1], 7174, &offer(numbers[0]), b"hello", now)?;
//!
//! let req = active.transmit().ok_or("a request")?;
//! assert_eq!(req.host, hosts[1]);
//! passive.receive(&Mad { host: hosts[0], ..req }, now);
//! if let Some(CmEvent::Requested { id, private, .. }) = passive.event() {
//!     assert_eq!(private[..5], *b"hello");
//!     let agreed = passive.accept(id, &offer(numbers[1]), &[])?;
//!     assert_eq!(agreed.peer.number, numbers[0]);
//!     // Here the queue pair is connected.
//!     passive.confirm(id, now)?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The starting PSN of a message is the number that the receiver of the message sends first: Linux does
//! so. So each end chooses the peer's first number, and [`Agreed`] has this end's in its path.

mod connection;
mod event;
mod layouts;
mod manager;
mod receive;
pub use event::{Agreed, CmDrops, CmError, CmEvent, ConnectionId, Failure, Offer, Reason};
pub use manager::{CmOptions, ConnectionManager};

// By two attributes: clippy knows a test by the first.
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
