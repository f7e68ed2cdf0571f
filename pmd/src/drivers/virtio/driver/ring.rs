//! Driver's half of a ring, and the shadow of its posted buffers.

use pollux_mempool::Mbuf;

use crate::drivers::virtio::areas::RingMemory;
use crate::drivers::virtio::broken::Broken;
use crate::drivers::virtio::descriptor::Piece;

/// The driver's half of a ring. It keeps the posted buffers and their descriptors in memory that
/// the device cannot write.
pub(super) trait Ring: Send {
    /// A ring in fresh (zeroed) memory.
    fn new(memory: &RingMemory, in_order: bool) -> Self;

    /// Number of descriptors of the ring.
    fn size(&self) -> usize;

    /// Number of free descriptors.
    fn free(&self) -> usize;

    /// Number of posted pool buffers, counting each segment: those that the device knows.
    fn buffers(&self) -> usize;

    /// Posts a buffer with one descriptor: its only segment, which the device writes if the flags
    /// say so, or a table of its segments. The next `publish` shows it to the device. A free
    /// descriptor must exist.
    fn post(&mut self, mbuf: Mbuf, piece: Piece, flags: u16);

    /// Posts a buffer of several segments for the device to read. As many free descriptors must
    /// exist, and at least one segment.
    fn post_chain(&mut self, mbuf: Mbuf, pieces: &[Piece]);

    /// A descriptor in a table for the device to read: segment `i` of `count`.
    fn in_table(piece: Piece, i: usize, count: usize) -> [u64; 2];

    /// Publishes the posted buffers to the device.
    fn publish(&mut self);

    /// Whether the device requests a notification of that.
    fn device_listens(&self) -> bool;

    /// Enables or disables notifications of used buffers; initially disabled.
    fn set_listening(&self, on: bool);

    /// Takes the next buffer that the device has used, and the number of bytes that it reports as
    /// written.
    fn pop(&mut self) -> Result<Option<(Mbuf, u32)>, Broken>;

    /// Takes all posted buffers, when the queue ends: the device may still use them.
    fn take_posted(&mut self) -> Box<[Posted]>;

    /// Takes all buffers that the device has used. It may have named only the last of several.
    fn complete(&mut self, done: impl FnMut(Mbuf)) -> Result<(), Broken>;
}

/// Shadow state of a posted buffer, which no device can write.
#[derive(Default)]
pub(super) struct Posted {
    /// The buffer, while it is posted.
    pub(super) mbuf: Option<Mbuf>,
    /// Number of its descriptors.
    pub(super) descriptors: u16,
    /// Of a split ring: the next descriptor of its chain.
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
