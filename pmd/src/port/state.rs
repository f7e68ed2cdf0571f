//! Whether a receive queue can still yield frames.

/// Whether a receive queue can still yield frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RxState {
    /// It can.
    Live,
    /// Its link is down at present.
    Down,
    /// Its recording has come to its end, for good.
    Exhausted,
    /// Its device has left, for good. (Of one that still works, but is wanted back by its owner,
    /// [`Link::gone`](crate::driver::Link::gone) tells.)
    Gone,
}

impl RxState {
    /// Whether nothing comes any more, whatever happens.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Exhausted | Self::Gone)
    }
}
