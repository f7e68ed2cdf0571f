//! The device's side: it takes buffers that a driver, which it does not trust, makes available.

mod packed;
mod ring;
mod rx;
mod split;
mod tx;

use ring::{CHUNK, Chain, Direction, KIND, Pieces, Ring, Single, room_for_pieces};
pub(crate) use rx::DeviceRx;
pub(crate) use tx::DeviceTx;
