//! Ring search in views: one ring in each of sixteen views at once, then view by view where one
//! ring is not all.

use pollux_pipelines::simd::{Kernel, LANES, Lanes, TABLE};

use super::config::FinderConfig;
use super::joint_fit::{Doubt, judge, judge_one, search_again};
use super::ring::Ring;
use super::seeds::Seeds;
use super::significance::significance;
use super::view::{Hits, MAX_VIEWS, RingCounts, View};
use crate::rich::lanes::{
    Broadcast, Circles, Claimed, Claims, Lane, Near, PerLane, Points, Records, Sums, fit_all,
    scores,
};

/// Number of hits above which a view often has more than one ring.
const ONE_RING: usize = 22;
/// Minimum significance of a further ring from the same candidates. A less significant ring may get
/// better candidates from the remaining hits.
const SURE: f32 = 1.5;
/// Roads by which the circle through all hits is narrowed down: width in units of the final one,
/// and whether Taubin's fit is worth its time.
const FROM_ALL: [(f32, bool); 3] = [(3.0, false), (1.5, false), (1.0, true)];
/// The same for candidates, which are close already: the best of sixteen.
const FROM_SEED: [(f32, bool); 1] = [(1.0, true)];

/// The search for all rings in the views of a batch.
pub(super) struct Search<'a> {
    pub(super) cfg: &'a FinderConfig,
    pub(super) seeds: &'a Seeds,
    pub(super) views: &'a mut [View],
    pub(super) hits: &'a mut Hits,
    pub(super) lanes: &'a mut PerLane,
    pub(super) claimed: &'a mut Claimed,
}

impl Kernel for Search<'_> {
    type Out = ();

    #[inline(always)]
    fn run<V: Lanes>(self, isa: V::Isa) {
        let Self {
            cfg,
            seeds,
            views,
            hits,
            lanes,
            claimed,
        } = self;
        let context = SearchContext::<V> { isa, cfg, seeds };
        let mut ring_counts = RingCounts::default();
        // Views with few hits are searched together, sixteen at a time.
        let (mut group, mut grouped) = ([0; LANES], 0);
        let (mut hard, mut hards) = ([0; MAX_VIEWS], 0);
        for number in 0..views.len() {
            let view = &views[number];
            if view.may_have_more(cfg, &mut ring_counts) {
                if view.hits().own <= ONE_RING {
                    group[grouped] = number as u8;
                    grouped += 1;
                } else {
                    hard[hards] = number as u8;
                    hards += 1;
                }
            }
            if grouped == 0 || (grouped < LANES && number + 1 < views.len()) {
                continue;
            }
            let found = context.one_ring_each(views, hits, &group[..grouped], lanes, claimed);
            for (lane, &number) in group[..grouped].iter().enumerate() {
                let view = &mut views[usize::from(number)];
                let mut more = true;
                if let Some(ring) = found[lane] {
                    view.add(ring, |i| claimed.has(lane, i), hits, cfg, &mut ring_counts);
                    more = view.may_have_more(cfg, &mut ring_counts);
                }
                if more {
                    hard[hards] = number;
                    hards += 1;
                } else {
                    context.judge_one(view, &mut ring_counts);
                }
            }
            grouped = 0;
        }
        for &number in &hard[..hards] {
            let view = &mut views[usize::from(number)];
            for left in (0..cfg.searches).rev() {
                context.search(view, hits, claimed, &mut ring_counts);
                let Some(doubt) = context.judge(view, hits, left == 0, &mut ring_counts) else {
                    break;
                };
                search_again::<V>(isa, cfg, view, &doubt, hits, &mut ring_counts);
            }
        }
    }
}

/// Constants that all steps of a search share.
struct SearchContext<'a, V: Lanes> {
    isa: V::Isa,
    cfg: &'a FinderConfig,
    seeds: &'a Seeds,
}

impl<V: Lanes> SearchContext<'_, V> {
    /// Searches a view for rings, one after the other, until no more is found.
    #[inline(always)]
    fn search(
        &self,
        view: &mut View,
        hits: &mut Hits,
        claimed: &mut Claimed,
        ring_counts: &mut RingCounts,
    ) {
        let (isa, cfg) = (self.isa, self.cfg);
        let mut more = view.may_have_more(cfg, ring_counts);
        while more {
            more = false;
            let all = view.all(hits);
            let (proposed, widths) = if self.seeds.grid().is_empty() {
                (self.by_triplets(&all.owned()), &FROM_SEED[..])
            } else {
                (self.by_grid(&all.owned()), &FROM_ALL[..])
            };
            // A hit scores 1 at most: no circle can reach the score that a further ring needs.
            if proposed.score.largest() <= f32::from(cfg.min_hits) - 2.0 {
                break;
            }
            let circles = self.narrow(proposed.circles, &all, widths);
            let mut claims = Claims::of(isa, &all.owned(), circles, cfg.road_mm, claimed)
                .and_shared(isa, &all.claimed(), circles, cfg.road_mm);
            let ring = rings(circles, &claims);
            loop {
                let scores = claims.score.only(self.good(circles, &claims));
                let most = scores.largest();
                if most <= 0.0 {
                    break;
                }
                let best = V::bits(V::splat(isa, most).le(scores));
                let lane = best.trailing_zeros() as usize % LANES;
                let (ring, own) = (ring(lane), claims.own.store()[lane] as usize);
                let beside = view.hits().own - own;
                if more && significance(cfg, ring.r, own, beside) < SURE {
                    break;
                }
                view.add(
                    (ring, own),
                    |i| claimed.has(lane, i),
                    hits,
                    cfg,
                    ring_counts,
                );
                if !view.may_have_more(cfg, ring_counts) {
                    return;
                }
                more = true;
                let unclaimed = view.unclaimed(hits);
                claims = claims.again(isa, &unclaimed, circles, cfg.road_mm, claimed);
            }
        }
    }

    /// [Judges](judge_one) the ring that nearly all hits of a view agree on.
    #[inline(always)]
    fn judge_one(&self, view: &mut View, ring_counts: &mut RingCounts) {
        let before = view.found.rings().len();
        judge_one(self.cfg, view);
        ring_counts.replace(view, before, view.found.rings().len());
    }

    /// [Judges](judge) the rings of a view; dropped rings make room for rings of other times.
    #[inline(always)]
    fn judge(
        &self,
        view: &mut View,
        hits: &mut Hits,
        last: bool,
        ring_counts: &mut RingCounts,
    ) -> Option<Doubt> {
        let before = view.found.rings().len();
        let doubt = judge::<V>(self.isa, self.cfg, view, hits, last);
        ring_counts.replace(view, before, view.found.rings().len());
        doubt
    }

    /// For each view of a group, finds the ring that nearly all of its hits agree on.
    #[inline(always)]
    fn one_ring_each(
        &self,
        views: &[View],
        hits: &mut Hits,
        group: &[u8],
        lanes: &mut PerLane,
        claimed: &mut Claimed,
    ) -> [Option<(Ring, usize)>; LANES] {
        let mut of = [Lane::default(); LANES];
        let mut needed = [f32::INFINITY; LANES];
        for ((of, needed), &number) in of.iter_mut().zip(&mut needed).zip(group) {
            *of = views[usize::from(number)].hits();
            // Up to a fifth of the hits may be noise before candidates from triplets are worth
            // their time.
            *needed = (of.own - of.own / 5) as f32;
        }
        hits.spread::<V>(self.isa, &of, lanes);
        let start = fit_all(self.isa, lanes, false);
        let circles = self.narrow(start, lanes, &FROM_ALL);
        let claims = Claims::of(self.isa, lanes, circles, self.cfg.road_mm, claimed);
        let enough = V::load(self.isa, &needed).le(claims.own);
        let good = V::bits(V::and(self.good(circles, &claims), enough));
        let (ring, own) = (rings(circles, &claims), claims.own.store());
        let records = Records::of(self.isa, lanes, circles, self.cfg.road_mm);
        let [chi2, time, time_spread] = [
            records.chi2.store(),
            records.time.store(),
            records.time_spread.store(),
        ];
        let found = |lane: usize| {
            let ring = Ring {
                chi2: chi2[lane],
                time: time[lane],
                time_spread: time_spread[lane],
                ..ring(lane)
            };
            (ring, own[lane] as usize)
        };
        std::array::from_fn(|lane| (good >> lane & 1 == 1).then(|| found(lane)))
    }

    /// Fits circles to the hits in successively narrower roads.
    #[inline(always)]
    fn narrow(
        &self,
        start: Circles<V>,
        hits: &impl Points<V>,
        widths: &[(f32, bool)],
    ) -> Circles<V> {
        let mut circles = start;
        for &(width, taubin) in widths {
            let near = Near::Road(width * self.cfg.road_mm);
            circles = Sums::of(self.isa, hits, circles, near).solve(self.isa, taubin);
        }
        circles
    }

    /// Which circles are rings.
    #[inline(always)]
    fn good(&self, circles: Circles<V>, claims: &Claims<V>) -> V::Mask {
        let cfg = self.cfg;
        let c = |value: f32| V::splat(self.isa, value);
        let share = circles.r * c(1.0 / cfg.max_radius_mm);
        let expected = c(f32::from(cfg.min_hits_largest)) * share * share;
        let min_hits = f32::from(cfg.min_hits);
        let evidence = V::and(
            expected.max(c(min_hits)).le(claims.hits),
            c(min_hits - 1.0).le(claims.own),
        );
        let good = V::and(evidence, claims.chi2.le(c(cfg.max_chi2_mm2)));
        V::and(good, self.in_range(circles))
    }

    /// Which circles have a radius and a centre within the limits of rings.
    #[inline(always)]
    fn in_range(&self, circles: Circles<V>) -> V::Mask {
        let cfg = self.cfg;
        let c = |value: f32| V::splat(self.isa, value);
        let centre = circles.x * circles.x + circles.y * circles.y;
        V::and(
            V::and(
                c(cfg.min_radius_mm).le(circles.r),
                circles.r.le(c(cfg.max_radius_mm)),
            ),
            centre.le(c(cfg.max_centre_mm * cfg.max_centre_mm)),
        )
    }

    /// In each lane, the circle through three hits with the best score.
    #[inline(always)]
    fn by_triplets(&self, hits: &Broadcast) -> Best<V> {
        let isa = self.isa;
        let count = hits.x.len().div_ceil(hits.x.len().div_ceil(TABLE).max(1));
        let (x, y) = (table(hits.x), table(hits.y));
        let mut best = Best::none(isa);
        for &[first, second] in self.seeds.triplets(count) {
            let [a, b, c] = first;
            let at = |i| [V::pick(isa, &x, i), V::pick(isa, &y, i)];
            let first = Circles::through(isa, at(&a), at(&b), at(&c));
            let [a, b, c] = second;
            let second = Circles::through(isa, at(&a), at(&b), at(&c));
            let [s, t] = scores(isa, hits, [first, second], self.cfg.road_mm);
            best.consider(first, s.only(self.in_range(first)));
            best.consider(second, t.only(self.in_range(second)));
        }
        best
    }

    /// In each lane, the circle around a grid centre with the best score.
    #[inline(always)]
    fn by_grid(&self, hits: &Broadcast) -> Best<V> {
        let isa = self.isa;
        let (from, width) = (self.cfg.min_radius_mm, self.cfg.road_mm);
        let bins = ((self.cfg.max_radius_mm - from) / width).min(BINS as f32 - 2.0) as usize + 1;
        let per = V::splat(isa, 1.0 / width);
        let mut best = Best::none(isa);
        for [x, y] in self.seeds.grid() {
            let (cx, cy) = (V::load(isa, x), V::load(isa, y));
            let mut histogram = [[0.0; LANES]; BINS];
            for (&x, &y) in hits.x.iter().zip(hits.y) {
                let (dx, dy) = (V::splat(isa, x) - cx, V::splat(isa, y) - cy);
                let bin = ((dx * dx + dy * dy).sqrt() - V::splat(isa, from)) * per;
                for (lane, bin) in bin.store().into_iter().enumerate() {
                    // The cast moves values below the range to the first bin; two extra bins at the
                    // end compensate.
                    histogram[(bin.max(-1.0) + 1.0).min(BINS as f32 - 1.0) as usize][lane] += 1.0;
                }
            }
            let row = |bin: usize| V::load(isa, &histogram[bin]);
            for bin in 1..=bins {
                let r = V::splat(isa, from + bin as f32 * width);
                let score = row(bin) + row(bin + 1);
                best.consider(Circles::at(cx, cy, r), score);
            }
        }
        best
    }
}

/// The rings that circles make of the hits in their roads; the returned function gives the ring of
/// a lane, without its disk.
#[inline(always)]
fn rings<V: Lanes>(circles: Circles<V>, claims: &Claims<V>) -> impl Fn(usize) -> Ring + use<V> {
    let [hits, chi2] = [claims.hits.store(), claims.chi2.store()];
    let [x, y, r] = [circles.x.store(), circles.y.store(), circles.r.store()];
    move |lane| Ring {
        hits: hits[lane] as u16,
        x: x[lane],
        y: y[lane],
        r: r[lane],
        chi2: chi2[lane],
        ..Ring::default()
    }
}

/// The first values, as many as a table holds; of more, an evenly spaced selection.
#[inline(always)]
fn table(values: &[f32]) -> [f32; TABLE] {
    let mut table = [0.0; TABLE];
    if let Some(start) = table.get_mut(..values.len()) {
        start.copy_from_slice(values);
        return table;
    }
    let step = values.len().div_ceil(TABLE);
    for (slot, &value) in table.iter_mut().zip(values.iter().step_by(step)) {
        *slot = value;
    }
    table
}

/// Bins of a histogram of distances; the first and the last hold values out of range.
const BINS: usize = 32;

/// The best circle of each lane, and its score.
struct Best<V> {
    circles: Circles<V>,
    score: V,
}

impl<V: Lanes> Best<V> {
    #[inline(always)]
    fn none(isa: V::Isa) -> Self {
        let zero = V::splat(isa, 0.0);
        Self {
            circles: Circles::at(zero, zero, zero),
            score: zero,
        }
    }

    #[inline(always)]
    fn consider(&mut self, circles: Circles<V>, score: V) {
        let keep = score.le(self.score);
        let Self { circles: best, .. } = *self;
        self.circles = Circles::at(
            best.x.or_else(keep, circles.x),
            best.y.or_else(keep, circles.y),
            best.r.or_else(keep, circles.r),
        );
        self.score = self.score.or_else(keep, score);
    }
}
