//! Which members of a kind a loop has.

use std::ops::Range;

/// Numbers at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    first: u16,
    step: u16,
    len: u16,
}

impl Default for Numbers {
    fn default() -> Self {
        Self::from(0..0)
    }
}

impl From<Range<u16>> for Numbers {
    fn from(range: Range<u16>) -> Self {
        Self::every(range, 1)
    }
}

impl Numbers {
    /// The first number of a range, and each that is a multiple of `step` behind it. A step of 0 is 1.
    #[must_use]
    pub fn every(range: Range<u16>, step: u16) -> Self {
        let step = step.max(1);
        let span = range.end.saturating_sub(range.start);
        Self {
            first: range.start,
            step,
            len: span.div_ceil(step),
        }
    }

    /// The first one, if there is one.
    #[must_use]
    pub fn first(self) -> Option<u16> {
        (self.len > 0).then_some(self.first)
    }

    /// The distance from one to the next.
    #[must_use]
    pub fn step(self) -> u16 {
        self.step
    }

    /// How many there are.
    #[must_use]
    pub fn len(self) -> usize {
        self.len.into()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The numbers in order.
    #[must_use]
    pub fn iter(self) -> impl DoubleEndedIterator<Item = u16> {
        (0..self.len).map(move |n| self.first + n * self.step)
    }

    /// The place of a number among them.
    #[must_use]
    #[inline]
    pub fn place(self, number: u16) -> Option<usize> {
        let distance = number.checked_sub(self.first)?;
        // A power of two as a rule, and a division takes as long as ten other instructions.
        let (place, rest) = if self.step.is_power_of_two() {
            let place = distance >> self.step.trailing_zeros();
            (place, distance & (self.step - 1))
        } else {
            (distance / self.step, distance % self.step)
        };
        (place < self.len && rest == 0).then_some(place.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_number_has_its_place(start in any::<u16>(), end in any::<u16>(), step in any::<u16>()) {
            let numbers = Numbers::every(start..end, step);
            let expected: Vec<_> = (start..end).step_by(step.max(1).into()).collect();
            prop_assert_eq!(numbers.iter().collect::<Vec<_>>(), expected.clone());
            prop_assert_eq!(numbers.len(), expected.len());
            prop_assert_eq!(numbers.first(), expected.first().copied());
            for number in [start, end, start.wrapping_sub(1), start.saturating_add(step), 0, u16::MAX] {
                prop_assert_eq!(numbers.place(number), expected.iter().position(|&n| n == number));
            }
        }
    }
}
