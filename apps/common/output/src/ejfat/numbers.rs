//! Numbers of events that were sent.

use std::collections::{HashSet, VecDeque};

/// Number of events that are remembered: a second of 100 kHz, which is longer than any receiver collects
/// the datagrams of an event; 6 MiB.
const REMEMBERED: usize = 1 << 17;

/// A burst and a number in it.
type Number = (u16, u64);

/// The last numbers. Building may step back within a burst, so that two events have one time stamp
/// (docs/operations.md, "When a board is wrong").
pub(super) struct Numbers {
    known: HashSet<Number>,
    /// In the order in which they came.
    order: VecDeque<Number>,
    most: usize,
}

impl Default for Numbers {
    fn default() -> Self {
        Self::new(REMEMBERED)
    }
}

impl Numbers {
    fn new(most: usize) -> Self {
        Self {
            known: HashSet::new(),
            order: VecDeque::new(),
            most,
        }
    }

    /// Remembers a number, and forgets the one that is remembered for longest; `false` if it is known.
    pub(super) fn is_new(&mut self, number: Number) -> bool {
        if !self.known.insert(number) {
            return false;
        }
        if self.order.len() == self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.order.push_back(number);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_numbers_are_known_and_no_more() {
        let mut numbers = Numbers::new(3);
        for n in 0..3 {
            assert!(numbers.is_new((1, n)));
        }
        assert!(!numbers.is_new((1, 0)) && !numbers.is_new((1, 2)));
        // That of another burst is another event.
        assert!(numbers.is_new((2, 0)));
        assert!(!numbers.is_new((1, 1)) && !numbers.is_new((2, 0)));
        assert!(numbers.is_new((1, 0)));
        assert_eq!((numbers.known.len(), numbers.order.len()), (3, 3));
    }
}
