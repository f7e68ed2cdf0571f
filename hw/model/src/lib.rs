//! The card in software, and what it has in common with one that is simulated from its RTL.
//!
//! [`SimulatedCard`] is a card without a machine around it: registers, wires, time, and a [`Host`]
//! whose memory it reaches. Whoever drives one cannot tell which it is. This crate knows nothing of
//! the driver, so that the driver's own tests can be built with it.

pub mod layouts;
mod map;
pub mod registers;
mod simulated;
mod soft;

/// The commit that simulated cards say they were built from: none, so that a test knows it.
pub const GIT_HASH: [u8; 20] =
    *b"\x01\x23\x45\x67\x89\xab\xcd\xef\xfe\xdc\xba\x98\x76\x54\x32\x10\x0f\x1e\x2d\x3c";

pub use map::{Block, Register};
pub use simulated::{FrameEnd, Host, LinkSignal, ReadError, SimulatedCard, TimingInput, WireFrame};
pub use soft::SoftCard;
