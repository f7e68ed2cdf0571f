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
//! The starting PSN of a message is the number that the receiver of the message sends first: Linux does
//! so. So each end chooses the peer's first number, and [`Agreed`] has this end's in its path.

mod connection;
mod event;
mod mad;
mod manager;
mod receive;
pub use event::{
    Agreed, CmDrops, CmError, CmEvent, ConnectionId, Failure, Offer, Outgoing, Reason,
};
pub use mad::MAD_BYTES;
pub use manager::{CmOptions, ConnectionManager};

#[cfg(test)]
mod tests;
