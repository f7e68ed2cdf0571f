//! Device's half of a ring, and the buffers taken from it.

use std::ptr::NonNull;

use crate::drivers::virtio::areas::{QueueError, RingMemory};
use crate::drivers::virtio::broken::Broken;
use crate::drivers::virtio::descriptor::{Descriptor, Piece};
use crate::drivers::virtio::features::RingFeatures;
use crate::drivers::virtio::peer::PeerMemory;
use crate::drivers::virtio::split::{INDIRECT, NEXT, WRITE};

/// Flags that describe a buffer; the others belong to the ring.
pub(super) const KIND: u16 = NEXT | WRITE | INDIRECT;

/// Buffers that are processed together: frames of some are prefetched while others are copied.
pub(super) const CHUNK: usize = 32;

/// Direction of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// The device reads the buffers: the driver's transmit queue.
    Read,
    /// The device writes the buffers: the driver's receive queue.
    Write,
}

impl Direction {
    /// The [`KIND`] flags of a chain's last descriptor.
    #[inline(always)]
    pub(super) fn flags(self) -> u16 {
        match self {
            Self::Read => 0,
            Self::Write => WRITE,
        }
    }
}

/// A buffer with one descriptor.
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
    /// Number of its segments, if they are valid.
    pub(super) pieces: usize,
    /// Whether its descriptors are valid; their addresses are not checked yet.
    pub(super) sound: bool,
}

/// Collects the segments of buffers that are taken.
pub(super) struct Pieces<'a> {
    /// Segments, up to the capacity.
    pub(super) list: &'a mut Vec<Piece>,
    /// Memory that contains tables.
    pub(super) memory: &'a PeerMemory,
    pub(super) direction: Direction,
}

/// A list for the segments of buffers in a ring of `size`, one of which may be a table of as many
/// (sections 2.7.5.3.1 and 2.8.7).
pub(super) fn room_for_pieces(size: u16) -> Vec<Piece> {
    Vec::with_capacity(2 * usize::from(size))
}

impl Pieces<'_> {
    /// Adds a segment; false if its flags do not match the direction.
    pub(super) fn take(&mut self, Descriptor { piece, flags, .. }: Descriptor) -> bool {
        let sound = flags & (WRITE | INDIRECT) == self.direction.flags();
        let fits = self.list.len() < self.list.capacity();
        if sound && fits {
            self.list.push(piece);
        }
        sound && fits
    }

    /// The table of a descriptor, with at most as many entries as the ring has descriptors. `None`
    /// if a chain continues behind it, its length is invalid, or it is not in the driver's memory.
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

/// Size of a descriptor in a table.
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
        // SAFETY: `Pieces::table` has checked `count` entries in the driver's memory, which the
        // queue keeps alive longer than this value. Read as bytes, since the table may be
        // unaligned. Volatile: they are read once, whatever the driver writes concurrently.
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
    /// State of the ring, to be restored.
    type Mark: Copy;

    /// The ring from `base` on.
    fn new(
        memory: &RingMemory,
        features: RingFeatures,
        direction: Direction,
        base: u16,
    ) -> Result<Self, QueueError>;

    /// Index of the next buffer to be taken, in vhost's format.
    fn base(&self) -> u16;

    /// Number of descriptors of the ring.
    fn size(&self) -> usize;

    /// Lists the next buffers up to the first that is not described by one descriptor of the right
    /// direction; returns their number. Takes none.
    fn singles(&mut self, out: &mut [Single]) -> Result<usize, Broken>;

    /// Takes the first `n` of the buffers that `singles` has just listed.
    fn take(&mut self, n: usize);

    /// Takes the next buffer, however it is described, and adds its segments to `pieces`.
    fn take_chain(&mut self, pieces: &mut Pieces<'_>) -> Result<Option<Chain>, Broken>;

    /// Current state of the ring.
    fn mark(&self) -> Self::Mark;

    /// Returns the buffers taken since, unused.
    fn rewind(&mut self, mark: Self::Mark);

    /// Marks a taken buffer as used, with `len` bytes written. In the order of taking.
    fn give(&mut self, id: u16, descriptors: u16, len: u32);

    /// Publishes the used buffers to the driver.
    fn publish(&mut self);

    /// Whether the driver requests a notification of that.
    fn driver_listens(&self) -> bool;
}
