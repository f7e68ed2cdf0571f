//! The device's half of a ring, and the buffers that are taken from it.

use std::ptr::NonNull;

use crate::drivers::virtio::areas::{QueueError, RingMemory};
use crate::drivers::virtio::broken::Broken;
use crate::drivers::virtio::descriptor::{Descriptor, Piece};
use crate::drivers::virtio::features::RingFeatures;
use crate::drivers::virtio::peer::PeerMemory;
use crate::drivers::virtio::split::{INDIRECT, NEXT, WRITE};

/// Flags that say how a buffer is described; the others are the ring's own.
pub(super) const KIND: u16 = NEXT | WRITE | INDIRECT;

/// Buffers that are looked at together: their frames are fetched while others are copied.
pub(super) const CHUNK: usize = 32;

/// Which way the frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// The device reads the buffers: the driver's transmit queue.
    Read,
    /// The device writes the buffers: the driver's receive queue.
    Write,
}

impl Direction {
    /// What [`KIND`] of flags the last descriptor of a chain has.
    #[inline(always)]
    pub(super) fn flags(self) -> u16 {
        match self {
            Self::Read => 0,
            Self::Write => WRITE,
        }
    }
}

/// A buffer that is described by one descriptor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Single {
    pub(super) piece: Piece,
    pub(super) id: u16,
}

/// A buffer that was taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    pub(super) id: u16,
    pub(super) descriptors: u16,
    /// How many it has, where they make sense.
    pub(super) pieces: usize,
    /// Whether its descriptors make sense; whether their addresses do is not known.
    pub(super) sound: bool,
}

/// Where the pieces of buffers that are taken go to.
pub(super) struct Pieces<'a> {
    /// As many are taken as there is room for.
    pub(super) list: &'a mut Vec<Piece>,
    /// Where tables are.
    pub(super) memory: &'a PeerMemory,
    pub(super) direction: Direction,
}

/// Room for the pieces of buffers that a ring of `size` describes, one of which may be a table of
/// as many (sections 2.7.5.3.1 and 2.8.7).
pub(super) fn room_for_pieces(size: u16) -> Vec<Piece> {
    Vec::with_capacity(2 * usize::from(size))
}

impl Pieces<'_> {
    /// Takes a piece; false if its flags are not those of one that goes this way.
    pub(super) fn take(&mut self, Descriptor { piece, flags, .. }: Descriptor) -> bool {
        let sound = flags & (WRITE | INDIRECT) == self.direction.flags();
        let fits = self.list.len() < self.list.capacity();
        if sound && fits {
            self.list.push(piece);
        }
        sound && fits
    }

    /// The table that a descriptor names, of no more entries than the ring has descriptors. `None`
    /// where a chain goes on behind it, its length cannot be, or it is not in the driver's memory.
    pub(super) fn table(
        &self,
        Descriptor { piece, flags, .. }: Descriptor,
        size: u16,
    ) -> Option<Table> {
        let len = piece.len as usize;
        let count = len / ENTRY;
        let sound = len.is_multiple_of(ENTRY) && (1..=usize::from(size)).contains(&count);
        if !sound || flags & NEXT != 0 {
            return None;
        }
        let start = self.memory.at(piece.address, piece.len)?;
        Some(Table { start, count })
    }
}

/// Bytes of a descriptor in a table.
pub(super) const ENTRY: usize = 16;

/// A table of descriptors in the driver's memory.
#[derive(Clone, Copy)]
pub(super) struct Table {
    start: NonNull<u8>,
    pub(super) count: usize,
}

impl Table {
    /// The words of an entry; `None` behind the end.
    pub(super) fn entry(self, i: usize) -> Option<[u64; 2]> {
        if i >= self.count {
            return None;
        }
        // SAFETY: `Pieces::table` has found `count` entries in the driver's memory, which the queue
        // keeps, and with it whoever has this. As bytes, since it may begin anywhere. Volatile: they
        // are read once, whatever the driver does to them meanwhile.
        let bytes = unsafe {
            self.start
                .add(i * ENTRY)
                .cast::<[u8; ENTRY]>()
                .read_volatile()
        };
        let (words, _) = bytes.as_chunks();
        words
            .first()
            .zip(words.get(1))
            .map(|(&a, &b)| [a, b].map(u64::from_le_bytes))
    }
}

/// The device's half of a ring. Descriptors are read once, and copied.
pub(super) trait Ring: Send + Sized {
    /// Where the ring stands, to go back to.
    type Mark: Copy;

    /// The ring from `base` on.
    fn new(
        memory: &RingMemory,
        features: RingFeatures,
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
    fn take_chain(&mut self, pieces: &mut Pieces<'_>) -> Result<Option<Chain>, Broken>;

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
