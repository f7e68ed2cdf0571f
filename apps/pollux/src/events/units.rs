//! Units of times in events.

/// A unit of a time: 25/256 ns.
pub(super) const FINE_NS: f64 = 25.0 / 256.0;
