//! Driver side: owns the queues, which an untrusted device processes.

mod packed;
mod ring;
mod rx;
mod split;
mod tx;

use ring::{Posted, Ring, buffers, nothing_posted, posted_buffers};
pub(crate) use rx::{DriverRx, always_posted};
pub(crate) use tx::{DriverTx, LINGER};
