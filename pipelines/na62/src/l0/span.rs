//! `Span`: the time range of an event.

/// Time range of the hits of an event: its window, and a guard interval on either side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Guard interval before and after the window, in units of 25/256 ns; hits in it are included.
    /// Times of hits count from the beginning of the first guard interval.
    pub guard: u16,
    /// Width of the window, in units of 25/256 ns; 0 if all hits belong to the event.
    pub width: u16,
}

impl Span {
    /// Whether `time`, counted like the times of hits, is in this window. A time outside belongs to
    /// a neighbouring event, which contains it as well.
    #[must_use]
    #[inline]
    pub fn holds(self, time: f32) -> bool {
        let start = f32::from(self.guard);
        self.width == 0 || (start..start + f32::from(self.width)).contains(&time)
    }
}
