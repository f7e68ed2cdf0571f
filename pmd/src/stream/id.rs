//! Stream identifiers.

/// A configured stream: a small number that indexes per-stream state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u16);
