//! Carriers: what moves the messages of the members of a loop.
//!
//! A loop has some members of the farm, and one carrier: [`Ethernet`] sends frames over the queues
//! of ports. Memory access over a network fits the same trait: a transfer is then a put, and its
//! arrival a completion.

mod arrival;
mod damage;
mod error;
mod ethernet;
mod frame;
mod handover;
mod lines;
mod payload;
mod routes;
mod unsent;
mod way;

pub use arrival::{Arrival, Carrier};
pub use damage::Damage;
pub use error::CarrierError;
pub use ethernet::{Ethernet, EthernetConfig};
pub use frame::{ETHERNET, ETHERTYPE, address_of, mac_of};
pub use handover::Handover;
pub use payload::{Payload, Payloads};
pub use routes::Routes;
pub use unsent::Unsent;
