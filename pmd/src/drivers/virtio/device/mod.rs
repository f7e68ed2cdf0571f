//! Device side: takes buffers that an untrusted driver makes available.

mod packed;
mod ring;
mod rx;
mod split;
mod tx;

use ring::{CHUNK, Chain, Direction, KIND, Pieces, Ring, Single, room_for_pieces};
pub(crate) use rx::DeviceRx;
pub(crate) use tx::DeviceTx;
