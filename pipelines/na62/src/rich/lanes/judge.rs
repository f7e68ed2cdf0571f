//! How well circles describe points.

use pollux_pipelines::simd::Lanes;

use super::circles::Circles;
use super::points::{Alike, Points};

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
pub(crate) fn scores<V: Lanes>(
    isa: V::Isa,
    points: &Alike,
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

/// d^2 - r^2 = x^2 + y^2 - 2 cx x - 2 cy y + (cx^2 + cy^2 - r^2), for points that are in all lanes
/// alike.
struct Power<V> {
    x: V,
    y: V,
    one: V,
    /// Square of what it is where the road ends.
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

    /// By how much the square of a point's power is less than where the road ends, if it is.
    #[inline(always)]
    fn left(&self, isa: V::Isa, x: V, y: V, z: V) -> V {
        let power = (self.x * x + self.y * y) + (self.one + z);
        (self.road - power * power).max(V::splat(isa, 0.0))
    }
}

/// How well circles describe the points in their roads.
pub(crate) struct Quality<V> {
    /// Points in the road.
    hits: V,
    /// Mean squared distance of all of them.
    pub(crate) chi2: V,
}

impl<V: Lanes> Quality<V> {
    /// Judges circles; `road` is half the road's width in mm, distances are as in [`scores`].
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

/// What points are judged by.
pub(crate) struct Judge<V> {
    pub(crate) one: V,
    pub(crate) road: V,
    r2: V,
    /// Makes d^2 - r^2 a distance from the circle in units of the road's half width.
    per: V,
}

impl<V: Lanes> Judge<V> {
    #[inline(always)]
    pub(crate) fn new(isa: V::Isa, of: Circles<V>, road: f32) -> Self {
        let (one, road) = (V::splat(isa, 1.0), V::splat(isa, road));
        let twice = (of.r + of.r) * road;
        Self {
            one,
            road,
            r2: of.r * of.r,
            per: one / twice.max(V::splat(isa, 1e-3)),
        }
    }

    /// The square of a point's distance from the circle in units of the road's half width, by that
    /// of its distance from the centre.
    #[inline(always)]
    pub(crate) fn off(&self, z: V) -> V {
        let u = (z - self.r2) * self.per;
        u * u
    }
}

/// Which points circles have claimed: of row n those of the lanes in its bits.
#[derive(Debug)]
pub(crate) struct Claimed(Box<[u16]>);

impl Claimed {
    /// Room for so many rows.
    pub(crate) fn with_room(points: usize) -> Self {
        Self(vec![0; points].into_boxed_slice())
    }

    /// Whether the last circle of a lane claimed the own point in this row.
    #[inline(always)]
    pub(crate) fn has(&self, lane: usize, i: usize) -> bool {
        self.0[i] >> lane & 1 == 1
    }
}

impl<V: Lanes> Claims<V> {
    /// Judges circles, and has them claim those of each lane's own points that are in their roads;
    /// `road` is half the width in mm.
    #[inline(always)]
    pub(crate) fn of(
        isa: V::Isa,
        points: &impl Points<V>,
        of: Circles<V>,
        road: f32,
        claimed: &mut Claimed,
    ) -> Self {
        let judge = Judge::new(isa, of, road);
        let (zero, one, road) = (V::splat(isa, 0.0), judge.one, judge.road);
        let [mut hits, mut owned, mut score] = [zero; 3];
        let [mut squares, mut time, mut time2] = [zero; 3];
        for i in 0..points.rows() {
            let (x, y) = points.at(isa, i);
            let t = points.time(isa, i);
            let (dx, dy) = (x - of.x, y - of.y);
            let z = dx * dx + dy * dy;
            let d = z.sqrt() - of.r;
            let inside = d.max(zero - d).le(road);
            let own = V::and(inside, points.own(isa, i));
            hits = hits.plus(inside, one);
            owned = owned.plus(own, one);
            score = score.plus(own, one - judge.off(z));
            squares = squares.plus(inside, d * d);
            time = time.plus(inside, t);
            time2 = time2.plus(inside, t * t);
            claimed.0[i] = V::bits(own);
        }
        let per = hits.max(one);
        let time = time / per;
        let variance = (time2 / per - time * time).max(zero);
        Self {
            hits,
            own: owned,
            score,
            chi2: squares / per,
            time,
            time_spread: variance.sqrt(),
        }
    }

    /// The same of the same circles, when fewer points are their own evidence: `points`, all of
    /// which are.
    #[inline(always)]
    pub(crate) fn again(
        self,
        isa: V::Isa,
        points: &impl Points<V>,
        of: Circles<V>,
        claimed: &mut Claimed,
        road: f32,
    ) -> Self {
        let judge = Judge::new(isa, of, road);
        let (zero, one, road) = (V::splat(isa, 0.0), judge.one, judge.road);
        let [mut owned, mut score] = [zero; 2];
        for i in 0..points.rows() {
            let (x, y) = points.at(isa, i);
            let (dx, dy) = (x - of.x, y - of.y);
            let z = dx * dx + dy * dy;
            let d = z.sqrt() - of.r;
            let inside = d.max(zero - d).le(road);
            owned = owned.plus(inside, one);
            score = score.plus(inside, one - judge.off(z));
            claimed.0[i] = V::bits(inside);
        }
        Self {
            own: owned,
            score,
            ..self
        }
    }
}

/// What circles have in their roads: what they claim, and what others claimed before.
pub(crate) struct Claims<V> {
    /// Points in the road.
    pub(crate) hits: V,
    /// Those that are their own evidence, which are claimed.
    pub(crate) own: V,
    /// Sum over these of 1 - (distance / road)^2: how many, and how near. Distances are as in
    /// [`scores`].
    pub(crate) score: V,
    /// The mean squared distance of all points in the road.
    pub(crate) chi2: V,
    /// The mean and the standard deviation of their times.
    pub(crate) time: V,
    pub(crate) time_spread: V,
}
