//! Requests of a queue pair.

use crate::access::{Key, RemoteBuffer};

/// A range of registered memory that the endpoint itself reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    /// Key of the [`Buffer`](crate::Buffer).
    pub key: Key,
    /// First byte, counted from the start of the buffer.
    pub offset: u64,
    /// Bytes, up to 2^31.
    pub len: u32,
}

/// Where the data of a message are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// In the descriptor: copied when the request is posted. At most
    /// [`QueuePair::IMMEDIATE`](crate::QueuePair::IMMEDIATE) bytes.
    Immediate(&'a [u8]),
    /// In registered memory, which is read when the packets are sent, more than once if packets are
    /// lost: it has to stay as it is until the request is done.
    Indirect(Local),
}

/// Writes a range of the peer's memory (PUT, RDMA WRITE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put<'a> {
    /// The program's name for the request: its event has it.
    pub cookie: u64,
    /// The data.
    pub payload: Payload<'a>,
    /// Where they go.
    pub to: RemoteBuffer,
    /// With it the peer has an event when all data are there. The event uses up one of its receives.
    pub immediate: Option<u32>,
}

/// Reads a range of the peer's memory (GET, RDMA READ). Reliable connections only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Get {
    /// The program's name for the request: its event has it.
    pub cookie: u64,
    /// Where the data come from.
    pub from: RemoteBuffer,
    /// Where they go.
    pub to: Local,
}

/// Sends a message to the buffer of the peer's next receive (NAP, SEND).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The program's name for the request: its event has it.
    pub cookie: u64,
    /// The data.
    pub payload: Payload<'a>,
    /// A number that the peer's event has.
    pub immediate: Option<u32>,
}

/// A buffer for the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receive {
    /// The program's name for the receive: its event has it.
    pub cookie: u64,
    /// Where the data go; of no length for the immediate of a PUT alone.
    pub to: Local,
}
