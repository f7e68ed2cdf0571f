//! How large a ring may be, and why it could not be made.

/// The largest capacity of a ring, in items.
pub const MAX_CAPACITY: usize = 1 << 30;

/// Why a ring could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// The capacity is zero or above [`MAX_CAPACITY`].
    #[error("ring capacity {capacity} is outside 1..={MAX_CAPACITY}")]
    Capacity {
        /// Items that were asked for.
        capacity: usize,
    },
    /// The slots need more memory than there is.
    #[error("a ring of {capacity} items needs {bytes} bytes, and {available} are available")]
    Memory {
        /// Items that were asked for.
        capacity: usize,
        /// Bytes that their slots need.
        bytes: usize,
        /// Bytes of normal memory that are available.
        available: usize,
    },
}
