//! Remote memory access: memory that a peer reads and writes without the host's program.
//!
//! | item | what it is |
//! | --- | --- |
//! | [`Endpoint`] | registers memory, makes queue pairs and connects them: a back end behind one API |
//! | [`Memory`], [`Buffer`] | memory that a peer may access, and a registered range of it with its [`Key`] |
//! | [`QueuePair`] | requests ([`Put`], [`Get`], [`Message`]), receives, the doorbell, events |
//! | [`Event`] | a request is done, a message was received, or the queue pair has failed |
//!
//! The names are those of the networks that the design follows: `register_buffer`, put, send and
//! `wait_event` of APEnet, NAP (a message without an address), PUT, GET, queue pairs and doorbells of the
//! cHPP controller. In the words of verbs a PUT is an RDMA WRITE, a GET an RDMA READ, a NAP a SEND.
//!
//! Posting never blocks and never enters the kernel: a full queue hands the request back. Requests of a
//! queue pair are executed in order, and are done in order. A PUT or message behind a GET begins when the
//! GET has all of its data: each has what verbs call a fence.

mod access;
mod address;
mod buffer;
mod bytes;
pub mod cm;
mod copy;
mod endpoint;
mod event;
pub mod exchange;
mod layouts;
mod mad;
mod memory;
mod queue_pair;
mod random;
mod registrations;
mod request;
pub mod roce;
pub mod shm;
mod sync;
mod work_queue;

pub use access::{Access, Key, RemoteBuffer};
pub use address::{Mtu, Psn, QpAddress, QpKind, QpNumber};
pub use buffer::Buffer;
pub use endpoint::{ConnectError, Endpoint, PathOptions, QpError, QpOptions, RegisterError};
pub use event::{Done, Event, Failed, Operation, Received, Status};
pub use mad::{MAD_BYTES, Mad};
pub use memory::{Memory, OutOfBounds};
pub use queue_pair::{QueuePair, Refusal, Refused, Wait};
pub use request::{Get, Local, Message, Payload, Put, Receive};
