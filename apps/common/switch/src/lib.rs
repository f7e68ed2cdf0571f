//! A learning Ethernet switch between ports: a poll loop that forwards each frame to the port where
//! its destination was last seen as a source, and floods what it does not know (IEEE 802.1D-2004,
//! clause 7).
//!
//! Each output has a rate and a bounded queue, so that frames that several inputs send to one output
//! at once are lost as in a real switch, and counted.
//!
//! | item | what |
//! | --- | --- |
//! | [`Switch`] | the engine: [`Switch::poll`] is one iteration of a poll loop |
//! | [`SwitchPort`] | the queues of one port |
//! | [`SwitchConfig`] | rate, buffer, address table |
//! | [`SwitchView`], [`SwitchReport`] | counters, readable while the switch runs |
//!
//! The ledger counts received frames: each is delivered when the frame itself or, flooded, one of
//! its copies has left, or dropped by a cause. [`SwitchReport`] counts the copies by output.
//!
//! VLAN tags and priorities are not looked at, and there is no spanning tree: a loop of switches
//! floods without end.

mod addresses;
mod config;
mod counts;
mod filter;
mod output;
mod pace;
mod switch;

pub use config::{SwitchConfig, SwitchError};
pub use counts::{OutputReport, SwitchReport, SwitchView};
pub use switch::{Switch, SwitchPort};
