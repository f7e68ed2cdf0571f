//! `Ring`, a ring that was found, and the limits on the number of rings.

use pollux_pipelines::simd::LANES;
use serde::Serialize;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::rich::geometry::DISKS;

/// Maximum number of rings on one disk.
pub const MAX_RINGS_PER_DISK: usize = 4;
/// Maximum number of rings of one event.
pub const MAX_RINGS: usize = DISKS * MAX_RINGS_PER_DISK;
/// Maximum number of events of one batch: one for each lane.
pub const MAX_BATCH: usize = LANES;

/// A ring that was found.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Serialize, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Ring {
    /// Disk: 0 Jura, 1 Saleve.
    pub disk: u8,
    /// Significance: minus the decimal logarithm of the number of such rings that are expected by
    /// chance among the hits which no other ring explains, in tenths; 0 for less, 255 for more.
    pub significance: u8,
    /// Number of hits on the ring, including those that it shares with earlier rings.
    pub hits: u16,
    /// First coordinate of the centre, in mm from the disk's centre.
    pub x: f32,
    /// Second coordinate of the centre, in mm from the disk's centre.
    pub y: f32,
    /// Radius in mm.
    pub r: f32,
    /// Mean squared distance of those hits from the ring, in mm^2.
    pub chi2: f32,
    /// Mean time of those hits within the slot, in units of 25/256 ns.
    pub time: f32,
    /// Standard deviation of their times, in units of 25/256 ns.
    pub time_spread: f32,
}

impl Ring {
    /// The [significance](Self::significance) as a number, at least 0.
    #[must_use]
    #[inline]
    pub fn significance(&self) -> f32 {
        f32::from(self.significance) * SIGNIFICANCE
    }

    /// Rounds down, so that the significance is not overstated.
    #[inline]
    pub(super) fn set_significance(&mut self, value: f32) {
        // The cast saturates.
        self.significance = (value * (1.0 / SIGNIFICANCE)) as u8;
    }
}

/// Unit of [`Ring::significance`].
const SIGNIFICANCE: f32 = 0.1;
