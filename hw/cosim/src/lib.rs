//! A simulated card as a device that a driver takes over: registers, memory with addresses of its
//! own, interrupts and time, all in this process and in lock step.
//!
//! | | module |
//! | --- | --- |
//! | [`CosimDevice`] | a [`SimulatedCard`] behind the traits of [`pollux_pmd::bus`] | `device.rs`, `memory.rs` |
//! | [`port`] | such a card as a port, with a peer at its wire | `port.rs` |
//! | [`suite`] | required behaviour of every simulated card | `suite/` |
//! | `VerilatedCard` | the card from its RTL, with the feature `verilated` | `verilated/` |
//! | `evb` | the ring of the event builder from its RTL, beside the roles of `pollux-farm` | `evb/` |
//! | `pcie` | its host bus: permitted behaviour of a host, and rules of the card | `pcie/` |

mod device;
#[cfg(has_verilator)]
pub mod evb;
mod memory;
// Without the card from its RTL only the tests of its host use them.
#[cfg(any(has_verilator, test))]
#[cfg_attr(
    not(has_verilator),
    expect(dead_code, reason = "the card from its RTL")
)]
pub mod pcie;
#[cfg(any(has_verilator, test))]
mod pins;
pub mod port;
pub mod rig;
pub mod suite;
mod touched;
#[cfg(has_verilator)]
pub mod verilated;

pub use device::{CosimBus, CosimClock, CosimDevice};
pub use memory::HostMemory;
pub use pollux_card_model::{
    FrameEnd, Host, LinkSignal, ReadError, SimulatedCard, SoftCard, TimingInput, WireFrame,
};
