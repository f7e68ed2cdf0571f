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
mod reject;
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
pub use reject::Reject;
pub use responder::Responder;
pub use template::{MAX_PAYLOAD, UDP_HEADERS, UdpChecksum, UdpEndpoint, UdpTemplate};
pub use template_v6::{MAX_PAYLOAD_V6, UDP_HEADERS_V6, UdpEndpointV6, UdpTemplateV6};
pub use unfinished::finish_checksum;
pub(crate) use unfinished::finish_checksum_at;
