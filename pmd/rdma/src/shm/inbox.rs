//! Inbox of a queue pair: the memory through which the peer's queue pair tells it things.
//!
//! The queue pair that has the inbox makes it; the peer maps it too. Both may write any of it at any time,
//! so that nothing which is read here is believed: each word is read once, and checked by its user.
//!
//! ```text
//! offset   bytes  written by  content
//!      0       8  owner       progress: entries consumed, receives posted (wrapping counts)
//!     64       4  both        1: the owner sleeps; a futex
//!     68       4  owner       state: open, destroyed, or failed with a status
//!     72       4  owner       number of the queue pair that the owner is connected to; 0: none yet
//!    128  each 2112           entries, [`SLOTS`]:
//!      0       8  peer        turn (position of the entry + 1), length of its data, kind, flags
//!      8       8  peer        bytes of the message, immediate
//!     16       8  peer        the peer's own progress, as above
//!     24       8  peer        number of the message
//!     32    2048  peer        data
//! ```
//!
//! An entry is valid when its turn is that of the next position, as records of an event queue are by their
//! phase; a message of a few bytes is a single cache line.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::bytes::Bytes;
use crate::registrations::Keep;

/// Entries of an inbox: a power of two.
pub(super) const SLOTS: u32 = 64;
/// Most bytes of data in an entry.
pub(super) const CHUNK: usize = 2048;
/// Bytes of an inbox.
pub(super) const INBOX: usize = FIRST_SLOT + SLOTS as usize * SLOT;

const SLEEPING: usize = 64;
const STATE: usize = 68;
const PARTNER: usize = 72;
const FIRST_SLOT: usize = 128;
const SLOT: usize = 2112;
const DATA: usize = 32;

const _: () = assert!(SLOTS.is_power_of_two() && SLOT.is_multiple_of(64) && DATA + CHUNK <= SLOT);

/// What the owner of an inbox has done so far; counts wrap. One word, as in the memory: half of it that was
/// just written would have to reach the cache before all of it can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress(u64);

impl Progress {
    /// Entries that it has taken.
    #[inline]
    pub(super) fn consumed(self) -> u32 {
        self.0 as u32
    }

    /// Receives that it has posted.
    #[inline]
    pub(super) fn posted(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub(super) fn set_consumed(&mut self, consumed: u32) {
        self.0 = self.0 >> 32 << 32 | u64::from(consumed);
    }

    #[inline]
    pub(super) fn set_posted(&mut self, posted: u32) {
        self.0 = u64::from(self.0 as u32) | u64::from(posted) << 32;
    }

    fn word(self) -> u64 {
        self.0
    }

    fn from_word(word: u64) -> Self {
        Self(word)
    }
}

/// Kinds of entries.
pub(super) const MESSAGE: u8 = 1;
pub(super) const MORE: u8 = 2;
pub(super) const PUT: u8 = 3;

/// An entry but for its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// [`MESSAGE`], [`MORE`] of it, or [`PUT`] with immediate.
    pub(super) kind: u8,
    /// 1: the message has an immediate.
    pub(super) flags: u8,
    /// Bytes of data in this entry.
    pub(super) len: u16,
    /// Bytes of the whole message.
    pub(super) total: u32,
    pub(super) immediate: u32,
    /// The sender's own progress.
    pub(super) progress: Progress,
    /// Number of the message among those of the sender.
    pub(super) number: u32,
}

/// What is at a position of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// No entry yet.
    Empty,
    /// An entry.
    Entry(Entry),
    /// A turn that is not that of the position.
    Wrong,
}

/// State of the queue pair that has an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    Destroyed,
    /// It has failed: status of the request that the peer made, by its code.
    Failed(u32),
}

/// An inbox, mapped here.
#[derive(Clone)]
pub(super) struct Inbox {
    start: NonNull<u8>,
    _keep: Keep,
}

// SAFETY: the memory belongs to no thread, and is accessed by atomics and by copies of shared memory alone.
unsafe impl Send for Inbox {}
// SAFETY: as above.
unsafe impl Sync for Inbox {}

impl Inbox {
    /// An inbox that is there, at the start of the memory.
    ///
    /// # Safety
    /// [`INBOX`] bytes at `start`, which is a multiple of 64, can be read and written for as long as `keep`
    /// lives; nothing in this process accesses them in another way.
    pub(super) unsafe fn new(start: NonNull<u8>, keep: Keep) -> Self {
        debug_assert!(start.addr().get().is_multiple_of(64));
        Self { start, _keep: keep }
    }

    /// Makes all positions empty. Only the owner does so, before the peer has the memory.
    pub(super) fn clear(&self) {
        for at in 0..SLOTS {
            let before = at.wrapping_add(1).wrapping_sub(SLOTS);
            self.slot_word(at, 0).store(u64::from(before), Relaxed);
        }
    }

    #[inline(always)]
    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset.is_multiple_of(8) && offset + 8 <= INBOX);
        // SAFETY: inside the memory and aligned, by the offsets above; it lives as long as `self`, and any
        // bits are a value.
        unsafe { self.start.add(offset).cast().as_ref() }
    }

    #[inline(always)]
    fn half(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset.is_multiple_of(4) && offset + 4 <= INBOX);
        // SAFETY: as in `word`.
        unsafe { self.start.add(offset).cast().as_ref() }
    }

    #[inline(always)]
    fn slot(at: u32) -> usize {
        FIRST_SLOT + (at % SLOTS) as usize * SLOT
    }

    #[inline(always)]
    fn slot_word(&self, at: u32, word: usize) -> &AtomicU64 {
        self.word(Self::slot(at) + word * 8)
    }

    /// Progress of the owner.
    #[inline]
    pub(super) fn progress(&self) -> Progress {
        // Acquire pairs with the Release in `set_progress`: the owner has read the entries.
        Progress::from_word(self.word(0).load(Acquire))
    }

    /// A caller that then asks whether the peer [is asleep](Self::is_asleep) finds it so, or the peer finds this.
    #[inline]
    pub(super) fn set_progress(&self, progress: Progress) {
        // The Release of it pairs with the Acquire in `progress`; for its order see `is_asleep`.
        self.word(0).swap(progress.word(), SeqCst);
    }

    /// State of the owner.
    #[inline]
    pub(super) fn state(&self) -> State {
        // Acquire pairs with the Release in `set_state`: what the owner did before is seen.
        match self.half(STATE).load(Acquire) {
            0 => State::Open,
            1 => State::Destroyed,
            code => State::Failed(code - 2),
        }
    }

    pub(super) fn set_state(&self, state: State) {
        let word = match state {
            State::Open => 0,
            State::Destroyed => 1,
            State::Failed(code) => code.saturating_add(2),
        };
        // The Release of it pairs with the Acquire in `state`; for its order see `is_asleep`.
        self.half(STATE).swap(word, SeqCst);
    }

    /// Number of the queue pair that the owner is connected to; 0: none.
    #[inline]
    pub(super) fn partner(&self) -> u32 {
        self.half(PARTNER).load(Acquire)
    }

    pub(super) fn set_partner(&self, number: u32) {
        self.half(PARTNER).store(number, Release);
    }

    /// The word on which the owner sleeps.
    pub(super) fn sleeping(&self) -> &AtomicU32 {
        self.half(SLEEPING)
    }

    /// Whether the owner sleeps, or is about to.
    #[inline]
    pub(super) fn is_asleep(&self) -> bool {
        // SeqCst, as the exchange or the fence before it: either this comes
        // before the sleeper's fence, and it finds what was written, or after it, and this finds it asleep.
        self.half(SLEEPING).load(SeqCst) != 0
    }

    /// What is at position `at`.
    #[inline]
    pub(super) fn take(&self, at: u32) -> Turn {
        // Acquire pairs with the Release in `publish`: the data are there.
        let head = self.slot_word(at, 0).load(Acquire);
        let turn = at.wrapping_add(1);
        if head as u32 != turn {
            let is_empty = head as u32 == turn.wrapping_sub(SLOTS);
            return if is_empty { Turn::Empty } else { Turn::Wrong };
        }
        let message = self.slot_word(at, 1).load(Relaxed);
        Turn::Entry(Entry {
            kind: (head >> 48) as u8,
            flags: (head >> 56) as u8,
            len: (head >> 32) as u16,
            total: message as u32,
            immediate: (message >> 32) as u32,
            progress: Progress::from_word(self.slot_word(at, 2).load(Relaxed)),
            number: self.slot_word(at, 3).load(Relaxed) as u32,
        })
    }

    /// Shows the entry at position `at`, whose data were written before. A fence comes between this and
    /// [`is_asleep`](Self::is_asleep) of the peer.
    #[inline]
    pub(super) fn publish(&self, at: u32, entry: &Entry) {
        let message = u64::from(entry.total) | u64::from(entry.immediate) << 32;
        self.slot_word(at, 1).store(message, Relaxed);
        self.slot_word(at, 2).store(entry.progress.word(), Relaxed);
        self.slot_word(at, 3)
            .store(u64::from(entry.number), Relaxed);
        let head = u64::from(at.wrapping_add(1))
            | u64::from(entry.len) << 32
            | u64::from(entry.kind) << 48
            | u64::from(entry.flags) << 56;
        // Release pairs with the Acquire in `take`. Not an exchange: the words before it would be there first,
        // and a peer that polls the line would take it away in between.
        self.slot_word(at, 0).store(head, Release);
    }

    /// The data of the entry at position `at`.
    #[inline]
    pub(super) fn data(&self, at: u32) -> Bytes<'_> {
        // SAFETY: inside the memory by the constants above; it lives as long as `self`, and is read and
        // written by copies of shared memory alone.
        unsafe { Bytes::new(self.start.add(Self::slot(at) + DATA), CHUNK) }
    }
}

/// What a hostile peer can do.
#[cfg(any(all(test, not(loom)), fuzzing))]
impl Inbox {
    /// Writes a word anywhere.
    pub(super) fn forge(&self, word: usize, low: u32, high: u32) {
        let word = self.word(word * 8 % INBOX);
        word.store(u64::from(low) | u64::from(high) << 32, SeqCst);
    }
}

/// An inbox in memory of this process.
pub(super) fn own(region: pollux_mempool::region::MemoryRegion) -> Option<Inbox> {
    let start = region.ptr_at(0, INBOX).ok()?;
    let keep = Arc::new(region);
    // SAFETY: the region has so many bytes and begins with a page; it is given to this inbox alone.
    let inbox = unsafe { Inbox::new(start, keep) };
    inbox.clear();
    Some(inbox)
}
