//! Work queue: descriptors from the program to the loop that executes them, with data beside them.
//!
//! A circular list. The program fills slots and rings the doorbell, which shows all of them at once; the
//! loop reads them, as often as it sends them, and gives a slot back when its request is done.

use std::sync::Arc;

use crate::access::{Key, RemoteBuffer};
use crate::event::Operation;
use crate::sync::{AtomicU32, Ordering, UnsafeCell, ordering};

use Ordering::{Acquire, Release};

/// Most bytes of data in a descriptor (cHPP: 2 KiB).
pub(crate) const IMMEDIATE: usize = 2048;

/// Where the data of a request are, or go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Beside the descriptor.
    Slot,
    /// In a registered range: its key, and the first byte.
    Buffer(Key, u64),
}

/// A request or a receive as a back end gets it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptor {
    pub(crate) cookie: u64,
    pub(crate) operation: Operation,
    pub(crate) bytes: u32,
    pub(crate) immediate: Option<u32>,
    pub(crate) place: Place,
    /// Of a PUT and a GET.
    pub(crate) remote: RemoteBuffer,
}

struct Slot<const DATA: usize> {
    descriptor: UnsafeCell<Descriptor>,
    data: UnsafeCell<[u8; DATA]>,
}

/// Aligned: other data are in other cache lines.
#[repr(align(128))]
struct Shared<const DATA: usize> {
    slots: Box<[Slot<DATA>]>,
    /// Descriptors that the doorbell has shown, and those that are done, since the start.
    shown: AtomicU32,
    done: AtomicU32,
}

// SAFETY: a slot is the loop's between the counts `done` and `shown`, and the program's otherwise; each
// count is written by one side, with Release after its last access, and read by the other with Acquire
// before its first.
unsafe impl<const DATA: usize> Sync for Shared<DATA> {}

/// The program's side.
pub(crate) struct Poster<const DATA: usize = IMMEDIATE> {
    shared: Arc<Shared<DATA>>,
    /// Descriptors so far, and how many the loop has done at the last look.
    posted: u32,
    done: u32,
}

/// The loop's side.
pub(crate) struct Worker<const DATA: usize = IMMEDIATE> {
    shared: Arc<Shared<DATA>>,
    done: u32,
}

/// A queue of `slots` descriptors, a power of two, with `DATA` bytes beside each: [`IMMEDIATE`] of
/// requests, none of receives.
pub(crate) fn work_queue<const DATA: usize>(slots: usize) -> (Poster<DATA>, Worker<DATA>) {
    debug_assert!(slots.is_power_of_two() && slots <= 1 << 16);
    let empty = Descriptor {
        cookie: 0,
        operation: Operation::Send,
        bytes: 0,
        immediate: None,
        place: Place::Slot,
        remote: RemoteBuffer {
            address: 0,
            key: Key(0),
        },
    };
    let slot = |_| Slot {
        descriptor: UnsafeCell::new(empty),
        data: UnsafeCell::new([0; DATA]),
    };
    let shared = Arc::new(Shared {
        slots: (0..slots).map(slot).collect(),
        shown: AtomicU32::new(0),
        done: AtomicU32::new(0),
    });
    let worker = Worker {
        shared: Arc::clone(&shared),
        done: 0,
    };
    let poster = Poster {
        shared,
        posted: 0,
        done: 0,
    };
    (poster, worker)
}

/// The slot of a descriptor, by its number since the start. A mask: a division takes as long as a copy.
#[inline(always)]
fn place(number: u32, slots: usize) -> usize {
    number as usize & slots.wrapping_sub(1)
}

impl<const DATA: usize> Poster<DATA> {
    /// Fills a slot; false if none is free. `data` are copied beside the descriptor, up to
    /// `DATA` bytes.
    #[inline]
    pub(crate) fn post(&mut self, descriptor: Descriptor, data: &[u8]) -> bool {
        let slots = &self.shared.slots;
        if self.posted.wrapping_sub(self.done) as usize == slots.len() {
            self.done = self.shared.done.load(ordering("see-done", Acquire));
            if self.posted.wrapping_sub(self.done) as usize == slots.len() {
                return false;
            }
        }
        let slot = &slots[place(self.posted, slots.len())];
        let len = data.len().min(DATA);
        // SAFETY: the slot is the program's: fewer than all are between `done` and `posted`, and what is
        // beyond `posted` has not been shown.
        slot.descriptor.with_mut(|to| unsafe { *to = descriptor });
        // SAFETY: as above.
        let copy = |to: *mut [u8; DATA]| unsafe { (&mut *to)[..len].copy_from_slice(&data[..len]) };
        slot.data.with_mut(copy);
        self.posted = self.posted.wrapping_add(1);
        true
    }

    /// Shows all descriptors.
    #[inline]
    pub(crate) fn ring(&mut self) {
        self.shared
            .shown
            .store(self.posted, ordering("show", Release));
    }
}

impl<const DATA: usize> Worker<DATA> {
    /// Descriptors that have been shown and are not done.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.shared
            .shown
            .load(ordering("see-shown", Acquire))
            .wrapping_sub(self.done)
    }

    /// The descriptor after `n` others that are not done, with the data beside it.
    #[inline]
    pub(crate) fn get(&self, n: u32) -> Option<(&Descriptor, &[u8; DATA])> {
        if n >= self.len() {
            return None;
        }
        let slots = &self.shared.slots;
        let slot = &slots[place(self.done.wrapping_add(n), slots.len())];
        // SAFETY: the slot has been shown and is not done, so it is the loop's; it stays so until
        // `finish`, which needs `&mut self`.
        let descriptor = slot.descriptor.with(|of| unsafe { &*of });
        // SAFETY: as above.
        let data = slot.data.with(|of| unsafe { &*of });
        Some((descriptor, data))
    }

    /// Gives the oldest slot back: its request is done. Only if there is one.
    #[inline]
    pub(crate) fn finish(&mut self) {
        if self.len() > 0 {
            self.done = self.done.wrapping_add(1);
            self.shared.done.store(self.done, ordering("done", Release));
        }
    }
}

#[cfg(test)]
mod tests;
