//! How frames leave for the trigger, and how its decisions come back.

mod api;
mod neighbour;
mod port;
mod socket;

pub use api::{Link, SentCounts};
#[cfg(feature = "images")]
pub(crate) use neighbour::Neighbour;
pub use neighbour::NoAnswer;
pub use port::{CAPTURE_EPOCH, LinkError, PortLink};
#[cfg(feature = "images")]
pub(crate) use socket::connect;
pub use socket::{SocketError, SocketLink};
