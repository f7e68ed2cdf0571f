//! Ring finder: finds the rings in the hits of up to sixteen events at once.
//!
//! 1. Hits of an event are grouped by disk and time: the hits within a window around the time that
//!    most of them share, then around the time that most of the rest share. The further steps work
//!    on *views*: the hits of one time on one disk.
//! 2. One circle is fitted to all hits of a view and narrowed down to those near it, sixteen views
//!    at once. If nearly all hits agree, that circle is the ring: the common case of one particle
//!    costs a few fits.
//! 3. Otherwise each view is searched by itself. Circles are proposed ([`Method`]) and scored with
//!    all hits that belong to no ring, sixteen circles at once. The best circle of each lane is
//!    narrowed down, and the best result is a ring. Other results that remain significant without
//!    its hits are rings as well. Then the remaining hits propose further circles.
//! 4. The rings of a view are judged jointly, and doubtful ones are searched for again.
//!
//! Narrowing down fits a circle (Taubin) to the hits in a road around the previous one. The road
//! shrinks to a final width that covers a photomultiplier's cell. Where rings cross, a hit belongs
//! to both: the fit also uses hits that an earlier ring claimed, but they are no evidence that the
//! ring exists.
//!
//! Triplets, Ptolemy's criterion, a fit by Taubin and the removal of the hits are NA62's method of
//! finding several rings on GPUs (G. Lamanna, "Almagest, a new trackless ring finding algorithm",
//! NIM A 766 (2014) 241).

mod config;
mod joint_fit;
mod ring;
mod search;
mod seeds;
mod significance;
mod split;
mod view;
mod word;

use pollux_pipelines::simd::Simd;

pub use self::config::{FinderConfig, FinderError, Method};
pub use self::ring::{MAX_BATCH, MAX_RINGS, MAX_RINGS_PER_DISK, Ring};
use self::search::Search;
use self::seeds::Seeds;
use self::split::{Loader, Split};
use self::view::{Hits, View};
use super::Hit;
use super::geometry::{DISKS, PMS_PER_DISK};
use super::lanes::{Claimed, PerLane};

/// A ring finder with all its memory; one for each poll loop.
#[derive(Debug)]
pub struct RingFinder {
    cfg: FinderConfig,
    simd: Simd,
    seeds: Seeds,
    loader: Loader,
    views: Vec<View>,
    hits: Hits,
    /// Hits of sixteen views, and the hits that circles have claimed.
    lanes: PerLane,
    claimed: Claimed,
    found: [Found; MAX_BATCH],
}

/// The rings of one event.
#[derive(Clone, Copy, Debug)]
struct Found {
    rings: [Ring; MAX_RINGS],
    n: usize,
    /// Number of rings on each disk.
    on: [u8; DISKS],
    /// More rings were found than the limit permits.
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

    /// Adds a ring. If its disk already has `most` rings, removes the ring with the fewest hits; of
    /// several, the last.
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
    /// Creates a finder that uses the best instruction set of this CPU.
    ///
    /// # Errors
    /// A configuration that [`FinderConfig::check`] refuses.
    pub fn new(cfg: FinderConfig) -> Result<Self, FinderError> {
        Self::with_simd(cfg, Simd::best())
    }

    /// Creates a finder that uses the given instruction set; the results do not depend on it.
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

    /// Finds the rings in the hits of one event. The rings of the time that most hits share come
    /// first (disk 0, then disk 1), in the order of their discovery, then those of the next time of
    /// each disk. The same hits in the same order give the same rings. Hits with invalid
    /// photomultiplier indices are ignored.
    pub fn find(&mut self, hits: &[Hit]) -> &[Ring] {
        self.find_batch([hits]);
        self.rings(0)
    }

    /// Finds the rings of up to [`MAX_BATCH`] events, ignores further ones, and returns the number
    /// of events. The result of an event does not depend on the others.
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

    /// The rings of event `n` of the last batch; empty beyond its last event.
    #[must_use]
    pub fn rings(&self, n: usize) -> &[Ring] {
        self.found
            .get(n)
            .map_or(&[], |found| &found.rings[..found.n])
    }
}

impl RingFinder {
    /// Whether a disk of event `n` of the last batch had more than `max_rings` rings.
    #[must_use]
    #[inline]
    pub fn was_cut(&self, n: usize) -> bool {
        self.found.get(n).is_some_and(|found| found.cut)
    }
}

#[cfg(test)]
mod tests;
