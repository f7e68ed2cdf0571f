//! Finds the rings in the hits of one event.
//!
//! Each disk is looked at by itself. While hits enough are left on it, the strongest ring is
//! found, refined and taken out with its hits:
//!
//! 1. One circle is fitted to all hits and narrowed down to those near it. Where nearly all
//!    hits agree, that is the ring: the common case of one particle costs a few fits.
//! 2. Else circles through three hits, the same ones for the same hits in every run, are held
//!    against all hits. Those with most hits in their road, near its middle, are narrowed down
//!    in turn until one is good enough.
//!
//! Narrowing down fits a circle (Taubin) to the hits in a road around the last one, which gets
//! narrower to a final width that covers a photomultiplier's cell. Where rings cross, a hit
//! belongs to both: the fit also takes hits that an earlier ring claimed, but they are no
//! evidence that the ring exists.

use serde::{Deserialize, Serialize};

use super::Hit;
use super::fit::{Circle, Moments};
use super::geometry::{DISKS, PMS_PER_DISK, POSITIONS, disk_of};

/// Most rings that are looked for on one disk.
pub const MAX_RINGS_PER_DISK: usize = 4;
/// Most rings of one event.
pub const MAX_RINGS: usize = DISKS * MAX_RINGS_PER_DISK;
/// Hits that are tested at once against a circle: two registers of AVX, one of AVX-512.
const LANES: usize = 16;
/// Seeds that are narrowed down, from the best on, before the search is given up.
const CANDIDATES: usize = 4;
/// Coordinate of the unused places of a vector, in mm: far from every ring.
const NOWHERE: f32 = 1e6;

/// A ring that was found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ring {
    /// Disk: 0 Jura, 1 Saleve.
    pub disk: u8,
    /// Centre, in mm from the disk's centre.
    pub x: f32,
    /// Centre, in mm from the disk's centre.
    pub y: f32,
    /// Radius in mm.
    pub r: f32,
    /// Number of hits on the ring.
    pub hits: u16,
    /// Mean squared distance of those hits from the ring, in mm^2.
    pub chi2: f32,
    /// Mean time of those hits within the slot, in units of 25/256 ns.
    pub time: f32,
}

/// What counts as a ring.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FinderConfig {
    /// Fewest hits of a ring, at least 4: three lie on a circle always. One of them may be
    /// shared with a ring that was found before.
    pub min_hits: u16,
    /// Fewest hits of a ring of the largest radius. The light that a particle emits grows with
    /// the square of its ring's radius, so a large ring of few hits is a chance alignment;
    /// between, the bound follows the square of the radius.
    pub min_hits_largest: u16,
    /// Rings to look for on each disk, 1 to 4.
    pub max_rings: u8,
    /// Smallest radius, in mm.
    pub min_radius_mm: f32,
    /// Largest radius, in mm.
    pub max_radius_mm: f32,
    /// Largest distance of a ring's centre from the disk's centre, in mm.
    pub max_centre_mm: f32,
    /// Half the width of the road around a ring in which a hit belongs to it, in mm. A cell's
    /// corner is 10.4 mm from its middle; a wider road mixes hits of neighbouring rings.
    pub road_mm: f32,
    /// Largest mean squared distance of a ring's hits from it, in mm^2. Uniform light in a
    /// hexagonal cell of 18 mm gives 5/72 x 18^2 = 22.5 mm^2.
    pub max_chi2_mm2: f32,
    /// Hits further than this from the median time of the event are not looked at, in units of
    /// 25/256 ns; 0 looks at all hits.
    pub time_window: u8,
    /// Circles through three hits that are tried for one ring.
    pub seeds: u16,
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
            time_window: 20,
            seeds: 96,
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
}

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
        let ordered = self.max_radius_mm > self.min_radius_mm && self.max_radius_mm < 1e4;
        if !(positive && ordered) {
            return Err(FinderError::Lengths);
        }
        Ok(())
    }
}

/// Hits of one disk that no ring has claimed yet.
#[derive(Debug)]
struct Disk {
    /// One vector longer than the photomultipliers, so that the last one is always whole.
    x: [f32; PMS_PER_DISK + LANES],
    y: [f32; PMS_PER_DISK + LANES],
    fine: [u8; PMS_PER_DISK],
    n: usize,
}

/// Hits in the road of a circle, gathered for a fit, or hits that rings have claimed.
#[derive(Debug)]
struct Points {
    x: [f32; PMS_PER_DISK],
    y: [f32; PMS_PER_DISK],
    n: usize,
}

/// A ring finder with all the memory that it needs; one for each poll loop.
#[derive(Debug)]
pub struct RingFinder {
    cfg: FinderConfig,
    disk: Box<Disk>,
    claimed: Box<Points>,
    road: Box<Points>,
    rings: [Ring; MAX_RINGS],
}

impl RingFinder {
    /// Makes a finder.
    ///
    /// # Errors
    /// A configuration that [`FinderConfig::check`] refuses.
    pub fn new(cfg: FinderConfig) -> Result<Self, FinderError> {
        cfg.check()?;
        let points = || {
            Box::new(Points {
                x: [0.0; PMS_PER_DISK],
                y: [0.0; PMS_PER_DISK],
                n: 0,
            })
        };
        let wide = [NOWHERE; PMS_PER_DISK + LANES];
        Ok(Self {
            cfg,
            disk: Box::new(Disk {
                x: wide,
                y: wide,
                fine: [0; PMS_PER_DISK],
                n: 0,
            }),
            claimed: points(),
            road: points(),
            rings: [Ring::default(); MAX_RINGS],
        })
    }

    /// Finds the rings in the hits of one event, in the order: disk 0 before disk 1, and on a
    /// disk in the order of their discovery. The same hits in the same order give the same
    /// rings. Hits of photomultipliers that do not exist are passed over.
    pub fn find(&mut self, hits: &[Hit]) -> &[Ring] {
        let times = time_range(hits, self.cfg.time_window);
        let mut found = 0;
        for disk in 0..DISKS as u8 {
            self.disk.load(hits, disk, times);
            self.claimed.n = 0;
            for _ in 0..self.cfg.max_rings {
                let Some(circle) = self.strongest() else {
                    break;
                };
                self.rings[found] = self.disk.claim(circle, self.cfg.road_mm, &mut self.claimed);
                self.rings[found].disk = disk;
                found += 1;
            }
        }
        &self.rings[..found]
    }

    /// The strongest ring among the hits that are left on the disk.
    fn strongest(&mut self) -> Option<Circle> {
        let n = self.disk.n;
        if n + 1 < usize::from(self.cfg.min_hits) {
            return None;
        }
        // A fifth of the hits may be noise before the seeds are worth their time.
        let nearly_all = n - n / 5;
        let (x, y) = (&self.disk.x[..n], &self.disk.y[..n]);
        if let Some(all) = Moments::of(x, y).and_then(|moments| moments.taubin())
            && let Some((ring, own)) = self.narrow(all, &[4.0, 2.0, 1.25, 1.0])
            && own >= nearly_all
        {
            return Some(ring);
        }
        let seeds = self.best_seeds();
        seeds
            .iter()
            .find_map(|seed| Some(self.narrow(seed.1, &[1.5, 1.0, 1.0])?.0))
    }

    /// Fits to the hits in ever narrower roads, `widths` times the final one, and judges the
    /// result: the ring, and how many of the hits that it was fitted to are its own.
    fn narrow(&mut self, start: Circle, widths: &[f32]) -> Option<(Circle, usize)> {
        let mut circle = start;
        let mut own = 0;
        for width in widths {
            let width = width * self.cfg.road_mm;
            let (disk, claimed) = (&self.disk, &self.claimed);
            self.road.n = 0;
            self.road
                .gather(&disk.x[..disk.n], &disk.y[..disk.n], circle, width);
            own = self.road.n;
            self.road.gather(
                &claimed.x[..claimed.n],
                &claimed.y[..claimed.n],
                circle,
                width,
            );
            circle = Moments::of(self.road.x(), self.road.y())?.taubin()?;
        }
        let share = circle.r / self.cfg.max_radius_mm;
        let enough = f32::from(self.cfg.min_hits_largest) * share * share;
        let (hits, min_hits) = (self.road.n, usize::from(self.cfg.min_hits));
        let good = self.is_in_range(circle)
            && hits >= min_hits
            && hits as f32 >= enough
            && own + 1 >= min_hits
            && circle.mean_square_residual(self.road.x(), self.road.y()) <= self.cfg.max_chi2_mm2;
        good.then_some((circle, own))
    }

    fn is_in_range(&self, circle: Circle) -> bool {
        (self.cfg.min_radius_mm..=self.cfg.max_radius_mm).contains(&circle.r)
            && circle.x * circle.x + circle.y * circle.y
                <= self.cfg.max_centre_mm * self.cfg.max_centre_mm
    }

    /// The circles through three hits that most hits lie near, with their scores, best first.
    fn best_seeds(&self) -> [(f32, Circle); CANDIDATES] {
        let at = |i: usize| [self.disk.x[i], self.disk.y[i]];
        let mut best = [(0.0, Circle::default()); CANDIDATES];
        for [i, j, k] in Triplets::new(self.disk.n, self.cfg.seeds) {
            let Some(circle) = Circle::through(at(i), at(j), at(k)) else {
                continue;
            };
            if !self.is_in_range(circle) {
                continue;
            }
            let score = self.disk.score(circle, self.cfg.road_mm);
            if score <= best[CANDIDATES - 1].0 {
                continue;
            }
            // It takes the place of a seed for the same ring, else of the last; a worse seed
            // for a ring that has one is dropped.
            let same = best
                .iter()
                .position(|&(_, other)| is_near(circle, other, self.cfg.road_mm));
            let mut place = same.unwrap_or(CANDIDATES - 1);
            if score <= best[place].0 {
                continue;
            }
            while place > 0 && best[place - 1].0 < score {
                best[place] = best[place - 1];
                place -= 1;
            }
            best[place] = (score, circle);
        }
        best
    }
}

/// Whether two circles run in one road nearly everywhere.
fn is_near(a: Circle, b: Circle, road: f32) -> bool {
    (a.x - b.x)
        .abs()
        .max((a.y - b.y).abs())
        .max((a.r - b.r).abs())
        < road
}

/// Whether a hit at (x, y) is in the road of a circle, by squared distances.
#[inline]
fn in_road(x: f32, y: f32, circle: Circle, road: f32) -> bool {
    let (inner, outer) = ((circle.r - road).max(0.0), circle.r + road);
    let (dx, dy) = (x - circle.x, y - circle.y);
    (inner * inner..=outer * outer).contains(&(dx * dx + dy * dy))
}

/// First and last time that is looked at: `window` on both sides of the median of the hits.
fn time_range(hits: &[Hit], window: u8) -> (u8, u8) {
    if window == 0 || hits.is_empty() {
        return (0, u8::MAX);
    }
    let mut count = [0u16; 256];
    for hit in hits {
        count[usize::from(hit.fine)] = count[usize::from(hit.fine)].saturating_add(1);
    }
    let half = hits.len() / 2;
    let mut below = 0;
    let median = count
        .iter()
        .position(|&c| {
            below += usize::from(c);
            below > half
        })
        .unwrap_or(0) as u8;
    (median.saturating_sub(window), median.saturating_add(window))
}

impl Disk {
    /// Takes the hits of one disk. More hits than the disk has photomultipliers cannot come
    /// from it; what is beyond is passed over.
    fn load(&mut self, hits: &[Hit], disk: u8, (first, last): (u8, u8)) {
        self.n = 0;
        for hit in hits {
            let Some(&[x, y]) = POSITIONS.get(usize::from(hit.pm)) else {
                continue;
            };
            let wanted = disk_of(hit.pm) == disk && (first..=last).contains(&hit.fine);
            if wanted && self.n < PMS_PER_DISK {
                self.x[self.n] = x;
                self.y[self.n] = y;
                self.fine[self.n] = hit.fine;
                self.n += 1;
            }
        }
        self.pad();
    }

    /// Moves the places behind the last hit, up to a whole vector, out of every ring's reach.
    fn pad(&mut self) {
        self.x[self.n..self.n + LANES].fill(NOWHERE);
    }

    /// Sum over the hits in the road of 1 - (distance / road)^2: how many, and how near.
    ///
    /// (d^2 - r^2) / 2r stands for the distance d - r, which saves a square root and differs
    /// by less than road / 2r of it.
    #[inline]
    fn score(&self, circle: Circle, road: f32) -> f32 {
        let per = 1.0 / (2.0 * circle.r * road);
        let r2 = circle.r * circle.r;
        let mut sums = [0.0f32; LANES];
        let whole = self.n.next_multiple_of(LANES);
        let rows = self.x[..whole]
            .chunks_exact(LANES)
            .zip(self.y[..whole].chunks_exact(LANES));
        for (xs, ys) in rows {
            for lane in 0..LANES {
                let (dx, dy) = (xs[lane] - circle.x, ys[lane] - circle.y);
                let u = (dx * dx + dy * dy - r2) * per;
                sums[lane] += (1.0 - u * u).max(0.0);
            }
        }
        sums.iter().sum()
    }

    /// Makes a ring of the hits in the circle's road and moves them to those `claimed`.
    fn claim(&mut self, circle: Circle, road: f32, claimed: &mut Points) -> Ring {
        let (mut kept, mut time, mut square) = (0, 0u32, 0.0);
        for i in 0..self.n {
            let (x, y, fine) = (self.x[i], self.y[i], self.fine[i]);
            if in_road(x, y, circle, road) {
                time += u32::from(fine);
                square += circle.mean_square_residual(&[x], &[y]);
                claimed.x[claimed.n] = x;
                claimed.y[claimed.n] = y;
                claimed.n += 1;
            } else {
                self.x[kept] = x;
                self.y[kept] = y;
                self.fine[kept] = fine;
                kept += 1;
            }
        }
        let hits = self.n - kept;
        self.n = kept;
        self.pad();
        let per = 1.0 / hits.max(1) as f32;
        Ring {
            x: circle.x,
            y: circle.y,
            r: circle.r,
            hits: hits as u16,
            chi2: square * per,
            time: time as f32 * per,
            ..Ring::default()
        }
    }
}

impl Points {
    fn x(&self) -> &[f32] {
        &self.x[..self.n]
    }

    fn y(&self) -> &[f32] {
        &self.y[..self.n]
    }

    /// Adds those of the given points that lie within `width` of the circle. All points ever
    /// added between two resets of `n` are of one disk's hits, which are PMS_PER_DISK at most.
    #[inline]
    fn gather(&mut self, xs: &[f32], ys: &[f32], circle: Circle, width: f32) {
        for (&x, &y) in xs.iter().zip(ys) {
            // Written always and kept only if inside: a branch here would be a coin toss.
            self.x[self.n] = x;
            self.y[self.n] = y;
            self.n += usize::from(in_road(x, y, circle, width));
        }
    }
}

/// Three different indices below `n` at a time: all of them where they are no more than
/// `limit`, else `limit` drawn ones, the same for the same `n`.
struct Triplets {
    n: usize,
    left: usize,
    all: bool,
    /// The next triplet, where all are handed out in turn.
    next: [usize; 3],
    /// State of the generator, where they are drawn.
    state: u32,
}

impl Triplets {
    fn new(n: usize, limit: u16) -> Self {
        let limit = usize::from(limit);
        // `n` is at most 976, so the product needs 30 bits.
        let every = n * n.saturating_sub(1) * n.saturating_sub(2) / 6;
        Self {
            n,
            left: every.min(limit),
            all: every <= limit,
            next: [0, 1, 2],
            state: 0x9E37_79B9,
        }
    }

    /// A number below `n`, by a xorshift generator (Marsaglia 2003: 13, 17, 5).
    fn draw(&mut self, n: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 17;
        self.state ^= self.state << 5;
        // `n` is at most 976: the product needs 42 bits.
        ((u64::from(self.state) * n as u64) >> 32) as usize
    }
}

impl Iterator for Triplets {
    type Item = [usize; 3];

    #[inline]
    fn next(&mut self) -> Option<[usize; 3]> {
        self.left = self.left.checked_sub(1)?;
        if self.all {
            let triplet = self.next;
            let [i, j, k] = triplet;
            self.next = if k + 1 < self.n {
                [i, j, k + 1]
            } else if j + 2 < self.n {
                [i, j + 1, j + 2]
            } else {
                [i + 1, i + 2, i + 3]
            };
            return Some(triplet);
        }
        // Drawn from n, n - 1 and n - 2 numbers, then moved past those that are taken.
        let i = self.draw(self.n);
        let j = self.draw(self.n - 1);
        let j = j + usize::from(j >= i);
        let k = self.draw(self.n - 2);
        let k = k + usize::from(k >= i.min(j));
        let k = k + usize::from(k >= i.max(j));
        Some([i, j, k])
    }
}

#[cfg(test)]
mod tests;
