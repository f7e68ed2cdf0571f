//! The RICH detector: where its photomultipliers are, and the rings in their hits.

pub mod batch;
pub mod find;
pub mod fit;
pub mod geometry;
mod lanes;
pub mod particle;

/// One photomultiplier hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Hit {
    /// Photomultiplier index, 0 to [`geometry::PMS`] - 1.
    pub pm: u16,
    /// Time within the event's 25 ns slot, in units of 25/256 ns.
    pub fine: u8,
}
