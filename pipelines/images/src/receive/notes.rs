//! Notes of an image: those of its packets, beside their pixels in the frame.
//!
//! The first list has the count of each packet, the second one its marks. Packets follow each other
//! as their pixels do, so the marks of a frame are those of the image. The loop that writes the pixels of a
//! packet writes its notes; those of a missing packet are zeros.

use pollux_pipelines::assemble::{Frame, NOTES};
use zerocopy::FromBytes as _;

use crate::convert::{NoteConfig, Notes};

const COUNT: usize = 0;
const MARKS: usize = 1;

/// The notes of a packet in their place.
#[inline]
pub(super) fn of_packet(config: NoteConfig, lists: [&mut [u8]; NOTES]) -> Notes<'_> {
    let [count, marks] = lists;
    // Lists begin at cache lines, and have whole numbers for each packet.
    let count = <[u32]>::mut_from_bytes(count).unwrap_or_default();
    let marks = <[u64]>::mut_from_bytes(marks).unwrap_or_default();
    Notes::new(config, count, marks)
}

/// Number of pixels of a frame that reach the threshold of the count.
pub(super) fn count(frame: &Frame) -> usize {
    let counts = <[u32]>::ref_from_bytes(frame.notes(COUNT)).unwrap_or_default();
    counts.iter().map(|&count| count as usize).sum()
}

/// The marks of a frame.
pub(super) fn marks(frame: &Frame) -> &[u64] {
    <[u64]>::ref_from_bytes(frame.notes(MARKS)).unwrap_or_default()
}
