//! Fits of sixteen circles at once.
//!
//! The lanes are sixteen events, of which each has hits of its own, or sixteen guesses at a circle
//! in the hits of one event. The mathematics is that of [`fit`](super::fit), in single precision:
//! points are taken relative to the centre of the last circle, whose moments of fourth order keep
//! enough digits there.

use crate::simd::{LANES, Lanes};

use super::fit::Circle;

/// Below this share of the largest, a determinant means that the points are on a line or in one
/// place.
const FLAT: f32 = 1e-5;
/// Steps of Newton's method, which converges quadratically from 0.
const STEPS: usize = 3;

/// A circle in each lane; a radius of zero where there is none.
#[derive(Clone, Copy)]
pub(super) struct Circles<V> {
    pub(super) x: V,
    pub(super) y: V,
    pub(super) r: V,
}

impl<V: Lanes> Circles<V> {
    #[inline(always)]
    pub(super) fn at(x: V, y: V, r: V) -> Self {
        Self { x, y, r }
    }

    /// The circles through three points in each lane; none where they lie on a line or nearly so.
    #[inline(always)]
    pub(super) fn through(isa: V::Isa, a: [V; 2], b: [V; 2], c: [V; 2]) -> Self {
        let one = V::splat(isa, 1.0);
        let (bx, by) = (b[0] - a[0], b[1] - a[1]);
        let (cx, cy) = (c[0] - a[0], c[1] - a[1]);
        let (b2, c2) = (bx * bx + by * by, cx * cx + cy * cy);
        let cross = bx * cy - by * cx;
        // sin of the angle at `a` below 0.01, or two points in one place: the radius is noise.
        let flat = (cross * cross).le(V::splat(isa, 1e-4) * b2 * c2);
        let half = V::splat(isa, 0.5) / one.or_else(flat, cross);
        let (x, y) = ((cy * b2 - by * c2) * half, (bx * c2 - cx * b2) * half);
        let r = V::splat(isa, 0.0).or_else(flat, (x * x + y * y).sqrt());
        Self::at(a[0] + x, a[1] + y, r)
    }

    /// r^2, and what makes d^2 - r^2 a distance from the circle in units of the road's half width.
    #[inline(always)]
    fn powers(self, isa: V::Isa, road: f32) -> (V, V) {
        let twice = (self.r + self.r) * V::splat(isa, road);
        let per = V::splat(isa, 1.0) / twice.max(V::splat(isa, 1e-3));
        (self.r * self.r, per)
    }

    /// The circle of each lane.
    #[inline(always)]
    pub(super) fn store(self) -> [Circle; LANES] {
        let (x, y, r) = (self.x.store(), self.y.store(), self.r.store());
        std::array::from_fn(|i| Circle {
            x: x[i],
            y: y[i],
            r: r[i],
        })
    }
}

/// Points, one in each lane at a time. Behind the last one of a lane there are places that are
/// [`NOWHERE`].
pub(super) trait Points<V: Lanes> {
    /// Points in the lane that has most.
    fn len(&self) -> usize;
    /// Point `i` of each lane: where it is, and 1, or 0 if it counts for a fit but is no evidence.
    fn get(&self, isa: V::Isa, i: usize) -> [V; 3];
}

/// Coordinate of places without a point, in mm: far from every ring, and no evidence.
pub(super) const NOWHERE: f32 = 1e6;

/// Which points belong to a circle.
#[derive(Clone, Copy)]
pub(super) enum Near {
    /// All that are their own evidence.
    All,
    /// Those within so many mm of the circle.
    Road(f32),
}

/// Sums over the points near a circle, relative to its centre.
pub(super) struct Sums<V> {
    about: Circles<V>,
    n: V,
    x: V,
    y: V,
    xx: V,
    yy: V,
    xy: V,
    xz: V,
    yz: V,
    zz: V,
}

impl<V: Lanes> Sums<V> {
    /// Sums over those of `points` that belong to the circles.
    #[inline(always)]
    pub(super) fn of(isa: V::Isa, points: &impl Points<V>, about: Circles<V>, near: Near) -> Self {
        let zero = V::splat(isa, 0.0);
        let one = V::splat(isa, 1.0);
        let (inner, outer) = match near {
            // Further than any point, nearer than the places without one.
            Near::All => (zero, V::splat(isa, 1e4)),
            Near::Road(mm) => {
                let road = V::splat(isa, mm);
                ((about.r - road).max(zero), about.r + road)
            }
        };
        let (inner, outer) = (inner * inner, outer * outer);
        let mut sums = Self {
            about,
            n: zero,
            x: zero,
            y: zero,
            xx: zero,
            yy: zero,
            xy: zero,
            xz: zero,
            yz: zero,
            zz: zero,
        };
        for i in 0..points.len() {
            let [x, y, own] = points.get(isa, i);
            let (dx, dy) = (x - about.x, y - about.y);
            let z = dx * dx + dy * dy;
            let mut inside = V::and(inner.le(z), z.le(outer));
            if let Near::All = near {
                inside = V::and(inside, one.le(own));
            }
            let (mx, my, mz) = (dx.only(inside), dy.only(inside), z.only(inside));
            sums.n = sums.n + one.only(inside);
            sums.x = sums.x + mx;
            sums.y = sums.y + my;
            sums.xx = sums.xx + mx * dx;
            sums.yy = sums.yy + my * dy;
            sums.xy = sums.xy + mx * dy;
            sums.xz = sums.xz + mx * z;
            sums.yz = sums.yz + my * z;
            sums.zz = sums.zz + mz * z;
        }
        sums
    }

    /// The best circles: Kasa's by Cramer's rule, or Taubin's; see [`fit`](super::super::fit).
    /// None where there are fewer than three points, or the determinant says that they are on a
    /// line.
    #[inline(always)]
    pub(super) fn solve(self, isa: V::Isa, taubin: bool) -> Circles<V> {
        let c = |value: f32| V::splat(isa, value);
        let (zero, one) = (c(0.0), c(1.0));
        let per = one / self.n.max(one);
        // Moments about the circle's old centre, then about the centroid (x, y).
        let (x, y) = (self.x * per, self.y * per);
        let (rxx, ryy, rxy) = (self.xx * per, self.yy * per, self.xy * per);
        let (rxz, ryz, rzz) = (self.xz * per, self.yz * per, self.zz * per);
        let (x2, y2) = (x * x, y * y);
        let m2 = x2 + y2;
        let (xx, yy, xy) = (rxx - x2, ryy - y2, rxy - x * y);
        // z about the centroid is z - 2 x X - 2 y Y + m2 with (x, y) the centroid.
        let z = xx + yy;
        let (tx, ty) = (x + x, y + y);
        let xz = rxz - tx * rxx - ty * rxy + m2 * x - x * z;
        let yz = ryz - tx * rxy - ty * ryy + m2 * y - y * z;
        let cross = tx * (rxz - ty * rxy) + ty * ryz;
        let zz =
            rzz - (cross + cross) + (tx * tx) * rxx + (ty * ty) * ryy + (m2 + m2) * (rxx + ryy)
                - c(3.0) * m2 * m2;
        let cov = xx * yy - xy * xy;
        let mut root = zero;
        if taubin {
            let var_z = zz - z * z;
            let (xz2, yz2) = (xz * xz, yz * yz);
            let a3 = c(4.0) * z;
            let a2 = zero - c(3.0) * z * z - zz;
            let a1 = var_z * z + c(4.0) * cov * z - xz2 - yz2;
            let a0 = xz2 * yy + yz2 * xx - c(2.0) * xz * yz * xy - var_z * cov;
            let (d1, d2, d3) = (a1, a2 + a2, c(3.0) * a3);
            for _ in 0..STEPS {
                let value = a0 + root * (a1 + root * (a2 + root * a3));
                let slope = d1 + root * (d2 + root * d3);
                let next = root - value / slope;
                // Also where nothing can be compared: a flat polynomial leaves the root as it is.
                root = next.or_else(V::and(zero.le(next), next.le(z)), root);
            }
        }
        let det = root * root - root * z + cov;
        let whole = c(FLAT) * z * z;
        let (three, some) = (c(3.0).le(self.n), c(1e-3).le(z));
        let good = V::and(V::and(three, some), whole.le(det.max(zero - det)));
        let half = c(0.5) / det.or_else(good, one);
        let cx = (xz * (yy - root) - yz * xy) * half;
        let cy = (yz * (xx - root) - xz * xy) * half;
        let r = (cx * cx + cy * cy + z).sqrt().only(good);
        Circles::at(
            self.about.x + x + cx.only(good),
            self.about.y + y + cy.only(good),
            r,
        )
    }
}

/// The best circles by all points that are their own evidence, from nothing.
#[inline(always)]
pub(super) fn fit_all<V: Lanes>(isa: V::Isa, points: &impl Points<V>, taubin: bool) -> Circles<V> {
    let (zero, one) = (V::splat(isa, 0.0), V::splat(isa, 1.0));
    let (mut n, mut x, mut y) = (zero, zero, zero);
    for i in 0..points.len() {
        let [px, py, own] = points.get(isa, i);
        let there = one.le(own);
        n = n + own;
        x = x + px.only(there);
        y = y + py.only(there);
    }
    let per = one / n.max(one);
    let centroid = Circles::at(x * per, y * per, zero);
    Sums::of(isa, points, centroid, Near::All).solve(isa, taubin)
}

/// For two sets of circles the sum over the points in the road of 1 - (distance / road)^2: how many
/// there are, and how near. `road` is half the road's width in mm.
///
/// (d^2 - r^2) / 2r stands for the distance d - r, which saves a square root and differs by less
/// than road / 2r of it. The same number is Ptolemy's criterion: for three points on the circle and
/// a fourth, let p, q and s be the products of opposite distances. Then (p + q + s) (p + q - s)
/// (p - q + s) (q + s - p) is zero where Ptolemy's equation holds, and elsewhere the square of four
/// times the triangle's area times d^2 - r^2.
///
/// Two sets, as a point is loaded for both, and neither waits for its own sum.
#[inline(always)]
pub(super) fn scores<V: Lanes>(
    isa: V::Isa,
    points: &impl Points<V>,
    of: [Circles<V>; 2],
    road: f32,
) -> [V; 2] {
    let (zero, one) = (V::splat(isa, 0.0), V::splat(isa, 1.0));
    let [a, b] = of;
    let [(a2, per_a), (b2, per_b)] = [a.powers(isa, road), b.powers(isa, road)];
    let (mut score_a, mut score_b) = (zero, zero);
    for i in 0..points.len() {
        let [x, y, _] = points.get(isa, i);
        let (ax, ay) = (x - a.x, y - a.y);
        let (bx, by) = (x - b.x, y - b.y);
        let u = (ax * ax + ay * ay - a2) * per_a;
        let v = (bx * bx + by * by - b2) * per_b;
        score_a = score_a + (one - u * u).max(zero);
        score_b = score_b + (one - v * v).max(zero);
    }
    [score_a, score_b]
}

/// How well circles describe the points in their roads.
pub(super) struct Quality<V> {
    /// Points in the road.
    pub(super) hits: V,
    /// Those that are their own evidence.
    pub(super) own: V,
    /// Mean squared distance of all of them.
    pub(super) chi2: V,
    /// Sum over their own evidence of 1 - (distance / road)^2: how many, and how near.
    pub(super) score: V,
}

impl<V: Lanes> Quality<V> {
    /// Judges circles; `road` is half the road's width in mm, distances are as in [`scores`].
    #[inline(always)]
    pub(super) fn of(isa: V::Isa, points: &impl Points<V>, of: Circles<V>, road: f32) -> Self {
        let (zero, one) = (V::splat(isa, 0.0), V::splat(isa, 1.0));
        let (r2, per) = of.powers(isa, road);
        let road = V::splat(isa, road);
        let (mut hits, mut own, mut squares, mut score) = (zero, zero, zero, zero);
        for i in 0..points.len() {
            let [x, y, counts] = points.get(isa, i);
            let (dx, dy) = (x - of.x, y - of.y);
            let u = (dx * dx + dy * dy - r2) * per;
            let u2 = u * u;
            let inside = u2.le(one);
            let counts = counts.only(inside);
            hits = hits + one.only(inside);
            own = own + counts;
            squares = squares + u2.only(inside);
            score = score + counts * (one - u2.only(inside));
        }
        let chi2 = squares * (road * road) / hits.max(one);
        Self {
            hits,
            own,
            chi2,
            score,
        }
    }
}

/// Points that are next to each other in a list, of which a lane has a copy.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lane {
    /// The first, and how many there are.
    pub(super) start: usize,
    pub(super) total: usize,
    /// How many of them, from the first on, are their own evidence.
    pub(super) own: usize,
}

/// Places for the points of a batch: those of one event in each lane.
#[derive(Debug)]
pub(super) struct PerLane {
    x: Box<[[f32; LANES]]>,
    y: Box<[[f32; LANES]]>,
    time: Box<[[f32; LANES]]>,
    /// Points of each lane that are their own evidence: those before the others.
    own: [f32; LANES],
    len: usize,
    /// Bit n: lane n's own point was [claimed](Self::claim).
    claimed: Box<[u16]>,
}

impl PerLane {
    /// Room for so many points in each lane.
    pub(super) fn with_room(points: usize) -> Self {
        let rows = || vec![[NOWHERE; LANES]; points].into_boxed_slice();
        Self {
            x: rows(),
            y: rows(),
            time: rows(),
            own: [0.0; LANES],
            len: 0,
            claimed: vec![0; points].into_boxed_slice(),
        }
    }

    /// Begins with other points; how many rows there are. Each of them has to be put.
    #[inline(always)]
    pub(super) fn begin(&mut self, lanes: &[Lane; LANES]) -> usize {
        let most = lanes.iter().map(|lane| lane.total).max();
        self.len = most.unwrap_or(0).min(self.x.len());
        self.own = lanes.map(|lane| lane.own as f32);
        self.len
    }

    /// Puts a point into each lane.
    #[inline(always)]
    pub(super) fn row(&mut self, i: usize, x: [f32; LANES], y: [f32; LANES], time: [f32; LANES]) {
        (self.x[i], self.y[i], self.time[i]) = (x, y, time);
    }

    /// Empties all rows, for [columns](Self::column).
    #[inline(always)]
    pub(super) fn empty(&mut self) {
        self.x[..self.len].fill([NOWHERE; LANES]);
    }

    /// Puts points, of no time, into a lane of empty rows.
    #[inline(always)]
    pub(super) fn column(&mut self, lane: usize, x: &[f32], y: &[f32]) {
        let rows = self.x.iter_mut().zip(&mut self.y).take(self.len);
        for ((row_x, row_y), (&x, &y)) in rows.zip(x.iter().zip(y)) {
            (row_x[lane], row_y[lane]) = (x, y);
        }
    }

    /// The rings of each lane's own points in the circles' roads; `road` is half the width in mm.
    #[inline(always)]
    pub(super) fn claim<V: Lanes>(&mut self, isa: V::Isa, of: Circles<V>, road: f32) -> Claims<V> {
        let (zero, one) = (V::splat(isa, 0.0), V::splat(isa, 1.0));
        let (road, all) = (V::splat(isa, road), V::load(isa, &self.own));
        let (mut hits, mut squares, mut time, mut time2) = (zero, zero, zero, zero);
        let rows = self.x.iter().zip(&self.y).zip(&self.time);
        let rows = rows.zip(&mut self.claimed).take(self.len);
        for (i, (((x, y), t), claimed)) in rows.enumerate() {
            let [x, y, t] = [x, y, t].map(|row| V::load(isa, row));
            let (dx, dy) = (x - of.x, y - of.y);
            let d = (dx * dx + dy * dy).sqrt() - of.r;
            let own = V::splat(isa, (i + 1) as f32).le(all);
            let inside = V::and(d.max(zero - d).le(road), own);
            hits = hits + one.only(inside);
            squares = squares + (d * d).only(inside);
            time = time + t.only(inside);
            time2 = time2 + (t * t).only(inside);
            *claimed = V::bits(inside);
        }
        let per = hits.max(one);
        let time = time / per;
        let variance = (time2 / per - time * time).max(zero);
        Claims {
            hits,
            chi2: squares / per,
            time,
            time_spread: variance.sqrt(),
        }
    }

    /// Whether the last circle of a lane claimed this one of its own points.
    #[inline(always)]
    pub(super) fn claimed(&self, lane: usize, i: usize) -> bool {
        self.claimed[i] >> lane & 1 == 1
    }
}

/// What circles claimed.
pub(super) struct Claims<V> {
    /// Points in the road.
    pub(super) hits: V,
    /// Their mean squared distance.
    pub(super) chi2: V,
    /// The mean and the standard deviation of their times.
    pub(super) time: V,
    pub(super) time_spread: V,
}

impl<V: Lanes> Points<V> for PerLane {
    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn get(&self, isa: V::Isa, i: usize) -> [V; 3] {
        let own = V::splat(isa, (i + 1) as f32).le(V::load(isa, &self.own));
        [
            V::load(isa, &self.x[i]),
            V::load(isa, &self.y[i]),
            V::splat(isa, 1.0).only(own),
        ]
    }
}

/// The points of one event, in all lanes alike.
pub(super) struct Alike<'a> {
    pub(super) x: &'a [f32],
    pub(super) y: &'a [f32],
    /// How many of them, from the first on, are their own evidence.
    pub(super) own: usize,
}

impl<V: Lanes> Points<V> for Alike<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.x.len().min(self.y.len())
    }

    #[inline(always)]
    fn get(&self, isa: V::Isa, i: usize) -> [V; 3] {
        let own = f32::from(u8::from(i < self.own));
        [
            V::splat(isa, self.x[i]),
            V::splat(isa, self.y[i]),
            V::splat(isa, own),
        ]
    }
}
