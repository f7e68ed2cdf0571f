//! Protocol headers: views, checksums, the parser of the hot path, a UDP header template, and the
//! ARP and ping responder and multicast membership of a polled port.
//!
//! No function allocates in a loop. All items but [`classify`], [`classify_and_describe`],
//! [`finish_checksum`] and [`Reassembler`] work on byte slices and plain integers, and depend on neither buffers nor ports.

mod arp;
pub mod checksum;
mod classify;
mod describe;
pub(crate) mod flow;
pub mod headers;
pub mod igmp;
mod mac;
mod parse;
mod partial_checksum;
mod reassemble;
mod reject;
mod responder;
pub mod roce;
mod template;
mod template_v6;

pub use arp::ArpTable;
pub use checksum::Checksum;
pub use classify::classify;
pub use describe::classify_and_describe;
pub use mac::{MacAddr, MacError};
pub use parse::{Addresses, ParseOptions, Parsed, Udp, parse};
pub use partial_checksum::finish_checksum;
pub(crate) use partial_checksum::finish_checksum_at;
pub use reassemble::{Reassembler, ReassemblyConfig, ReassemblyError, Whole};
pub use reject::Reject;
pub use responder::Responder;
pub use template::{MAX_PAYLOAD, UDP_HEADERS, UdpChecksum, UdpEndpoint, UdpTemplate};
pub use template_v6::{MAX_PAYLOAD_V6, UDP_HEADERS_V6, UdpEndpointV6, UdpTemplateV6};
