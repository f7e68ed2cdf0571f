//! What the finder looks at: the hits of one time on one disk.

use super::{FinderConfig, MAX_BATCH, MAX_RINGS_PER_DISK, Ring};
use crate::rich::Hit;
use crate::rich::fit::Circle;
use crate::rich::geometry::{DISKS, PMS, PMS_PER_DISK, POSITIONS};
use crate::simd::{Kernel, LANES, Lanes, Simd};

/// Most times at which an event is looked at: its own, and those of others in its slot.
const MAX_TIMES: usize = 4;
/// Views of a batch.
pub(super) const MAX_VIEWS: usize = MAX_BATCH * MAX_TIMES * DISKS;
/// Places for the hits of all views: at each time those of either disk may be all that are left.
/// Behind them, so that the last vector is always whole, there are some more.
const PLACES: usize = MAX_BATCH * MAX_TIMES * DISKS * PMS + LANES;
/// Vectors of a view's hits.
const ROWS: usize = PMS_PER_DISK.div_ceil(LANES);
/// A time that no hit is near to.
const NEVER: f32 = -1e6;

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
    #[inline(always)]
    fn begin(&mut self, event: u8, disk: u8, start: usize, hits: usize) {
        (self.start, self.total, self.own, self.found) = (start, hits, hits, 0);
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

/// The hits of an event that are in no view yet.
#[derive(Debug)]
pub(super) struct Loader {
    hits: [Hit; PMS],
    times: [f32; PMS],
    n: usize,
}

impl Default for Loader {
    fn default() -> Self {
        Self {
            hits: [Hit::default(); PMS],
            times: [0.0; PMS],
            n: 0,
        }
    }
}

impl Loader {
    /// Takes the hits of an event. More than there are photomultipliers cannot come from one;
    /// what is beyond is passed over.
    #[inline]
    pub(super) fn load(&mut self, hits: &[Hit]) {
        let mut n = 0;
        for &hit in &hits[..hits.len().min(PMS)] {
            self.hits[n] = hit;
            self.times[n] = f32::from(hit.fine);
            n += usize::from(usize::from(hit.pm) < PMS);
        }
        self.n = n;
    }

    /// Splits the hits into views, two for each time that enough of them share; returns how many.
    #[inline]
    pub(super) fn split(
        &mut self,
        cfg: &FinderConfig,
        simd: Simd,
        event: u8,
        views: &mut [View],
        of: &mut Hits,
    ) -> usize {
        let mut used = 0;
        for pair in views.as_chunks_mut::<DISKS>().0.iter_mut().take(MAX_TIMES) {
            if self.n + 1 < usize::from(cfg.min_hits) {
                break;
            }
            let (mut centre, mut window) = (0.0, f32::INFINITY);
            if cfg.time_window > 0 {
                let near;
                window = f32::from(cfg.time_window);
                let times = &self.times[..self.n];
                (centre, near) = simd.run(Busiest { times, window });
                if near + 1 < usize::from(cfg.min_hits) {
                    break;
                }
            }
            let (start, behind) = (of.end, of.end + self.n);
            let [first, second] = self.take(centre, window, of);
            pair[0].begin(event, 0, start, first);
            pair[1].begin(event, 1, behind, second);
            used += DISKS;
        }
        used
    }

    /// Moves the hits of a time to their places, those of the second disk behind room for all on
    /// the first; returns how many there are on each.
    #[inline]
    fn take(&mut self, centre: f32, window: f32, of: &mut Hits) -> [usize; DISKS] {
        let (mut left, mut on) = (0, [0; DISKS]);
        let mut next = [of.end, of.end + self.n];
        for i in 0..self.n {
            let (hit, time) = (self.hits[i], self.times[i]);
            let pm = usize::from(hit.pm);
            let [x, y] = POSITIONS.get(pm).copied().unwrap_or_default();
            let disk = usize::from(pm >= PMS_PER_DISK);
            // Written to two places always, and kept in one: a branch would be a coin toss.
            let place = next[disk];
            of.x[place] = x;
            of.y[place] = y;
            of.time[place] = time;
            self.hits[left] = hit;
            self.times[left] = time;
            let inside = usize::from((time - centre).abs() <= window && on[disk] < PMS_PER_DISK);
            next[disk] += inside;
            on[disk] += inside;
            left += 1 - inside;
        }
        self.n = left;
        of.end = next[1];
        on
    }
}

/// Finds the time that most others are near to, and how many they are; of several the first. Where
/// there are many, not every one is asked.
struct Busiest<'a> {
    times: &'a [f32],
    window: f32,
}

impl Kernel for Busiest<'_> {
    type Out = (f32, usize);

    #[inline(always)]
    fn run<V: Lanes>(self, isa: V::Isa) -> (f32, usize) {
        let step = self.times.len().div_ceil(LANES).max(1);
        let mut asked = [NEVER; LANES];
        for (slot, &time) in asked.iter_mut().zip(self.times.iter().step_by(step)) {
            *slot = time;
        }
        let centre = V::load(isa, &asked);
        let one = V::splat(isa, 1.0);
        let window = V::splat(isa, self.window * self.window);
        // Two sums, so that neither waits for itself.
        let [mut even, mut odd] = [V::splat(isa, 0.0); 2];
        let (pairs, last) = self.times.as_chunks::<2>();
        for &[a, b] in pairs {
            let (a, b) = (V::splat(isa, a) - centre, V::splat(isa, b) - centre);
            even = even + one.only((a * a).le(window));
            odd = odd + one.only((b * b).le(window));
        }
        for &a in last {
            let a = V::splat(isa, a) - centre;
            even = even + one.only((a * a).le(window));
        }
        let near = even + odd;
        // Most first, then the first: both in one number, exact up to 2^24.
        let order = V::load(isa, &std::array::from_fn(|i| (LANES - i) as f32));
        let best = (near * V::splat(isa, LANES as f32) + order).largest() as usize;
        // The order is from 1 to LANES, which is 0 modulo LANES.
        let first = (LANES - best % LANES) % LANES;
        (asked[first], best.saturating_sub(1) / LANES)
    }
}
