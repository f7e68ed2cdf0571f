//! The software card, and its interface, which a simulation of the RTL shares.
//!
//! [`SimulatedCard`] is a card without a machine around it: registers, wires, time, and a [`Host`]
//! whose memory it reaches. A user cannot distinguish the two. This crate does not depend on
//! the driver, so that the driver's own tests can be built with it.

pub mod evb_registers;
pub mod layouts;
mod map;
pub mod registers;
mod simulated;
mod soft;

pub use map::{Block, Register};
pub use simulated::{
    FUNCTIONS, FrameEnd, GIT_HASH, Host, LinkSignal, ReadError, SimulatedCard, TimingInput,
    WireFrame,
};
pub use soft::SoftCard;
