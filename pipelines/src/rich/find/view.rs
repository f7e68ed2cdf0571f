//! What the finder looks at: the hits of one time on one disk.

use super::split::{pm, time};
use super::{FinderConfig, MAX_BATCH, MAX_RINGS_PER_DISK, Ring};
use crate::rich::fit::Circle;
use crate::rich::geometry::{DISKS, PMS, PMS_PER_DISK, POSITIONS};
use crate::simd::{LANES, Lanes};

/// Most times at which an event is looked at: its own, and those of others in its slot.
pub(super) const MAX_TIMES: usize = 4;
/// Views of a batch.
pub(super) const MAX_VIEWS: usize = MAX_BATCH * MAX_TIMES * DISKS;
/// Places for the hits of all views, each of which is in one. Behind them, so that the last vector
/// is always whole, there are some more.
const PLACES: usize = MAX_BATCH * PMS + LANES;
/// Vectors of a view's hits.
const ROWS: usize = PMS_PER_DISK.div_ceil(LANES);

/// The hits of all views, those of each side by side.
#[derive(Debug)]
pub(super) struct Hits {
    x: Box<[f32]>,
    y: Box<[f32]>,
    time: Box<[f32]>,
    /// The first place that is free.
    end: usize,
}

impl Default for Hits {
    fn default() -> Self {
        let places = || vec![0.0; PLACES].into_boxed_slice();
        Self {
            x: places(),
            y: places(),
            time: places(),
            end: 0,
        }
    }
}

impl Hits {
    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.end = 0;
    }
}

/// The hits of one time on one disk, and the rings in them.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// Where its hits begin, and how many there are; the first `own` have not been claimed by a
    /// ring.
    start: usize,
    total: usize,
    own: usize,
    pub(super) event: u8,
    disk: u8,
    rings: [Ring; MAX_RINGS_PER_DISK],
    found: usize,
}

impl View {
    /// Begins with the hits of these words.
    #[inline(always)]
    pub(super) fn begin(&mut self, event: u8, disk: u8, words: &[u32], hits: &mut Hits) {
        let start = hits.end;
        let places = hits.x[start..].iter_mut().zip(&mut hits.y[start..]);
        let places = places.zip(&mut hits.time[start..]);
        for (((x, y), at), &word) in places.zip(words) {
            [*x, *y] = POSITIONS.get(pm(word)).copied().unwrap_or_default();
            *at = time(word) as f32;
        }
        hits.end += words.len();
        (self.start, self.total, self.own, self.found) = (start, words.len(), words.len(), 0);
        (self.event, self.disk) = (event, disk);
    }

    /// The rings that were found.
    pub(super) fn rings(&self) -> &[Ring] {
        &self.rings[..self.found]
    }

    /// How many hits there are.
    #[inline(always)]
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Coordinates of all hits.
    #[inline(always)]
    pub(super) fn all<'a>(&self, hits: &'a Hits) -> (&'a [f32], &'a [f32]) {
        let places = self.start..self.start + self.total;
        (&hits.x[places.clone()], &hits.y[places])
    }

    /// How many of the hits, from the first on, no ring has claimed.
    #[inline(always)]
    pub(super) fn own(&self) -> usize {
        self.own
    }

    /// Whether there may be one more ring: one of its hits may be another's.
    #[inline(always)]
    pub(super) fn may_have_more(&self, cfg: &FinderConfig) -> bool {
        self.own + 1 >= usize::from(cfg.min_hits) && self.found < usize::from(cfg.max_rings)
    }

    /// Makes a ring of the hits in the circle's road.
    #[inline(always)]
    pub(super) fn claim<V: Lanes>(
        &mut self,
        isa: V::Isa,
        of: &mut Hits,
        circle: Circle,
        cfg: &FinderConfig,
    ) {
        let (zero, one) = (V::splat(isa, 0.0), V::splat(isa, 1.0));
        let number = V::load(isa, &std::array::from_fn(|i| i as f32));
        let (cx, cy) = (V::splat(isa, circle.x), V::splat(isa, circle.y));
        let r = V::splat(isa, circle.r);
        let road = V::splat(isa, cfg.road_mm);
        let (mut hits, mut squares, mut time, mut time2) = (zero, zero, zero, zero);
        let mut claimed = [0; ROWS];
        for (row, bits) in claimed
            .iter_mut()
            .take(self.own.div_ceil(LANES))
            .enumerate()
        {
            let at = row * LANES;
            let lanes = |values: &[f32]| {
                let lanes = values[self.start + at..].first_chunk::<LANES>();
                lanes.copied().unwrap_or_default()
            };
            let (x, y) = (V::load(isa, &lanes(&of.x)), V::load(isa, &lanes(&of.y)));
            let t = V::load(isa, &lanes(&of.time));
            let (dx, dy) = (x - cx, y - cy);
            let d = (dx * dx + dy * dy).sqrt() - r;
            let last = V::splat(isa, (self.own - 1 - at) as f32);
            let near = d.max(zero - d).le(road);
            let inside = V::and(near, number.le(last));
            hits = hits + one.only(inside);
            squares = squares + (d * d).only(inside);
            time = time + t.only(inside);
            time2 = time2 + (t * t).only(inside);
            *bits = V::bits(inside);
        }
        let hits = hits.sum();
        let n = hits.max(1.0);
        let time = time.sum() / n;
        let ring = Ring {
            disk: u16::from(self.disk),
            x: circle.x,
            y: circle.y,
            r: circle.r,
            hits: hits as u16,
            chi2: squares.sum() / n,
            time,
            time_spread: (time2.sum() / n - time * time).max(0.0).sqrt(),
        };
        if let Some(slot) = self.rings.get_mut(self.found) {
            *slot = ring;
            self.found += 1;
        }
        if self.own + 1 >= hits as usize + usize::from(cfg.min_hits) {
            self.set_aside(of, &claimed);
        } else {
            // No ring can be left: nobody asks which hits they are.
            self.own -= hits as usize;
        }
    }

    /// Moves the hits whose bits are set behind the others.
    #[inline(always)]
    fn set_aside(&mut self, of: &mut Hits, claimed: &[u16]) {
        // From the last on: what takes a claimed hit's place has been looked at.
        for (row, &bits) in claimed.iter().enumerate().rev() {
            let mut bits = bits;
            while let Some(lane) = bits.checked_ilog2() {
                bits ^= 1 << lane;
                let i = self.start + row * LANES + lane as usize;
                self.own -= 1;
                let last = self.start + self.own;
                of.x.swap(i, last);
                of.y.swap(i, last);
                of.time.swap(i, last);
            }
        }
    }
}
