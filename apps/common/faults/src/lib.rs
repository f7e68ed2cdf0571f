//! Fault injection between a sender and a receiver, with exact counts. Frames are lost, delayed,
//! duplicated, reordered, or sent with a changed byte; and a bottleneck, whose queue delays, marks and
//! loses them.
//!
//! A frame has at most one fault, so the drops of a receiver can be compared with the counts, cause
//! by cause. Equal seeds give equal faults. All times are those of the frames: the order of the
//! frames does not depend on the pace at which they are requested.
//!
//! | item | what |
//! | --- | --- |
//! | [`FaultRates`] | the probability of each fault |
//! | [`Injector`] | applies faults, and orders the frames by departure |
//! | [`BottleneckOptions`] | a slow link whose queue marks frames, and loses them |
//! | [`Frame`] | a frame whose time and bytes can be changed |
//! | [`Counts`] | frames by fault |

mod bottleneck;
mod departures;
mod dice;
mod frame;
mod injector;

pub use bottleneck::{BottleneckOptions, mark_congestion};
pub use dice::{FaultError, FaultRates};
pub use frame::Frame;
pub use injector::{Behind, Counts, Injector};
