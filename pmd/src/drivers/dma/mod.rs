//! DMA support for drivers: device addresses of packet buffers, frames of several buffers, and
//! copies.

mod addresses;
mod area;
mod buffer;
mod copy;
mod frame;

pub use addresses::DeviceAddresses;
pub use area::DmaArea;
pub use buffer::DmaBuffer;
pub use copy::copy_frame;
pub use frame::{Assembly, alloc};
