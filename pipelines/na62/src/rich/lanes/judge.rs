//! Scores: how well circles describe points.

use pollux_pipelines::simd::Lanes;

use super::circles::Circles;
use super::points::{Broadcast, PerLane, Points};

/// For two sets of circles, the sum over the points in the road of 1 - (distance / road)^2, a
/// measure of both their number and their distance. `road` is half the road's width in mm.
///
/// (d^2 - r^2) / 2r replaces the distance d - r: it needs no square root, and the relative
/// difference is below road / 2r. The same number is Ptolemy's criterion. For three points on the
/// circle and a fourth, let p, q and s be the products of opposite distances. Then (p + q + s) (p +
/// q - s) (p - q + s) (q + s - p) is zero where Ptolemy's equation holds, and elsewhere the square
/// of four times the triangle's area times d^2 - r^2.
///
/// Two sets share each load of a point, and their sums are independent.
#[inline(always)]
pub(crate) fn scores<V: Lanes>(
    isa: V::Isa,
    points: &Broadcast,
    of: [Circles<V>; 2],
    road: f32,
) -> [V; 2] {
    let [a, b] = of;
    let (a, b) = (Power::new(isa, a, road), Power::new(isa, b, road));
    let mut sums = [V::splat(isa, 0.0); 2];
    for ((&x, &y), &z) in points.x.iter().zip(points.y).zip(points.z) {
        let (x, y, z) = (V::splat(isa, x), V::splat(isa, y), V::splat(isa, z));
        sums[0] = sums[0] + a.left(isa, x, y, z);
        sums[1] = sums[1] + b.left(isa, x, y, z);
    }
    let least = V::splat(isa, 1e-6);
    [sums[0] / a.road.max(least), sums[1] / b.road.max(least)]
}

/// d^2 - r^2 = x^2 + y^2 - 2 cx x - 2 cy y + (cx^2 + cy^2 - r^2), for points that are equal in all
/// lanes.
struct Power<V> {
    x: V,
    y: V,
    one: V,
    /// Square of the power at the edge of the road.
    road: V,
}

impl<V: Lanes> Power<V> {
    #[inline(always)]
    fn new(isa: V::Isa, of: Circles<V>, road: f32) -> Self {
        let twice = V::splat(isa, -2.0);
        let road = (of.r + of.r) * V::splat(isa, road);
        Self {
            x: twice * of.x,
            y: twice * of.y,
            one: of.x * of.x + of.y * of.y - of.r * of.r,
            road: road * road,
        }
    }

    /// Difference between the square of the power at the edge of the road and that of a point, if
    /// it is positive.
    #[inline(always)]
    fn left(&self, isa: V::Isa, x: V, y: V, z: V) -> V {
        let power = (self.x * x + self.y * y) + (self.one + z);
        (self.road - power * power).max(V::splat(isa, 0.0))
    }
}

/// How well circles describe the points in their roads.
pub(crate) struct Quality<V> {
    /// Number of points in the road.
    hits: V,
    /// Mean squared distance of all of them.
    pub(crate) chi2: V,
}

impl<V: Lanes> Quality<V> {
    /// Judges circles. `road` is half the road's width in mm; distances are as in [`scores`].
    #[inline(always)]
    pub(crate) fn of(isa: V::Isa, points: &impl Points<V>, of: Circles<V>, road: f32) -> Self {
        let judge = Judge::new(isa, of, road);
        let zero = V::splat(isa, 0.0);
        let mut sums = Self {
            hits: zero,
            chi2: zero,
        };
        for i in 0..points.rows() {
            let (x, y) = points.at(isa, i);
            let (dx, dy) = (x - of.x, y - of.y);
            let u2 = judge.off(dx * dx + dy * dy);
            let inside = u2.le(judge.one);
            sums.hits = sums.hits.plus(inside, judge.one);
            sums.chi2 = sums.chi2.plus(inside, u2);
        }
        let squares = sums.chi2 * (judge.road * judge.road);
        Self {
            chi2: squares / sums.hits.max(judge.one),
            ..sums
        }
    }
}

/// The road of each circle, as constants of the test of a point.
pub(crate) struct Judge<V> {
    one: V,
    road: V,
    r2: V,
    /// Squares of the inner and outer radius of the road.
    inner: V,
    outer: V,
    /// Factor from d^2 - r^2 to the distance from the circle in units of the road's half width.
    per: V,
}

impl<V: Lanes> Judge<V> {
    #[inline(always)]
    pub(crate) fn new(isa: V::Isa, of: Circles<V>, road: f32) -> Self {
        let (one, road) = (V::splat(isa, 1.0), V::splat(isa, road));
        let twice = (of.r + of.r) * road;
        let (inner, outer) = ((of.r - road).max(V::splat(isa, 0.0)), of.r + road);
        Self {
            one,
            road,
            r2: of.r * of.r,
            inner: inner * inner,
            outer: outer * outer,
            per: one / twice.max(V::splat(isa, 1e-3)),
        }
    }

    /// Whether a point is in the road, by the square of its distance from the centre.
    #[inline(always)]
    pub(crate) fn has(&self, z: V) -> V::Mask {
        V::and(self.inner.le(z), z.le(self.outer))
    }

    /// The square of a point's distance from the circle, in units of the road's half width, by the
    /// square of its distance from the centre.
    #[inline(always)]
    fn off(&self, z: V) -> V {
        let u = (z - self.r2) * self.per;
        u * u
    }

    /// Score of a point: 1 on the circle, 0 or slightly less at the edge of the road.
    #[inline(always)]
    pub(crate) fn fits(&self, z: V) -> V {
        self.one - self.off(z)
    }
}

/// Points that circles have claimed: bit l of row n is set if the circle of lane l claimed the
/// point.
#[derive(Debug)]
pub(crate) struct Claimed(Box<[u16]>);

impl Claimed {
    /// Memory for so many rows.
    pub(crate) fn with_room(points: usize) -> Self {
        Self(vec![0; points].into_boxed_slice())
    }

    /// Whether the last circle of a lane claimed the point of this row as evidence of its own.
    #[inline(always)]
    pub(crate) fn has(&self, lane: usize, i: usize) -> bool {
        self.0[i] >> lane & 1 == 1
    }
}

/// Points in the roads of circles: those that they claim, and those that earlier circles claimed.
pub(crate) struct Claims<V> {
    /// Number of points in the road.
    pub(crate) hits: V,
    /// Number of those that are evidence of their own and are claimed.
    pub(crate) own: V,
    /// Sum over these of 1 - (distance / road)^2. Distances are as in [`scores`].
    pub(crate) score: V,
    /// Mean squared distance of all points in the road, with such distances.
    pub(crate) chi2: V,
}

impl<V: Lanes> Claims<V> {
    /// Judges circles and claims the points in their roads; all points count as evidence of their
    /// own. `road` is half the width in mm.
    #[inline(always)]
    pub(crate) fn of(
        isa: V::Isa,
        points: &impl Points<V>,
        of: Circles<V>,
        road: f32,
        claimed: &mut Claimed,
    ) -> Self {
        let judge = Judge::new(isa, of, road);
        let [mut own, mut score] = [V::splat(isa, 0.0); 2];
        for i in 0..points.rows() {
            let (x, y) = points.at(isa, i);
            let (dx, dy) = (x - of.x, y - of.y);
            let z = dx * dx + dy * dy;
            let inside = judge.has(z);
            own = own.plus(inside, judge.one);
            score = score.plus(inside, judge.fits(z));
            claimed.0[i] = V::bits(inside);
        }
        Self {
            hits: own,
            own,
            score,
            chi2: judge.chi2(own, score),
        }
    }

    /// Adds the points that earlier circles have claimed.
    #[inline(always)]
    pub(crate) fn and_shared(
        self,
        isa: V::Isa,
        points: &impl Points<V>,
        of: Circles<V>,
        road: f32,
    ) -> Self {
        let judge = Judge::new(isa, of, road);
        let (mut hits, mut score) = (self.hits, self.score);
        for i in 0..points.rows() {
            let (x, y) = points.at(isa, i);
            let (dx, dy) = (x - of.x, y - of.y);
            let z = dx * dx + dy * dy;
            let inside = judge.has(z);
            hits = hits.plus(inside, judge.one);
            score = score.plus(inside, judge.fits(z));
        }
        Self {
            hits,
            chi2: judge.chi2(hits, score),
            ..self
        }
    }

    /// The claims of the same circles when fewer points, `points`, are evidence of their own.
    #[inline(always)]
    pub(crate) fn again(
        self,
        isa: V::Isa,
        points: &impl Points<V>,
        of: Circles<V>,
        road: f32,
        claimed: &mut Claimed,
    ) -> Self {
        Self {
            hits: self.hits,
            chi2: self.chi2,
            ..Self::of(isa, points, of, road, claimed)
        }
    }
}

impl<V: Lanes> Judge<V> {
    /// The mean squared distance of points with this number and total score.
    #[inline(always)]
    fn chi2(&self, hits: V, score: V) -> V {
        (hits - score) * (self.road * self.road) / hits.max(self.one)
    }
}

/// What a ring records of the points in its road.
pub(crate) struct Records<V> {
    /// Mean squared distance of the points.
    pub(crate) chi2: V,
    /// Mean and standard deviation of their times.
    pub(crate) time: V,
    pub(crate) time_spread: V,
}

impl<V: Lanes> Records<V> {
    /// Records for the circle and the points of each lane.
    #[inline(always)]
    pub(crate) fn of(isa: V::Isa, points: &PerLane, of: Circles<V>, road: f32) -> Self {
        let judge = Judge::new(isa, of, road);
        let [mut hits, mut squares, mut time, mut time2] = [V::splat(isa, 0.0); 4];
        for i in 0..<PerLane as Points<V>>::rows(points) {
            let (x, y): (V, V) = points.at(isa, i);
            let t: V = points.time(isa, i);
            let (dx, dy) = (x - of.x, y - of.y);
            let z = dx * dx + dy * dy;
            let d = z.sqrt() - of.r;
            let inside = judge.has(z);
            hits = hits.plus(inside, judge.one);
            squares = squares.plus(inside, d * d);
            time = time.plus(inside, t);
            time2 = time2.plus(inside, t * t);
        }
        let per = hits.max(judge.one);
        let time = time / per;
        let variance = (time2 / per - time * time).max(V::splat(isa, 0.0));
        Self {
            chi2: squares / per,
            time,
            time_spread: variance.sqrt(),
        }
    }
}
