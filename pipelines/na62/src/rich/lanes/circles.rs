//! Sixteen circles, and their fits.

use pollux_pipelines::simd::{LANES, Lanes};

use super::points::{PerLane, Points};
use crate::rich::fit::Circle;

/// A determinant below this share of its maximum means that the points coincide or lie on a line.
const FLAT: f32 = 1e-5;
/// Steps of Newton's method, which converges quadratically from 0.
const STEPS: usize = 3;

/// A circle in each lane; a radius of zero means none.
#[derive(Clone, Copy)]
pub(crate) struct Circles<V> {
    pub(crate) x: V,
    pub(crate) y: V,
    pub(crate) r: V,
}

impl<V: Lanes> Circles<V> {
    #[inline(always)]
    pub(crate) fn at(x: V, y: V, r: V) -> Self {
        Self { x, y, r }
    }

    /// The circles through three points in each lane; none if the points lie nearly on a line.
    #[inline(always)]
    pub(crate) fn through(isa: V::Isa, a: [V; 2], b: [V; 2], c: [V; 2]) -> Self {
        let one = V::splat(isa, 1.0);
        let (bx, by) = (b[0] - a[0], b[1] - a[1]);
        let (cx, cy) = (c[0] - a[0], c[1] - a[1]);
        let (b2, c2) = (bx * bx + by * by, cx * cx + cy * cy);
        let cross = bx * cy - by * cx;
        // The sine of the angle at `a` is below 0.01, or two points coincide: the radius would be
        // noise.
        let flat = (cross * cross).le(V::splat(isa, 1e-4) * b2 * c2);
        let half = V::splat(isa, 0.5) / one.or_else(flat, cross);
        let (x, y) = ((cy * b2 - by * c2) * half, (bx * c2 - cx * b2) * half);
        let r = V::splat(isa, 0.0).or_else(flat, (x * x + y * y).sqrt());
        Self::at(a[0] + x, a[1] + y, r)
    }

    /// The circle of each lane.
    #[inline(always)]
    pub(crate) fn store(self) -> [Circle; LANES] {
        let (x, y, r) = (self.x.store(), self.y.store(), self.r.store());
        std::array::from_fn(|i| Circle {
            x: x[i],
            y: y[i],
            r: r[i],
        })
    }
}

/// Selects the points that belong to a circle.
#[derive(Clone, Copy)]
pub(crate) enum Near {
    /// All points that are evidence of their own.
    All,
    /// The points within this distance of the circle, in mm.
    Road(f32),
}

/// Sums over the points near a circle, relative to its centre.
pub(crate) struct Sums<V> {
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
    pub(crate) fn of(isa: V::Isa, points: &impl Points<V>, about: Circles<V>, near: Near) -> Self {
        let zero = V::splat(isa, 0.0);
        let one = V::splat(isa, 1.0);
        let (inner, outer) = match near {
            // Farther than any point, but nearer than empty places.
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
        for i in 0..points.rows() {
            let (x, y) = points.at(isa, i);
            let (dx, dy) = (x - about.x, y - about.y);
            let (xx, yy) = (dx * dx, dy * dy);
            let z = xx + yy;
            let mut inside = V::and(inner.le(z), z.le(outer));
            if let Near::All = near {
                inside = V::and(inside, points.own(isa, i));
            }
            sums.n = sums.n.plus(inside, one);
            sums.x = sums.x.plus(inside, dx);
            sums.y = sums.y.plus(inside, dy);
            sums.xx = sums.xx.plus(inside, xx);
            sums.yy = sums.yy.plus(inside, yy);
            sums.xy = sums.xy.plus(inside, dx * dy);
            sums.xz = sums.xz.plus(inside, dx * z);
            sums.yz = sums.yz.plus(inside, dy * z);
            sums.zz = sums.zz.plus(inside, z * z);
        }
        sums
    }

    /// The best circles, by Kasa's method with Cramer's rule, or by Taubin's; see
    /// [`fit`](crate::rich::fit). None for fewer than three points, or if the determinant shows
    /// that they lie on a line.
    #[inline(always)]
    pub(crate) fn solve(self, isa: V::Isa, taubin: bool) -> Circles<V> {
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
            // The first step, from 0.
            let next = zero - a0 / a1;
            root = next.or_else(V::and(zero.le(next), next.le(z)), root);
            for _ in 1..STEPS {
                let value = a0 + root * (a1 + root * (a2 + root * a3));
                let slope = d1 + root * (d2 + root * d3);
                let next = root - value / slope;
                // Also false for NaN: a flat polynomial leaves the root unchanged.
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

/// The best circles for all points that are evidence of their own, without a start value.
#[inline(always)]
pub(crate) fn fit_all<V: Lanes>(isa: V::Isa, points: &PerLane, taubin: bool) -> Circles<V> {
    let (zero, one) = (V::splat(isa, 0.0), V::splat(isa, 1.0));
    let (mut n, mut x, mut y) = (zero, zero, zero);
    for i in 0..<PerLane as Points<V>>::rows(points) {
        let (px, py): (V, V) = points.at(isa, i);
        let own = Points::<V>::own(points, isa, i);
        n = n.plus(own, one);
        x = x.plus(own, px);
        y = y.plus(own, py);
    }
    let per = one / n.max(one);
    let centroid = Circles::at(x * per, y * per, zero);
    Sums::of(isa, points, centroid, Near::All).solve(isa, taubin)
}
