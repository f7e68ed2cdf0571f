//! How packets leave for the receiver: through the queues of a port, or through the kernel's UDP
//! sockets.

mod api;
mod port;
mod socket;

pub use api::{PacketLink, SentCounts};
pub use port::{FRAME_OVERHEAD, PortError, PortLink};
pub use socket::SocketLink;
