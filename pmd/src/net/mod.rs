//! Protocol headers: views, checksums, the parser of the hot path, a UDP header template, and
//! the responder and the multicast memberships that keep a polled port reachable.
//!
//! Nothing here allocates in a loop. All but [`classify`], [`finish_checksum`] and [`Reassembler`] works on byte slices and plain integers, and knows
//! neither buffers nor ports.

mod arp;
pub mod checksum;
mod classify;
pub mod headers;
pub mod igmp;
mod mac;
mod parse;
mod reassemble;
mod responder;
mod template;
mod template_v6;
#[cfg(test)]
pub(crate) mod testing;
mod unfinished;

pub use arp::ArpTable;
pub use checksum::Checksum;
pub use classify::classify;
pub use mac::{MacAddr, MacError};
pub use parse::{Addresses, ParseOptions, Parsed, Udp, parse};
pub use reassemble::{Reassembler, ReassemblyConfig, ReassemblyError, Whole};
pub use responder::Responder;
pub use template::{MAX_PAYLOAD, UDP_HEADERS, UdpChecksum, UdpEndpoint, UdpTemplate};
pub use template_v6::{MAX_PAYLOAD_V6, UDP_HEADERS_V6, UdpEndpointV6, UdpTemplateV6};
pub use unfinished::finish_checksum;
pub(crate) use unfinished::finish_checksum_at;

use crate::ledger::Cause;

/// Why [`parse`] refused a frame. Each is one drop cause of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Reject {
    /// A length or a version contradicts the bytes that are there.
    #[error("malformed: a header's length or version contradicts the frame")]
    Malformed,
    /// An IP fragment, the first one included: streams carry whole datagrams only. A
    /// [`Reassembler`] can make one of them.
    #[error("IP fragment: let the sender keep datagrams within the MTU, or reassemble them")]
    IpFragment,
    /// The IPv4 header checksum or the UDP checksum is wrong.
    #[error("bad checksum")]
    BadChecksum,
    /// A unicast datagram for another address.
    #[error("addressed to another host")]
    NotForUs,
    /// Well-formed, but of a kind that is not parsed: IPv6 extension headers, three VLAN tags.
    #[error("unsupported header")]
    Unsupported,
}

impl From<Reject> for Cause {
    fn from(reject: Reject) -> Self {
        match reject {
            Reject::Malformed => Self::Malformed,
            Reject::IpFragment => Self::IpFragment,
            Reject::BadChecksum => Self::BadChecksum,
            Reject::NotForUs => Self::NotForUs,
            Reject::Unsupported => Self::Unsupported,
        }
    }
}
