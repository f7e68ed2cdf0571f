//! Lock-free queues of small `Copy` descriptors (buffer handles, indices, pointers).
//!
//! | producers, consumers | ring |
//! | --- | --- |
//! | one, one | [`spsc::channel`]: two handles, one for each side |
//! | any, any | [`Mpmc`]: shared by reference |
//!
//! Both hold exactly the asked capacity, allocate (and touch) all memory when they are made and
//! none later. An operation is *bulk* (all items or none) or *burst* (as many as there is room
//! for); either costs one publication, so moving 32 items is far cheaper than 32 single moves.
//! Where the length of the slice is a constant of the caller, the copy is a few vector moves.

#[cfg(loom)]
#[doc(hidden)]
pub mod model;
mod mpmc;
mod slots;
pub mod spsc;

pub use mpmc::Mpmc;

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
