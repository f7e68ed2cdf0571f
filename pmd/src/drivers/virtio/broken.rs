//! Rings that make no sense any more.

/// The other side has made the ring meaningless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;
