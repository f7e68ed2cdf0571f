//! The driver's side: it has the queues, and a device that it does not trust works on them.

mod packed;
mod ring;
mod rx;
mod split;
mod tx;

use ring::{Posted, Ring, buffers, nothing_posted, posted_buffers};
pub(crate) use rx::{DriverRx, always_posted};
pub(crate) use tx::{DriverTx, LINGER};
