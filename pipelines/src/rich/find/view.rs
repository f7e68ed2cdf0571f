//! What the finder looks at: the hits of one time on one disk.

use super::{FinderConfig, MAX_BATCH, MAX_RINGS_PER_DISK, Ring};
use crate::rich::Hit;
use crate::rich::fit::Circle;
use crate::rich::geometry::{DISKS, PMS, PMS_PER_DISK, POSITIONS, disk_of};
use crate::simd::{Kernel, LANES, Lanes, Simd};

/// Most times at which an event is looked at: its own, and those of others in its slot.
const MAX_TIMES: usize = 4;
/// Views of a batch.
pub(super) const MAX_VIEWS: usize = MAX_BATCH * MAX_TIMES * DISKS;
/// Places for the hits of a view: the last vector is always whole.
const PLACES: usize = PMS_PER_DISK + LANES;
/// A time that no hit is near to.
const NEVER: f32 = -1e6;

/// The hits of one time on one disk, and the rings in them.
#[derive(Debug)]
pub(super) struct View {
    x: [f32; PLACES],
    y: [f32; PLACES],
    time: [f32; PLACES],
    /// Hits, of which the first `own` have not been claimed by a ring.
    total: usize,
    own: usize,
    pub(super) event: u8,
    disk: u8,
    rings: [Ring; MAX_RINGS_PER_DISK],
    found: usize,
}

impl Default for View {
    fn default() -> Self {
        Self {
            x: [0.0; PLACES],
            y: [0.0; PLACES],
            time: [0.0; PLACES],
            total: 0,
            own: 0,
            event: 0,
            disk: 0,
            rings: [Ring::default(); MAX_RINGS_PER_DISK],
            found: 0,
        }
    }
}

impl View {
    #[inline(always)]
    fn clear(&mut self, event: u8, disk: u8) {
        (self.total, self.own, self.found) = (0, 0, 0);
        (self.event, self.disk) = (event, disk);
    }

    /// The rings that were found.
    pub(super) fn rings(&self) -> &[Ring] {
        &self.rings[..self.found]
    }

    /// Coordinates of all hits.
    #[inline(always)]
    pub(super) fn all(&self) -> (&[f32], &[f32]) {
        (&self.x[..self.total], &self.y[..self.total])
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
    pub(super) fn claim<V: Lanes>(&mut self, isa: V::Isa, circle: Circle, cfg: &FinderConfig) {
        let (zero, one) = (V::splat(isa, 0.0), V::splat(isa, 1.0));
        let number = V::load(isa, &std::array::from_fn(|i| i as f32));
        let (cx, cy) = (V::splat(isa, circle.x), V::splat(isa, circle.y));
        let r = V::splat(isa, circle.r);
        let road = V::splat(isa, cfg.road_mm);
        let (mut hits, mut squares, mut time, mut time2) = (zero, zero, zero, zero);
        let mut claimed = [0; PLACES / LANES];
        for (row, bits) in claimed
            .iter_mut()
            .take(self.own.div_ceil(LANES))
            .enumerate()
        {
            let at = row * LANES;
            let load = |values: &[f32; PLACES]| values.as_chunks::<LANES>().0[row];
            let (x, y) = (V::load(isa, &load(&self.x)), V::load(isa, &load(&self.y)));
            let t = V::load(isa, &load(&self.time));
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
        let hits = sum(hits);
        let n = hits.max(1.0);
        let time = sum(time) / n;
        let ring = Ring {
            disk: u16::from(self.disk),
            x: circle.x,
            y: circle.y,
            r: circle.r,
            hits: hits as u16,
            chi2: sum(squares) / n,
            time,
            time_spread: (sum(time2) / n - time * time).max(0.0).sqrt(),
        };
        if let Some(slot) = self.rings.get_mut(self.found) {
            *slot = ring;
            self.found += 1;
        }
        if self.own + 1 >= hits as usize + usize::from(cfg.min_hits) {
            self.set_aside(&claimed);
        } else {
            // No ring can be left: nobody asks which hits they are.
            self.own -= hits as usize;
        }
    }

    /// Moves the hits whose bits are set behind the others.
    #[inline(always)]
    fn set_aside(&mut self, claimed: &[u16]) {
        // From the last on: what takes a claimed hit's place has been looked at.
        for (row, &bits) in claimed.iter().enumerate().rev() {
            let mut bits = bits;
            while let Some(lane) = bits.checked_ilog2() {
                bits ^= 1 << lane;
                let i = row * LANES + lane as usize;
                self.own -= 1;
                self.x.swap(i, self.own);
                self.y.swap(i, self.own);
                self.time.swap(i, self.own);
            }
        }
    }
}

/// Sum over all lanes: of one half and the other, and so on.
#[inline(always)]
fn sum<V: Lanes>(values: V) -> f32 {
    let mut values = values.store();
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            values[i] += values[i + half];
        }
    }
    values[0]
}

/// The hits of an event, before they are split.
#[derive(Debug)]
pub(super) struct Loader {
    x: [f32; PMS],
    y: [f32; PMS],
    time: [f32; PMS],
    disk: [u8; PMS],
    n: usize,
}

impl Default for Loader {
    fn default() -> Self {
        Self {
            x: [0.0; PMS],
            y: [0.0; PMS],
            time: [0.0; PMS],
            disk: [0; PMS],
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
        for hit in hits.iter().take(PMS) {
            let Some(&[x, y]) = POSITIONS.get(usize::from(hit.pm)) else {
                continue;
            };
            self.x[n] = x;
            self.y[n] = y;
            self.time[n] = f32::from(hit.fine);
            self.disk[n] = disk_of(hit.pm);
            n += 1;
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
    ) -> usize {
        let mut used = 0;
        for pair in views.as_chunks_mut::<DISKS>().0.iter_mut().take(MAX_TIMES) {
            let (mut centre, mut window, mut near) = (0.0, f32::INFINITY, self.n);
            if cfg.time_window > 0 {
                window = f32::from(cfg.time_window);
                let times = &self.time[..self.n];
                (centre, near) = simd.run(Busiest { times, window });
            }
            if near + 1 < usize::from(cfg.min_hits) {
                break;
            }
            for (disk, view) in (0..).zip(pair.iter_mut()) {
                view.clear(event, disk);
            }
            self.take(centre, window, pair);
            used += DISKS;
        }
        used
    }

    /// Moves the hits of a time to their views.
    #[inline]
    fn take(&mut self, centre: f32, window: f32, [first, second]: &mut [View; DISKS]) {
        let (mut left, mut on_first, mut on_second) = (0, 0, 0);
        for i in 0..self.n {
            let (x, y, time, disk) = (self.x[i], self.y[i], self.time[i], self.disk[i]);
            // Written to two places always, and kept in one: a branch would be a coin toss.
            let (view, place) = if disk == 0 {
                (&mut *first, on_first)
            } else {
                (&mut *second, on_second)
            };
            view.x[place] = x;
            view.y[place] = y;
            view.time[place] = time;
            self.x[left] = x;
            self.y[left] = y;
            self.time[left] = time;
            self.disk[left] = disk;
            let inside = (time - centre).abs() <= window && place < PMS_PER_DISK;
            on_first += usize::from(inside && disk == 0);
            on_second += usize::from(inside && disk != 0);
            left += usize::from(!inside);
        }
        self.n = left;
        (first.total, first.own) = (on_first, on_first);
        (second.total, second.own) = (on_second, on_second);
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
        let mut near = V::splat(isa, 0.0);
        for &time in self.times {
            let d = V::splat(isa, time) - centre;
            near = near + one.only((d * d).le(window));
        }
        // Most first, then the first: both in one number, exact up to 2^24.
        let order = V::load(isa, &std::array::from_fn(|i| (LANES - i) as f32));
        let best = (near * V::splat(isa, LANES as f32) + order).largest() as usize;
        // The order is from 1 to LANES, which is 0 modulo LANES.
        let first = (LANES - best % LANES) % LANES;
        (asked[first], best.saturating_sub(1) / LANES)
    }
}
