//! Finds the rings in the hits of events, up to sixteen events at once.
//!
//! 1. In the slot of an event the hits of one time on one disk are taken together: those within a
//!    window around the time that most of them share, then around that of most of the rest. What is
//!    looked at from here on is a *view*: the hits of one time on one disk.
//! 2. One circle is fitted to all hits of a view and narrowed down to those near it, sixteen
//!    views at once. Where nearly all hits agree, that is the ring: the common case of one
//!    particle costs a few fits.
//! 3. Else each view is looked at by itself. Circles are proposed ([`Method`]) and held against all
//!    hits that no ring has, sixteen circles at once. The best of each lane are narrowed down
//!    together, the best of these is a ring, and so are others that stay sure without its hits.
//!    Then circles are proposed by the hits that are left.
//! 4. The rings of a view are judged together, and those in doubt are looked for again.
//!
//! Narrowing down fits a circle (Taubin) to the hits in a road around the last one, which gets
//! narrower to a final width that covers a photomultiplier's cell. Where rings cross, a hit
//! belongs to both: the fit also takes hits that an earlier ring claimed, but they are no
//! evidence that the ring exists.
//!
//! Triplets, Ptolemy's criterion, a fit by Taubin and the removal of the hits are how NA62 finds
//! several rings on GPUs (G. Lamanna, "Almagest, a new trackless ring finding algorithm", NIM A
//! 766 (2014) 241).

mod search;
mod seeds;
mod settle;
mod significance;
mod split;
mod view;
mod word;

use pollux_pipelines::simd::{LANES, Simd};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use self::search::Search;
use self::seeds::Seeds;
use self::split::{Loader, Split};
use self::view::{Hits, View};
use super::Hit;
use super::geometry::{DISKS, PMS_PER_DISK};
use super::lanes::{Claimed, PerLane};

/// Most rings that are looked for on one disk.
pub const MAX_RINGS_PER_DISK: usize = 4;
/// Most rings of one event.
pub const MAX_RINGS: usize = DISKS * MAX_RINGS_PER_DISK;
/// Most events of one batch: one for each lane.
pub const MAX_BATCH: usize = LANES;

/// A ring that was found.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Serialize, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Ring {
    /// Disk: 0 Jura, 1 Saleve.
    pub disk: u8,
    /// How far from chance it is: minus the decimal logarithm of the number of rings that are
    /// expected by chance among the hits which no other ring explains, in tenths; 0 for less, 255 for
    /// more.
    pub significance: u8,
    /// Number of hits on the ring, those that it shares with rings that were found before included.
    pub hits: u16,
    /// Centre, in mm from the disk's centre.
    pub x: f32,
    /// Centre, in mm from the disk's centre.
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
    /// Its [significance](Self::significance) as a number, at least 0.
    #[must_use]
    #[inline]
    pub fn significance(&self) -> f32 {
        f32::from(self.significance) * SIGNIFICANCE
    }

    /// Rounds down, so that no ring seems more than it is.
    #[inline]
    fn set_significance(&mut self, value: f32) {
        // The cast saturates.
        self.significance = (value * (1.0 / SIGNIFICANCE)) as u8;
    }
}

/// Unit of [`Ring::significance`].
const SIGNIFICANCE: f32 = 0.1;

/// Where circles come from, if one does not explain all hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Circles through three hits.
    #[default]
    Triplets,
    /// For each centre on a grid, the radius at which most hits are, from a histogram of their
    /// distances. Looks everywhere, which takes longer.
    CentreGrid,
}

/// What counts as a ring: options of the stage `rings`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FinderConfig {
    /// Fewest hits of a ring, at least 4: three lie on a circle always. One of them may be
    /// shared with a ring that was found before.
    #[schemars(range(min = 4), extend("x-unit" = "hits"))]
    pub min_hits: u16,
    /// Fewest hits of a ring of the largest radius. The light that a particle emits grows with
    /// the square of its ring's radius, so a large ring of few hits is a chance alignment. A ring of
    /// radius r has at least max(`min_hits`, `min_hits_largest` (r / `max_radius_mm`)^2) hits.
    #[schemars(range(min = 4), extend("x-unit" = "hits"))]
    pub min_hits_largest: u16,
    /// Most rings on each disk of an event, of all times together, 1 to 4. Of more the ones with
    /// most hits are kept.
    #[schemars(range(min = 1, max = MAX_RINGS_PER_DISK), extend("x-unit" = "rings"))]
    pub max_rings: u8,
    /// Smallest radius, in mm.
    #[schemars(extend("exclusiveMinimum" = 0, "x-unit" = "mm"))]
    pub min_radius_mm: f32,
    /// Largest radius, in mm, above the smallest.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = MAX_RADIUS_MM, "x-unit" = "mm"))]
    pub max_radius_mm: f32,
    /// Largest distance of a ring's centre from the disk's centre, in mm.
    #[schemars(extend("exclusiveMinimum" = 0, "x-unit" = "mm"))]
    pub max_centre_mm: f32,
    /// Half the width of the road around a ring in which a hit belongs to it, in mm. A cell's
    /// corner is 10.4 mm from its middle; a wider road mixes hits of neighbouring rings.
    #[schemars(extend("exclusiveMinimum" = 0, "x-unit" = "mm"))]
    pub road_mm: f32,
    /// Largest mean squared distance of a ring's hits from it, in mm^2. Uniform light on a round
    /// opening of 18 mm gives 18^2 / 16 = 20.25 mm^2.
    #[schemars(extend("exclusiveMinimum" = 0, "x-unit" = "mm^2"))]
    pub max_chi2_mm2: f32,
    /// Least significance of a ring: 0 is that of rings of which one is expected
    /// by chance. Below 0 more chance alignments are kept; -100 keeps all.
    pub min_significance: f32,
    /// Searches of hits whose rings are in doubt, 1 to 8: each begins with other circles, and the
    /// rings that explain the hits best are taken. With one, events of several rings are found in
    /// less time, and more of their rings are false (docs/physics.md).
    #[schemars(range(min = 1, max = MAX_SEARCHES))]
    pub searches: u8,
    /// Hits whose times are within this of that of most others are looked at together, in units
    /// of 25/256 ns; 0 looks at all hits together.
    #[schemars(extend("x-unit" = "25/256 ns"))]
    pub time_window: u8,
    /// Circles through three hits that are tried for one ring.
    #[schemars(extend("x-unit" = "circles"))]
    pub seeds: u16,
    /// Where circles come from.
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
pub enum FinderError {
    /// A ring of so few hits is no evidence.
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

/// More than any radius that is looked for, in mm.
const MAX_RADIUS_MM: f32 = 1e4;

/// Most searches of the same hits: more have not found anything.
const MAX_SEARCHES: u8 = 8;

impl FinderConfig {
    /// Checks that the values make sense together.
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
    /// Whether a ring is within all bounds but that of its significance.
    fn allows(&self, ring: &Ring) -> bool {
        let share = ring.r * (1.0 / self.max_radius_mm);
        let expected = f32::from(self.min_hits_largest) * share * share;
        let centre = ring.x * ring.x + ring.y * ring.y;
        expected.max(f32::from(self.min_hits)) <= f32::from(ring.hits)
            && ring.chi2 <= self.max_chi2_mm2
            && (self.min_radius_mm..=self.max_radius_mm).contains(&ring.r)
            && centre <= self.max_centre_mm * self.max_centre_mm
    }
}

/// A ring finder with all the memory that it needs; one for each poll loop.
#[derive(Debug)]
pub struct RingFinder {
    cfg: FinderConfig,
    simd: Simd,
    seeds: Seeds,
    loader: Loader,
    views: Vec<View>,
    hits: Hits,
    /// Hits of sixteen views, and which hits circles have claimed.
    lanes: PerLane,
    claimed: Claimed,
    found: [Found; MAX_BATCH],
}

/// The rings of one event.
#[derive(Clone, Copy, Debug)]
struct Found {
    rings: [Ring; MAX_RINGS],
    n: usize,
    /// Rings on each disk.
    on: [u8; DISKS],
    /// There were more than there may be.
    cut: bool,
}

impl Found {
    const NONE: Self = Self {
        rings: [Ring {
            disk: 0,
            significance: 0,
            hits: 0,
            x: 0.0,
            y: 0.0,
            r: 0.0,
            chi2: 0.0,
            time: 0.0,
            time_spread: 0.0,
        }; MAX_RINGS],
        n: 0,
        on: [0; DISKS],
        cut: false,
    };

    /// Adds a ring; where its disk has `most` already, the one of all of them with the fewest hits
    /// has to go, of several the last.
    #[inline]
    fn add(&mut self, ring: Ring, most: u8) {
        let on = &mut self.on[usize::from(ring.disk) % DISKS];
        if *on >= most {
            self.cut = true;
            let rings = self.rings[..self.n].iter().enumerate();
            let rings = rings.filter(|(_, other)| other.disk == ring.disk);
            let weakest = rings.rev().min_by_key(|(_, other)| other.hits);
            let Some((i, _)) = weakest.filter(|(_, other)| other.hits < ring.hits) else {
                return;
            };
            self.rings[i..self.n].rotate_left(1);
            self.n -= 1;
        } else {
            *on += 1;
        }
        if let Some(place) = self.rings.get_mut(self.n) {
            *place = ring;
            self.n += 1;
        }
    }
}

impl RingFinder {
    /// Makes a finder that uses the best instructions of this CPU.
    ///
    /// # Errors
    /// A configuration that [`FinderConfig::check`] refuses.
    pub fn new(cfg: FinderConfig) -> Result<Self, FinderError> {
        Self::with_simd(cfg, Simd::best())
    }

    /// Makes a finder that uses the given instructions; what it finds does not depend on them.
    ///
    /// # Errors
    /// A configuration that [`FinderConfig::check`] refuses.
    pub fn with_simd(cfg: FinderConfig, simd: Simd) -> Result<Self, FinderError> {
        cfg.check()?;
        Ok(Self {
            cfg,
            simd,
            seeds: Seeds::new(&cfg),
            loader: Loader::default(),
            views: vec![View::default(); view::MAX_VIEWS],
            hits: Hits::default(),
            lanes: PerLane::with_room(PMS_PER_DISK),
            claimed: Claimed::with_room(PMS_PER_DISK),
            found: [Found::NONE; MAX_BATCH],
        })
    }

    /// Finds the rings in the hits of one event. First come, of disk 0 and then of disk 1, those of
    /// the time that most of its hits share, in the order of their discovery; then those of the next
    /// time of each disk. The same hits in the same order give the same rings. Hits of photomultipliers that do not exist are passed over.
    pub fn find(&mut self, hits: &[Hit]) -> &[Ring] {
        self.find_batch([hits]);
        self.rings(0)
    }

    /// Finds the rings of up to [`MAX_BATCH`] events, those beyond are passed over; returns how
    /// many there were. What is found in an event does not depend on the others.
    pub fn find_batch<'a>(&mut self, events: impl IntoIterator<Item = &'a [Hit]>) -> usize {
        self.hits.clear();
        let (count, views) = self.simd.decode(Split {
            cfg: &self.cfg,
            events: events.into_iter(),
            loader: &mut self.loader,
            views: &mut self.views,
            hits: &mut self.hits,
        });
        for found in &mut self.found[..count] {
            (found.n, found.on, found.cut) = (0, [0; DISKS], false);
        }
        self.simd.run(Search {
            cfg: &self.cfg,
            seeds: &self.seeds,
            views: &mut self.views[..views],
            hits: &mut self.hits,
            lanes: &mut self.lanes,
            claimed: &mut self.claimed,
        });
        for view in &self.views[..views] {
            let Some(found) = self.found.get_mut(usize::from(view.event)) else {
                continue;
            };
            for ring in view.found.rings() {
                found.add(*ring, self.cfg.max_rings);
            }
        }
        count
    }

    /// The rings of event `n` of the last batch; none beyond its last event.
    #[must_use]
    pub fn rings(&self, n: usize) -> &[Ring] {
        self.found
            .get(n)
            .map_or(&[], |found| &found.rings[..found.n])
    }
}

impl RingFinder {
    /// Whether event `n` of the last batch had more rings on a disk than `max_rings`.
    #[must_use]
    #[inline]
    pub fn was_cut(&self, n: usize) -> bool {
        self.found.get(n).is_some_and(|found| found.cut)
    }
}

#[cfg(test)]
mod tests;
