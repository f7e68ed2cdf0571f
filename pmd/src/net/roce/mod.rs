//! RoCEv2: InfiniBand transport packets in UDP datagrams (InfiniBand Architecture Specification, volume 1,
//! chapter 9, and its annex A17).
//!
//! | item | what it is |
//! | --- | --- |
//! | [`headers`] | views of the transport headers, byte for byte as on the wire |
//! | [`Opcode`] | opcode of a packet, with all that follows from it |
//! | [`Packet`] | a packet in the payload of a UDP datagram, its lengths checked |
//! | [`Syndrome`] | acknowledgement, negative acknowledgement, receiver not ready |
//! | [`icrc`] | invariant CRC of a packet |

pub mod headers;
pub mod icrc;
mod opcode;
mod packet;
mod syndrome;
#[cfg(test)]
mod tests;

pub use headers::{Aeth, Bth, Deth, ImmDt, Reth};
pub use opcode::{Opcode, Operation, Part, Service};
pub use packet::{Packet, PacketError};
pub use syndrome::{NakCode, RnrTimer, Syndrome};

/// UDP destination port of RoCEv2.
pub const UDP_PORT: u16 = 4791;
/// Default partition key: full member of the default partition.
pub const DEFAULT_PKEY: u16 = 0xffff;
/// Bytes of the ICRC, behind the payload.
pub const ICRC_LEN: usize = 4;
