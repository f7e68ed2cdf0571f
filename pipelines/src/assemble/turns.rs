//! Ownership of frame buffers, and the bitmap of the parts in each: atomics alone.
//!
//! ```text
//!            first part              complete, or its time is over
//!   free ----------------> filling -------------------------------> closed
//!    ^                                                                |  no writer left
//!    |                          it is refilled                        v
//!    +------------------------------------------------------------- taken
//! ```
//!
//! A writer enters a buffer before it writes a part and leaves it afterwards; a closed buffer takes
//! no more writers, and is taken when the last one has left. The memory of a buffer that is taken goes
//! with the frame; the buffer is free when it has been refilled with other memory, or the same. The writer that sets the bit of a part
//! writes the part, so no two writers have the same bytes.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use Ordering::{Acquire, Relaxed, Release};

/// The ordering at a site: `correct`, unless a loom test made this site its mutant, whose model must
/// then fail.
#[cfg(not(loom))]
#[inline(always)]
const fn ordering(_site: &str, correct: Ordering) -> Ordering {
    correct
}

#[cfg(loom)]
fn ordering(site: &str, correct: Ordering) -> Ordering {
    if mutant::is(site) { Relaxed } else { correct }
}

/// Wrong orderings for loom tests.
#[cfg(loom)]
pub(crate) mod mutant {
    use std::sync::Mutex;

    static SITE: Mutex<&str> = Mutex::new("");

    /// Makes a site wrong, or none, in the models that run from now on.
    #[allow(dead_code)] // the tests use it, which include this file
    pub(crate) fn set(site: &'static str) {
        if let Ok(mut now) = SITE.lock() {
            *now = site;
        }
    }

    pub(super) fn is(site: &str) -> bool {
        SITE.lock().is_ok_and(|now| *now == site)
    }
}

/// Most parts of a frame.
pub(crate) const MAX_PARTS: usize = (1 << 14) - 1;
/// Most writers at the same time.
pub(crate) const MAX_WRITERS: usize = (1 << 8) - 1;
/// Bits of a lap.
pub(crate) const LAP_BITS: u32 = 40;

/// Fields of a buffer's word, from the lowest bit: phase, writers, parts, lap.
const PHASE: u64 = 0b11;
const FREE: u64 = 0;
const FILLING: u64 = 1;
const CLOSED: u64 = 2;
const TAKEN: u64 = 3;
const WRITER: u64 = 1 << 2;
const WRITERS: u64 = (MAX_WRITERS as u64) << 2;
const PART_SHIFT: u32 = 10;
const PART: u64 = 1 << PART_SHIFT;
const PARTS: u64 = (MAX_PARTS as u64) << PART_SHIFT;
const LAP_SHIFT: u32 = 24;
/// A free buffer that no frame has had: the lap that no frame has.
const NEVER: u64 = u64::MAX << LAP_SHIFT | FREE;

/// The state of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    Filling,
    /// Closed; the flag says whether all writers have left.
    Closed(bool),
    Taken,
}

/// The result of [`Turns::enter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// The buffer was free, and is open for the frame now.
    Opened,
    /// The frame was open.
    Joined,
    /// The frame was closed before.
    Closed,
    /// The buffer is another frame's, which is open.
    Occupied,
    /// The buffer is another frame's, which is closed.
    Full,
}

/// The words and the memory of all buffers, and the bitmaps of all memory.
pub(crate) struct Turns {
    words: Box<[AtomicU64]>,
    /// Number of the memory that a buffer has, unless it is taken.
    memory: Box<[AtomicU32]>,
    bits: Box<[AtomicU64]>,
    /// Words of a bitmap.
    width: usize,
    parts: u64,
}

impl Turns {
    /// Buffers that have the memory of their own number; there is as much memory, or more.
    pub(crate) fn new(buffers: usize, memories: usize, parts: usize) -> Self {
        let width = parts.div_ceil(64);
        Self {
            words: (0..buffers).map(|_| AtomicU64::new(NEVER)).collect(),
            memory: (0..buffers as u32).map(AtomicU32::new).collect(),
            bits: (0..memories * width).map(|_| AtomicU64::new(0)).collect(),
            width,
            parts: parts as u64,
        }
    }

    /// Enters a buffer to write a part of the frame of this lap.
    #[inline]
    pub(crate) fn enter(&self, buffer: usize, lap: u64) -> Entry {
        let word = &self.words[buffer];
        let mut now = word.load(Relaxed);
        loop {
            let same = now >> LAP_SHIFT == lap;
            let (next, entry) = match now & PHASE {
                // What comes for a frame that was delivered does not open it again.
                FREE if same => return Entry::Closed,
                FREE => (lap << LAP_SHIFT | WRITER | FILLING, Entry::Opened),
                FILLING if same => (now + WRITER, Entry::Joined),
                FILLING => return Entry::Occupied,
                _ if same => return Entry::Closed,
                _ => return Entry::Full,
            };
            // Acquire pairs with the Release in `refill`: the buffer has other memory, the accesses to
            // that are over, and its bitmap is clear. A writer that joins reads what an opener wrote behind it, in one
            // release sequence.
            match word.compare_exchange_weak(now, next, ordering("enter", Acquire), Relaxed) {
                Ok(_) => return entry,
                Err(other) => now = other,
            }
        }
    }

    /// Number of the memory of a buffer that was entered. Of others it may change at any time.
    #[inline]
    pub(crate) fn memory(&self, buffer: usize) -> usize {
        self.memory[buffer].load(Relaxed) as usize
    }

    /// Claims a part in the memory of a buffer that was entered; whether it is the caller's to write.
    #[inline]
    pub(crate) fn claim(&self, memory: usize, part: usize) -> bool {
        let bit = 1 << (part % 64);
        // Each bit is set once, whatever the order.
        self.bits[memory * self.width + part / 64].fetch_or(bit, Relaxed) & bit == 0
    }

    /// Whether a part has been claimed.
    #[inline]
    pub(crate) fn is_claimed(&self, memory: usize, part: usize) -> bool {
        let bits = self.bits[memory * self.width + part / 64].load(Relaxed);
        bits >> (part % 64) & 1 == 1
    }

    /// Leaves a buffer that was entered; closes it if the part that was `placed` is the last one.
    /// Whether it is closed and has no writer any more.
    #[inline]
    pub(crate) fn leave(&self, buffer: usize, placed: bool) -> bool {
        let word = &self.words[buffer];
        let mut now = word.load(Relaxed);
        loop {
            let mut next = now - WRITER + if placed { PART } else { 0 };
            if (next & PARTS) >> PART_SHIFT == self.parts {
                next = next & !PHASE | CLOSED;
            }
            // Release pairs with the Acquire in `take`: the part is written. Writers that leave later
            // continue the release sequence.
            match word.compare_exchange_weak(now, next, ordering("leave", Release), Relaxed) {
                Ok(_) => return next & PHASE == CLOSED && next & WRITERS == 0,
                Err(other) => now = other,
            }
        }
    }

    /// Closes a buffer if it is being filled in this lap; `None` if it is not. Whether it has no
    /// writer.
    pub(crate) fn close(&self, buffer: usize, lap: u64) -> Option<bool> {
        let word = &self.words[buffer];
        let mut now = word.load(Relaxed);
        while now & PHASE == FILLING && now >> LAP_SHIFT == lap {
            let next = now & !PHASE | CLOSED;
            // Nothing was written here that others are to see: writers release it themselves.
            match word.compare_exchange_weak(now, next, Relaxed, Relaxed) {
                Ok(_) => return Some(next & WRITERS == 0),
                Err(other) => now = other,
            }
        }
        None
    }

    /// State and lap of a buffer.
    #[inline]
    pub(crate) fn state(&self, buffer: usize) -> (State, u64) {
        // Acquire pairs with the Release in `leave`: the time of opening can be read.
        let word = self.words[buffer].load(Acquire);
        let state = match word & PHASE {
            FREE => State::Free,
            FILLING => State::Filling,
            CLOSED => State::Closed(word & WRITERS == 0),
            _ => State::Taken,
        };
        (state, word >> LAP_SHIFT)
    }

    /// Takes a closed buffer that has no writer; its number of parts, and its memory. Only the reader
    /// does.
    pub(crate) fn take(&self, buffer: usize) -> Option<(usize, usize)> {
        let word = &self.words[buffer];
        let now = word.load(Relaxed);
        let ready = now & PHASE == CLOSED && now & WRITERS == 0;
        let next = now & !PHASE | TAKEN;
        // Acquire pairs with the Release in `leave`, of all writers: the parts can be read. Nobody
        // else changes the word of a closed buffer without writers.
        let acquire = ordering("take", Acquire);
        let taken = ready && word.compare_exchange(now, next, acquire, Relaxed).is_ok();
        let parts = ((now & PARTS) >> PART_SHIFT) as usize;
        taken.then(|| (parts, self.memory(buffer)))
    }

    /// Clears the bitmap of memory that was taken with a buffer.
    pub(crate) fn clear(&self, memory: usize) {
        let bits = memory * self.width..(memory + 1) * self.width;
        self.bits[bits]
            .iter()
            .for_each(|bits| bits.store(0, Relaxed));
    }

    /// Frees a buffer that was taken, with memory that is clear and no other buffer's.
    pub(crate) fn refill(&self, buffer: usize, memory: usize) {
        self.memory[buffer].store(memory as u32, Relaxed);
        let word = &self.words[buffer];
        let lap = word.load(Relaxed) >> LAP_SHIFT << LAP_SHIFT;
        // Release pairs with the Acquire in `enter`: the memory is the buffer's, its bitmap is clear, and
        // the accesses to it are over.
        word.store(lap | FREE, ordering("refill", Release));
    }
}
