//! Virtio network rings, driver and device side: virtio 1.2 (<https://docs.oasis-open.org/virtio>).
//!
//! The *driver* owns the queues, posts buffers and sends frames; it is the front end of vhost-user,
//! or the driver of a virtio device on a PCI bus. The *device* takes frames out of the driver's
//! transmit queues and fills its receive buffers; it is the back end of vhost-user. Rings are split
//! or packed, buffers used in order or not, receive buffers merged or not, as negotiated.
//!
//! | | takes or posts | module |
//! | --- | --- | --- |
//! | `DriverRx` | posts buffers of the pool, returns the filled ones | `driver/rx.rs` |
//! | `DriverTx` | sends frames from their buffers | `driver/tx.rs` |
//! | `DeviceRx` | copies frames out of the driver's buffers | `device/rx.rs` |
//! | `DeviceTx` | copies frames into the driver's buffers | `device/tx.rs` |
//!
//! # The other side is not trusted
//!
//! The other side may write the rings at any time. A driver keeps its posted buffers in a private
//! shadow ring, and a device checks each address against the shared memory. An error of one buffer
//! (a length that was not posted, an address outside, an endless chain) drops that buffer: it
//! counts as a frame from the wire that was lost as
//! [`Cause::DeviceError`](crate::Cause::DeviceError), or as an error of the sender. An error that
//! invalidates the ring itself (an index ahead of the posted buffers, a buffer that was not posted,
//! or is not the next one of an in-order ring) makes the queue *broken*: it counts one such loss,
//! and stops until it is created anew. Its buffers are returned when it is dropped.

mod areas;
mod broken;
mod descriptor;
mod device;
mod doorbell;
mod driver;
mod either;
mod features;
mod header;
#[cfg(any(test, fuzzing))]
#[path = "../../../tests/hostile/virtio.rs"]
pub mod hostile;
mod packed;
#[cfg(feature = "virtio")]
pub mod pci;
mod peer;
mod split;
#[cfg(test)]
mod tests;

pub(crate) use areas::{Areas, QueueMemory};
pub(crate) use device::{DeviceRx, DeviceTx};
pub(crate) use doorbell::{Doorbell, Notify};
pub(crate) use driver::{DriverRx, DriverTx, LINGER, always_posted};
pub(crate) use features::{Features, RingFeatures};
pub(crate) use peer::{PeerMemory, PeerRegion};

use broken::Broken;
use descriptor::{Descriptor, Piece};
use either::{Either, either};
