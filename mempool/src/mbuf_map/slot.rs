//! What an element of such an array looks like, and where a burst of frames came from.

use crate::time::Tsc;

/// Bytes of an element that say what is in its buffer.
pub const WINDOW: usize = 32;

/// The same in words.
pub(super) const WORDS: usize = WINDOW / 8;
pub(super) type Words = [u64; WORDS];

/// Layout of a slot. All that changes from frame to frame, and all that decides whether a
/// frame is plain, is in one window of it: so one move reads it, and one writes it.
///
/// # Safety
/// The constants are those of a type whose values lie `SPACING` bytes apart: the window is inside of
/// it, and any bytes are valid there. Addresses are computed from them without a check.
pub unsafe trait MbufSlot {
    /// Bytes from one element to the next: an odd number of cache lines.
    const SPACING: usize;
    /// Where the window begins in an element.
    const AT: usize;
    /// Where in the window it says, in 16 bits, how far into the room the data begins. Even.
    const OFFSET: usize;
    /// Where in the window it says, in 16 bits, how many bytes of data there are. Even.
    const LEN: usize;
    /// Where in the window it says the same in 32 bits, for the frame as a whole.
    const TOTAL: usize;
    /// How far into the room that is, as a rule.
    const HEADROOM: u16;
    /// The window of a plain frame, in one buffer without another owner; zero in these three places.
    const PLAIN: [u8; WINDOW];
    /// Which of its bits have to be so in a frame that was received.
    const REQUIRED: [u8; WINDOW];
}

/// Where a burst of frames came from, and when.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals {
    /// Port that received them.
    pub port: u16,
    /// Queue that received them.
    pub queue: u16,
    /// Number of the first on its port.
    pub first: u32,
    /// When they reached this process.
    pub at: Tsc,
}

/// The same bytes as words.
pub(super) const fn words(bytes: &[u8; WINDOW]) -> Words {
    let mut words = [0; WORDS];
    let mut i = 0;
    while i < WINDOW {
        words[i / 8] |= (bytes[i] as u64) << (i % 8 * 8);
        i += 1;
    }
    words
}
