//! Configuration of the ring finder.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ring::{MAX_RINGS_PER_DISK, Ring};

/// Source of circle candidates, where one circle does not explain all hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Circles through three hits.
    #[default]
    Triplets,
    /// For each centre on a grid, the radius with the most hits, from a histogram of their
    /// distances. An exhaustive search, which takes longer.
    CentreGrid,
}

/// Criteria of a ring: options of the stage `rings`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FinderConfig {
    /// Minimum number of hits of a ring, at least 4: three points always lie on a circle. One of
    /// the hits may be shared with an earlier ring.
    #[schemars(range(min = 4), extend("x-unit" = "hits"))]
    pub min_hits: u16,
    /// Minimum number of hits of a ring of the largest radius. The light that a particle emits
    /// grows with the square of its ring's radius, so a large ring of few hits is a chance
    /// alignment. A ring of radius r has at least max(`min_hits`, `min_hits_largest` (r /
    /// `max_radius_mm`)^2) hits.
    #[schemars(range(min = 4), extend("x-unit" = "hits"))]
    pub min_hits_largest: u16,
    /// Maximum number of rings on each disk of an event, over all times, 1 to 4. If there are more,
    /// those with the most hits are kept.
    #[schemars(range(min = 1, max = MAX_RINGS_PER_DISK), extend("x-unit" = "rings"))]
    pub max_rings: u8,
    /// Minimum radius, in mm.
    #[schemars(extend("exclusiveMinimum" = 0, "x-unit" = "mm"))]
    pub min_radius_mm: f32,
    /// Maximum radius, in mm; greater than the minimum.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = MAX_RADIUS_MM, "x-unit" = "mm"))]
    pub max_radius_mm: f32,
    /// Maximum distance of a ring's centre from the disk's centre, in mm.
    #[schemars(extend("exclusiveMinimum" = 0, "x-unit" = "mm"))]
    pub max_centre_mm: f32,
    /// Half the width, in mm, of the road around a ring, within which hits belong to it. A cell's
    /// corner is 10.4 mm from its middle; a wider road mixes hits of neighbouring rings.
    #[schemars(extend("exclusiveMinimum" = 0, "x-unit" = "mm"))]
    pub road_mm: f32,
    /// Maximum mean squared distance of a ring's hits from it, in mm^2. Uniform light on a round
    /// opening of 18 mm gives 18^2 / 16 = 20.25 mm^2.
    #[schemars(extend("exclusiveMinimum" = 0, "x-unit" = "mm^2"))]
    pub max_chi2_mm2: f32,
    /// Minimum significance of a ring; at 0, one such ring is expected by chance. Values below 0
    /// keep more chance alignments; -100 keeps all.
    pub min_significance: f32,
    /// Number of searches of hits whose rings are in doubt, 1 to 8. Each starts with other circles,
    /// and the rings that explain the hits best are kept. With one search, events of several rings
    /// take less time, but more of their rings are false (docs/physics.md).
    #[schemars(range(min = 1, max = MAX_SEARCHES))]
    pub searches: u8,
    /// Width of the time window around the time that most hits share, to either side, in units of
    /// 25/256 ns; 0 disables the grouping by time.
    #[schemars(extend("x-unit" = "25/256 ns"))]
    pub time_window: u8,
    /// Maximum number of circles through three hits that are tried for one ring.
    #[schemars(extend("x-unit" = "circles"))]
    pub seeds: u16,
    /// Source of circle candidates.
    pub method: Method,
}

impl Default for FinderConfig {
    fn default() -> Self {
        Self {
            min_hits: 5,
            min_hits_largest: 7,
            max_rings: MAX_RINGS_PER_DISK as u8,
            min_radius_mm: 80.0,
            max_radius_mm: 200.0,
            max_centre_mm: 125.0,
            road_mm: 10.5,
            max_chi2_mm2: 50.0,
            min_significance: 0.0,
            searches: 3,
            time_window: 20,
            seeds: 64,
            method: Method::Triplets,
        }
    }
}

/// Why a [`FinderConfig`] is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FinderError {
    /// A minimum number of hits that is no evidence of a ring.
    #[error("min_hits and min_hits_largest must be at least 4: any three hits lie on a circle")]
    MinHits,
    /// The number of rings is out of range.
    #[error("max_rings must be 1 to {MAX_RINGS_PER_DISK}")]
    MaxRings,
    /// A length is not a positive number, or the radii are in the wrong order.
    #[error("lengths must be positive, and min_radius_mm below max_radius_mm")]
    Lengths,
    /// The significance is not a number.
    #[error("min_significance must be a number")]
    Significance,
    /// The number of searches is out of range.
    #[error("searches must be 1 to {MAX_SEARCHES}")]
    Searches,
}

/// Greater than any radius searched for, in mm.
const MAX_RADIUS_MM: f32 = 1e4;

/// Maximum number of searches of the same hits: further ones found nothing in tests.
const MAX_SEARCHES: u8 = 8;

impl FinderConfig {
    /// Checks the values and their combinations.
    ///
    /// # Errors
    /// The first [`FinderError`] that applies.
    pub fn check(&self) -> Result<(), FinderError> {
        if self.min_hits < 4 || self.min_hits_largest < 4 {
            return Err(FinderError::MinHits);
        }
        if !(1..=MAX_RINGS_PER_DISK).contains(&usize::from(self.max_rings)) {
            return Err(FinderError::MaxRings);
        }
        let lengths = [
            self.min_radius_mm,
            self.max_centre_mm,
            self.road_mm,
            self.max_chi2_mm2,
        ];
        let positive = lengths.iter().all(|&v| v > 0.0 && v.is_finite());
        let ordered = self.max_radius_mm > self.min_radius_mm && self.max_radius_mm < MAX_RADIUS_MM;
        if !(positive && ordered) {
            return Err(FinderError::Lengths);
        }
        if !self.min_significance.is_finite() {
            return Err(FinderError::Significance);
        }
        if !(1..=MAX_SEARCHES).contains(&self.searches) {
            return Err(FinderError::Searches);
        }
        Ok(())
    }
}

impl FinderConfig {
    /// Whether a ring is within all limits except that of its significance.
    pub(super) fn allows(&self, ring: &Ring) -> bool {
        let share = ring.r * (1.0 / self.max_radius_mm);
        let expected = f32::from(self.min_hits_largest) * share * share;
        let centre = ring.x * ring.x + ring.y * ring.y;
        expected.max(f32::from(self.min_hits)) <= f32::from(ring.hits)
            && ring.chi2 <= self.max_chi2_mm2
            && (self.min_radius_mm..=self.max_radius_mm).contains(&ring.r)
            && centre <= self.max_centre_mm * self.max_centre_mm
    }
}
