//! Event building at megahertz rates by scheduled traffic, after the LHCb Level-1 farm
//! (D. Atanasov, *Design and Implementation of a System for Data Traffic Management in a Real-Time
//! Processing Farm Operated at 1 MHz*, Heidelberg 2009; "the thesis" below).
//!
//! Feeding nodes hold a fragment of every event. A scheduler gives each event to one computing
//! node, so that no receiver, column or link is overrun.
//!
//! Each role is a state machine that sees messages and the time ([`role::Role`]): it allocates
//! nothing after its start, and does no input or output. The same code runs over ports, runs in a
//! simulation, and is the reference for the gateware.

pub mod carrier;
pub mod feeder;
pub mod fragments;
pub mod members;
pub mod message;
pub mod node;
mod place;
pub mod results;
pub mod role;
pub mod rtt;
pub mod scheduler;
pub mod sim;
pub mod time;
pub mod topology;
pub mod trigger;
pub mod wire;
