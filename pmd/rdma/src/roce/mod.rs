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
//! ranges. The rest of a queue pair is the loop's: [the requester](requester) sends what the program has
//! posted, [the responder](responder) executes what the peer has. The control side hands queue pairs over
//! by a [mailbox](mailbox).

mod congestion;
mod connection;
mod counts;
mod drops;
mod endpoint;
mod events;
mod handle;
mod mailbox;
mod management;
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
pub use management::{MAD_BYTES, Mad};
pub use poll::RoceLoop;
