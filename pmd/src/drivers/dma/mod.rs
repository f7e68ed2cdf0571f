//! What the drivers of devices share that reach our buffers by themselves: where these are for
//! the device, frames of several buffers, and copies.

mod addresses;
mod copy;
mod frame;

pub(crate) use addresses::DeviceAddresses;
pub(crate) use copy::copy_frame;
pub(crate) use frame::{Assembly, alloc};
