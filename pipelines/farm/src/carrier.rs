//! Carriers: what moves the messages of the members of a loop.
//!
//! A loop has some members of the farm, and one carrier: [`Ethernet`] sends frames over the queues
//! of ports. Memory access over a network fits the same trait: a transfer is then a put, and its
//! arrival a completion.

mod arrival;
mod damage;
mod ethernet;
mod frame;
mod payload;
mod way;

pub use arrival::{Arrival, Carrier};
pub use damage::Damage;
pub use ethernet::{CarrierError, Ethernet, EthernetConfig, Routes, Unsent};
pub use frame::{ETHERNET, ETHERTYPE, address_of, mac_of};
pub use payload::Payload;
