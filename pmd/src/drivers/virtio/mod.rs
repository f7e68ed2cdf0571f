//! Virtio rings for networks, both sides of them: virtio 1.2 (<https://docs.oasis-open.org/virtio>).
//!
//! The *driver* has the queues, posts buffers and sends frames; it is the front end of vhost-user,
//! or whoever drives a virtio device on a PCI bus. The *device* takes frames out of the driver's
//! transmit queues and fills its receive buffers; it is the back end of vhost-user. Rings are split
//! or packed, buffers used in order or not, receive buffers merged or not, as was negotiated.
//!
//! | | takes or posts | module |
//! | --- | --- | --- |
//! | [`DriverRx`] | posts buffers of the pool, hands over those that came back filled | `driver/rx.rs` |
//! | [`DriverTx`] | sends buffers where they are | `driver/tx.rs` |
//! | [`DeviceRx`] | copies frames out of the driver's buffers | `device/rx.rs` |
//! | [`DeviceTx`] | copies frames into the driver's buffers | `device/tx.rs` |
//!
//! # The other side is not trusted
//!
//! It may write the rings at any time. A driver keeps what it has posted in a shadow of its own,
//! and a device checks each address against the memory that it was given. What is wrong with one
//! buffer (a length that was not posted, an address outside, a chain that never ends) costs that
//! buffer: it counts as a frame from the wire that was lost as
//! [`Cause::DeviceError`](crate::Cause::DeviceError), or as an error of the sender. What makes the
//! ring itself meaningless (an index that runs ahead of what was posted, a buffer that was not
//! posted, or is not the next one of a ring in order) makes the queue *broken*: it counts one
//! such loss, and does nothing any more until it is made anew. Its buffers come back when it is
//! dropped.

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
pub mod hostile;
mod packed;
#[cfg(feature = "virtio")]
pub(crate) mod pci;
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
