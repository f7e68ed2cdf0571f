//! Circle fits in sixteen SIMD lanes.
//!
//! The lanes are either sixteen events, each with hits of its own, or sixteen circle candidates for
//! the hits of one event. The mathematics is that of [`fit`](super::fit), in single precision.
//! Points are taken relative to the centre of the previous circle; moments of fourth order keep
//! enough digits there.

mod circles;
mod judge;
mod points;

pub(super) use circles::{Circles, Near, Sums, fit_all};
pub(super) use judge::{Claimed, Claims, Judge, Quality, Records, scores};
pub(super) use points::{Broadcast, Lane, NOWHERE, PerLane, Points};
