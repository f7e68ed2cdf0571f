//! The device's side: it takes buffers that a driver, which it does not trust, makes available.

mod packed;
mod rx;
mod split;
mod tx;

use super::areas::{QueueError, RingMemory};
use super::split::{NEXT, WRITE};
use super::{Broken, Piece};

pub(crate) use rx::DeviceRx;
pub(crate) use tx::DeviceTx;

/// `VIRTQ_DESC_F_INDIRECT`, which was not negotiated.
const INDIRECT: u16 = 4;

/// Flags that say how a buffer is described; the others are the ring's own.
const KIND: u16 = NEXT | WRITE | INDIRECT;

/// Buffers that are looked at together: their frames are fetched while others are copied.
const CHUNK: usize = 32;

/// Which way the frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// The device reads the buffers: the driver's transmit queue.
    Read,
    /// The device writes the buffers: the driver's receive queue.
    Write,
}

impl Direction {
    /// What [`KIND`] of flags the last descriptor of a chain has.
    #[inline(always)]
    fn flags(self) -> u16 {
        match self {
            Self::Read => 0,
            Self::Write => WRITE,
        }
    }
}

/// A buffer that is described by one descriptor.
#[derive(Clone, Copy, Debug, Default)]
struct Single {
    piece: Piece,
    id: u16,
}

/// A buffer that was taken.
#[derive(Clone, Copy, Debug)]
struct Chain {
    id: u16,
    descriptors: u16,
    /// Whether its descriptors make sense; whether their addresses do is not known.
    sound: bool,
}

/// The device's half of a ring. Descriptors are read once, and copied.
trait Ring: Send + Sized {
    /// Where the ring stands, to go back to.
    type Mark: Copy;

    /// The ring from `base` on.
    fn new(
        memory: &RingMemory,
        in_order: bool,
        direction: Direction,
        base: u16,
    ) -> Result<Self, QueueError>;

    /// Where the next buffer will be taken from, as vhost names it.
    fn base(&self) -> u16;

    /// Descriptors of the ring.
    fn size(&self) -> usize;

    /// Lists the next buffers as far as each is described by one descriptor, of the right
    /// direction; returns how many. None is taken.
    fn singles(&mut self, out: &mut [Single]) -> Result<usize, Broken>;

    /// Takes the first `n` of the buffers that `singles` has just listed.
    fn take(&mut self, n: usize);

    /// Takes the next buffer, however it is described, and adds its pieces to `pieces`.
    fn take_chain(&mut self, pieces: &mut Vec<Piece>) -> Result<Option<Chain>, Broken>;

    /// Where the ring stands.
    fn mark(&self) -> Self::Mark;

    /// Gives back what was taken since, unused.
    fn rewind(&mut self, mark: Self::Mark);

    /// Notes a buffer that was taken as used, with `len` bytes written. In the order of taking.
    fn give(&mut self, id: u16, descriptors: u16, len: u32);

    /// Shows the driver what was used.
    fn publish(&mut self);

    /// Whether the driver wants to be told of that.
    fn driver_listens(&self) -> bool;
}
