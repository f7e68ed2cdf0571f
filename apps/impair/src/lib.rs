//! What goes wrong between a sender and a receiver, on purpose and counted exactly: frames are
//! lost, delayed, sent twice, out of order, or with a changed byte.
//!
//! At most one of these befalls a frame, so that what a receiver finds can be held against the
//! counts, cause by cause. Equal seeds make equal faults. Time is the frames' own: the order of
//! the frames does not depend on the pace at which they are asked for.
//!
//! | item | what |
//! | --- | --- |
//! | [`Impairments`] | how often what befalls a frame |
//! | [`Injector`] | lets it happen, and puts the frames in the order of their departure |
//! | [`Frame`] | what an injector must know of a frame |
//! | [`Counts`] | what happened |

mod departures;
mod dice;
mod injector;

pub use dice::{ImpairError, Impairments};
pub use injector::{Behind, Counts, Frame, Injector};
