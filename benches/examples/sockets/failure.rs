//! The error type of the comparison.

/// An error of any part, which ends the run.
pub(super) type Failure = Box<dyn std::error::Error + Send + Sync>;
