//! Broken rings.

/// Error: the other side has corrupted the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;
