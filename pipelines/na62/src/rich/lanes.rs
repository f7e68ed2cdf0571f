//! Fits of sixteen circles at once.
//!
//! The lanes are sixteen events, of which each has hits of its own, or sixteen guesses at a circle
//! in the hits of one event. The mathematics is that of [`fit`](super::fit), in single precision:
//! points are taken relative to the centre of the last circle, whose moments of fourth order keep
//! enough digits there.

mod circles;
mod judge;
mod points;

pub(super) use circles::{Circles, Near, Sums, fit_all};
pub(super) use judge::{Claimed, Claims, Judge, Quality, scores};
pub(super) use points::{Alike, Lane, NOWHERE, PerLane, Points};
