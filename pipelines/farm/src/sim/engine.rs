//! The event queue of a simulation: who does what next, and a digest of all that happened.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::hash::{Hash, Hasher};

use crate::time::Time;

/// Events in order of their times; events of one time in the order in which they were scheduled.
///
/// A binary heap: it holds one event for each busy link, so it stays in the cache, and its memory is
/// kept from event to event.
#[derive(Debug)]
pub struct Engine<E> {
    now: Time,
    scheduled: u64,
    handled: u64,
    too_late: bool,
    heap: BinaryHeap<Entry<E>>,
    digest: Digest,
}

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    at: Time,
    number: u64,
    event: E,
}

impl<E> Entry<E> {
    /// Both parts of the order in one comparison.
    fn key(&self) -> u128 {
        u128::from(self.at.ps()) << 64 | u128::from(self.number)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    /// The earliest is the greatest: the heap yields its greatest entry.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<E: Copy + Hash> Engine<E> {
    /// An engine without events, at time zero. The digest begins with the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut digest = Digest::default();
        digest.write_u64(seed);
        Self {
            now: Time::ZERO,
            scheduled: 0,
            handled: 0,
            too_late: false,
            heap: BinaryHeap::new(),
            digest,
        }
    }

    /// The time of the event that is handled.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Schedules an event so long after now. A time beyond [`Time::MAX`] ends the simulation:
    /// [`is_over_time`](Self::is_over_time).
    #[inline]
    pub fn after(&mut self, delay: Time, event: E) {
        let at = self.now + delay;
        if at == Time::MAX {
            self.too_late = true;
            return;
        }
        let number = self.scheduled;
        self.scheduled += 1;
        self.heap.push(Entry { at, number, event });
    }

    /// The next event, whose time becomes now. `None` at the end.
    #[inline]
    pub fn next_event(&mut self) -> Option<E> {
        if self.too_late {
            return None;
        }
        let Entry { at, event, .. } = self.heap.pop()?;
        self.now = at;
        self.handled += 1;
        self.digest.write_u64(at.ps());
        event.hash(&mut self.digest);
        Some(event)
    }

    /// Number of events handled.
    #[must_use]
    pub fn handled(&self) -> u64 {
        self.handled
    }

    /// Whether the simulated time exceeded 64 bits of picoseconds.
    #[must_use]
    pub fn is_over_time(&self) -> bool {
        self.too_late
    }

    /// Digest of the seed and of all events handled, with their times: equal for equal histories.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest.finish()
    }
}

/// A multiplicative hash of 64-bit words. It is quick, and equal on every machine and compiler, which
/// the standard library's is not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Digest(u64);

impl Digest {
    /// An odd number with as many ones as zeros: 2^64 divided by the golden ratio.
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
}

impl Hasher for Digest {
    fn finish(&self) -> u64 {
        // The low bits of a product depend on the low bits of its factors alone.
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }

    fn write_u16(&mut self, word: u16) {
        self.write_u64(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(Self::FACTOR);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a stable sort.
        #[test]
        fn events_are_in_order_and_ties_by_number(
            times in prop::collection::vec(0u64..20, 0..100),
        ) {
            let mut engine = Engine::new(0);
            for (number, &time) in times.iter().enumerate() {
                engine.after(Time::from_ps(time), number);
            }
            let mut sorted: Vec<_> = times.iter().copied().enumerate().collect();
            sorted.sort_by_key(|&(_, time)| time);
            for (number, time) in sorted {
                prop_assert_eq!(engine.next_event(), Some(number));
                prop_assert_eq!(engine.now(), Time::from_ps(time));
            }
            prop_assert_eq!(engine.next_event(), None);
            prop_assert_eq!(engine.handled(), times.len() as u64);
        }

        /// Exchanging two events of a history, or altering one, alters the digest.
        #[test]
        fn the_digest_tells_histories_apart(
            history in prop::collection::vec((0u64..4, 0u32..4), 2..20),
            at in any::<prop::sample::Index>(),
        ) {
            let digest = |history: &[(u64, u32)]| {
                let mut engine = Engine::new(1);
                for &(delay, event) in history {
                    engine.after(Time::from_ps(delay), event);
                    engine.next_event();
                }
                engine.digest()
            };
            let mut other = history.clone();
            let at = at.index(history.len() - 1);
            other.swap(at, at + 1);
            prop_assert_eq!(digest(&history) == digest(&other), history == other);
            other[at].1 ^= 8;
            prop_assert_ne!(digest(&history), digest(&other));
        }
    }

    #[test]
    fn time_beyond_the_last_picosecond_ends_the_simulation() {
        let mut engine = Engine::new(0);
        engine.after(Time::from_ps(u64::MAX - 1), 0);
        assert_eq!(engine.next_event(), Some(0));
        engine.after(Time::ZERO, 1);
        engine.after(Time::from_ps(1), 2);
        assert!(engine.is_over_time());
        assert_eq!(engine.next_event(), None);
    }
}
