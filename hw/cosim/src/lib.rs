//! A simulated card as a device that a driver takes over: registers, memory with addresses of its
//! own, interrupts and time, all in this process and in lock step.
//!
//! | | module |
//! | --- | --- |
//! | [`CosimDevice`] | a [`SimulatedCard`] behind the traits of [`pollux_pmd::bus`] | `device.rs`, `memory.rs` |

mod device;
mod memory;

pub use device::{CosimBus, CosimClock, CosimDevice};
pub use memory::HostMemory;
pub use pollux_card_model::{
    FrameEnd, Host, LinkSignal, ReadError, SimulatedCard, TimingInput, WireFrame,
};
