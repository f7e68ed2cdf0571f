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

mod error;
#[cfg(loom)]
#[doc(hidden)]
pub mod model;
mod mpmc;
mod slots;
pub mod spsc;

pub use error::{MAX_CAPACITY, RingError};
pub use mpmc::Mpmc;
