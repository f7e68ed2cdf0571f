//! The time that an event is of.

/// Of which time the hits of an event are: that of its window, and a guard on either side of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Units of 25/256 ns before and behind the window whose hits are there too. Hits count their
    /// times from the beginning of the first guard.
    pub guard: u16,
    /// Width of the window, in units of 25/256 ns; 0 where all hits are the event's own.
    pub width: u16,
}

impl Span {
    /// Whether what happened at `time`, counted as that of the hits, is this window's. What is not
    /// is a neighbour's, which has seen it as well.
    #[must_use]
    #[inline]
    pub fn holds(self, time: f32) -> bool {
        let start = f32::from(self.guard);
        self.width == 0 || (start..start + f32::from(self.width)).contains(&time)
    }
}
