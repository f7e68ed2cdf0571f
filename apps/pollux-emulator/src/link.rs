//! How frames leave for the trigger, and how its decisions come back.

mod api;
mod port;
mod socket;

pub use api::{Link, SentCounts};
pub use port::{CAPTURE_EPOCH, LinkError, PortLink};
pub use socket::{SocketError, SocketLink};
