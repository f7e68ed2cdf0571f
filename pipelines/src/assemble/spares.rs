//! Memory that is no buffer's, and buffers that wait for memory: sets of numbers in atomic bitmaps. No
//! thread waits for another one, however it is preempted.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

use Ordering::{Acquire, Relaxed, Release, SeqCst};

/// A set of numbers.
struct Numbers(Box<[AtomicU64]>);

impl Numbers {
    /// The set of those below `most` for which `is_in`.
    fn new(most: usize, is_in: impl Fn(usize) -> bool) -> Self {
        let word = |word: usize| {
            let numbers = (0..64).filter(|bit| word * 64 + bit < most && is_in(word * 64 + bit));
            AtomicU64::new(numbers.fold(0, |bits, bit| bits | 1 << bit))
        };
        Self((0..most.div_ceil(64)).map(word).collect())
    }

    /// Inserts a number; what the caller reads of other sets is from afterwards.
    fn insert(&self, number: usize) {
        // Release pairs with the Acquire in `remove`: what was done with the number is over.
        self.0[number / 64].fetch_or(1 << (number % 64), Release);
        // Of two threads that insert into a set each, one at least finds the other's number.
        fence(SeqCst);
    }

    /// Whether it was in the set.
    fn remove(&self, number: usize) -> bool {
        let bit = 1 << (number % 64);
        self.0[number / 64].fetch_and(!bit, Acquire) & bit != 0
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| word.load(Relaxed) == 0)
    }

    /// Removes a number.
    fn pop(&self) -> Option<usize> {
        for (word, bits) in self.0.iter().enumerate() {
            loop {
                let bits = bits.load(Relaxed);
                if bits == 0 {
                    break;
                }
                let number = word * 64 + bits.trailing_zeros() as usize;
                if self.remove(number) {
                    return Some(number);
                }
            }
        }
        None
    }
}

/// Spare memory, and the buffers that wait for it. `refill` gives a buffer memory: it is called once for
/// each buffer that was [taken](Self::refill_or_wait).
pub(crate) struct Spares {
    memory: Numbers,
    waiting: Numbers,
}

impl Spares {
    /// Of `memories` those that are no buffer's.
    pub(crate) fn new(buffers: usize, memories: usize) -> Self {
        Self {
            memory: Numbers::new(memories, |number| number >= buffers),
            waiting: Numbers::new(buffers, |_| false),
        }
    }

    /// Refills a buffer whose memory was taken, or has it wait.
    pub(crate) fn refill_or_wait(&self, buffer: usize, refill: impl Fn(usize, usize)) {
        if let Some(memory) = self.memory.pop() {
            refill(buffer, memory);
            return;
        }
        self.waiting.insert(buffer);
        self.supply(refill);
    }

    /// Gives memory back that was taken from a buffer: to that buffer if it waits, else to another one, or
    /// it is spare.
    pub(crate) fn give(&self, buffer: usize, memory: usize, refill: impl Fn(usize, usize)) {
        if self.waiting.remove(buffer) {
            refill(buffer, memory);
            return;
        }
        self.memory.insert(memory);
        self.supply(refill);
    }

    /// Refills buffers that wait while there is spare memory. Each caller has inserted into one of the sets
    /// before.
    fn supply(&self, refill: impl Fn(usize, usize)) {
        while let Some(buffer) = self.waiting.pop() {
            if let Some(memory) = self.memory.pop() {
                refill(buffer, memory);
                continue;
            }
            self.waiting.insert(buffer);
            // Memory that came before the buffer waited again found no buffer that waits.
            if self.memory.is_empty() {
                return;
            }
        }
    }
}
