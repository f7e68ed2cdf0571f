//! How packets leave for the receiver: through the queues of a port, through the kernel's UDP sockets, or
//! into the receiver's memory.

mod api;
mod port;
mod rdma;
mod socket;

pub(crate) use api::GRACE;
pub use api::{PacketLink, SentCounts, StackCounts};
pub use port::{FRAME_OVERHEAD, PortError, PortLink};
pub use rdma::{Connections, RdmaError, RdmaLink, RdmaOptions};
pub use socket::SocketLink;
