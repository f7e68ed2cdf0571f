//! The driver's half of a ring, and the shadow of what it has posted.

use pollux_mempool::Mbuf;

use crate::drivers::virtio::areas::RingMemory;
use crate::drivers::virtio::broken::Broken;
use crate::drivers::virtio::descriptor::Piece;

/// The driver's half of a ring. It keeps the posted buffers and what was posted of them, where the
/// device cannot write.
pub(super) trait Ring: Send {
    /// A ring in fresh (zeroed) memory.
    fn new(memory: &RingMemory, in_order: bool) -> Self;

    /// Descriptors of the ring.
    fn size(&self) -> usize;

    /// Descriptors that are not posted.
    fn free(&self) -> usize;

    /// Buffers of pools that are posted, each segment one: what the device knows.
    fn buffers(&self) -> usize;

    /// Posts a buffer that one descriptor describes: its one piece, which the device writes if the
    /// flags say so, or a table of its pieces. The device sees it with the next `publish`. There is
    /// a free descriptor.
    fn post(&mut self, mbuf: Mbuf, piece: Piece, flags: u16);

    /// Posts a buffer of several pieces for the device to read. There are as many free descriptors,
    /// and at least one piece.
    fn post_chain(&mut self, mbuf: Mbuf, pieces: &[Piece]);

    /// A descriptor in a table for the device to read: piece number `i` of `count`.
    fn in_table(piece: Piece, i: usize, count: usize) -> [u64; 2];

    /// Shows the device what was posted.
    fn publish(&mut self);

    /// Whether the device wants to be told of that.
    fn device_listens(&self) -> bool;

    /// Whether the device is to tell of what it has used; at first it is not.
    fn set_listening(&self, on: bool);

    /// Takes the next buffer that the device is done with, and how many bytes it says that it has
    /// written.
    fn pop(&mut self) -> Result<Option<(Mbuf, u32)>, Broken>;

    /// Takes all that is posted, when the queue ends: the device may use it still.
    fn take_posted(&mut self) -> Box<[Posted]>;

    /// Takes all buffers that the device is done with. It may have named the last of several only.
    fn complete(&mut self, done: impl FnMut(Mbuf)) -> Result<(), Broken>;
}

/// What is known of a buffer that was posted: the shadow, which no device can write.
#[derive(Default)]
pub(super) struct Posted {
    /// The buffer, while it is posted.
    pub(super) mbuf: Option<Mbuf>,
    /// Descriptors that it takes.
    pub(super) descriptors: u16,
    /// Of a split ring: the descriptor behind this one in its chain.
    pub(super) next: u16,
}

/// The buffers of a queue that has ended.
pub(super) fn buffers(posted: Box<[Posted]>) -> impl Iterator<Item = Mbuf> {
    posted.into_iter().filter_map(|posted| posted.mbuf)
}

pub(super) fn nothing_posted(size: u16) -> Box<[Posted]> {
    (0..size).map(|_| Posted::default()).collect()
}

pub(super) fn posted_buffers(posted: &[Posted]) -> usize {
    let frames = posted.iter().filter_map(|posted| posted.mbuf.as_ref());
    frames.map(Mbuf::segment_count).sum()
}
