//! The RICH detector: geometry of its photomultipliers, and ring finding in their hits.

pub mod batch;
pub mod find;
pub mod fit;
pub mod geometry;
mod lanes;
pub mod particle;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// One photomultiplier hit.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Hit {
    /// Photomultiplier index, 0 to [`geometry::PMS`] - 1.
    pub pm: u16,
    /// Time within the event's 25 ns slot, in units of 25/256 ns: below 256, unless an event has
    /// hits of more than its own slot.
    pub fine: u16,
}
