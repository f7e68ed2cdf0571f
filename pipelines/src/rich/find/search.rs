//! The search for rings in views, in rounds: a ring for each view and round.

use super::seeds::Seeds;
use super::settle::judge;
use super::view::{Hits, MAX_VIEWS, Taken, View};
use super::{FinderConfig, Ring};
use crate::rich::lanes::{Alike, Circles, Claims, Lane, Near, PerLane, Sums, fit_all, scores};
use crate::simd::{Kernel, LANES, Lanes, TABLE};

/// Hits above which one ring is hardly ever all.
const ONE_RING: usize = 32;
/// Circles that are narrowed down of those that are proposed for a view: with four, of 10 000
/// rings 6 more are found in events of two rings, and 20 more in events of four.
const CANDIDATES: usize = 2;
/// Views whose circles are narrowed down at once.
const GROUP: usize = LANES / CANDIDATES;
/// Widths of the roads, in units of the final one, by which the circle through all hits is
/// narrowed down, and whether Taubin's fit is worth its time.
const FROM_ALL: [(f32, bool); 3] = [(3.0, false), (1.5, false), (1.0, true)];
/// The same for circles that were proposed, which are near already.
const FROM_SEED: [(f32, bool); 2] = [(1.5, false), (1.0, true)];

/// Rounds, until no view has another ring, and again for the views whose rings are in doubt.
pub(super) struct Rounds<'a> {
    pub(super) cfg: &'a FinderConfig,
    pub(super) seeds: &'a Seeds,
    pub(super) views: &'a mut [View],
    pub(super) hits: &'a mut Hits,
    pub(super) lanes: &'a mut PerLane,
    /// Room for the views to be looked at.
    pub(super) turn: &'a mut Vec<u8>,
}

impl Kernel for Rounds<'_> {
    type Out = ();

    #[inline(always)]
    fn run<V: Lanes>(self, isa: V::Isa) {
        let Self {
            cfg,
            seeds,
            views,
            hits,
            lanes,
            turn,
        } = self;
        let round = Round::<V> { isa, cfg, seeds };
        let mut taken = Taken::default();
        turn.clear();
        for (number, view) in views.iter().enumerate() {
            if view.may_have_more(cfg, &mut taken) {
                turn.push(number as u8);
            }
        }
        // Those that were searched.
        let (mut all, count) = ([0; MAX_VIEWS], turn.len());
        all[..count].copy_from_slice(turn);
        let mut searched = count;
        for left in (0..cfg.searches).rev() {
            round.search(views, hits, lanes, turn, &mut taken);
            turn.clear();
            for &number in &all[..searched] {
                let view = &mut views[usize::from(number)];
                if let Some(score) = judge::<V>(isa, cfg, view, hits, left == 0) {
                    view.again(score, hits, &mut taken);
                    turn.push(number);
                }
            }
            if turn.is_empty() {
                break;
            }
            searched = turn.len();
            all[..searched].copy_from_slice(turn);
        }
    }
}

/// What all steps of a round need.
struct Round<'a, V: Lanes> {
    isa: V::Isa,
    cfg: &'a FinderConfig,
    seeds: &'a Seeds,
}

impl<V: Lanes> Round<'_, V> {
    /// Looks for rings in views, one after the other in each, until there is no more.
    #[inline(always)]
    fn search(
        &self,
        views: &mut [View],
        hits: &mut Hits,
        lanes: &mut PerLane,
        turn: &mut Vec<u8>,
        taken: &mut Taken,
    ) {
        let cfg = self.cfg;
        while !turn.is_empty() {
            let (mut group, mut grouped) = ([0; LANES], 0);
            let (mut hard, mut hards) = ([0; MAX_VIEWS], 0);
            let (mut left, count) = (0, turn.len());
            // The views with few hits are looked at together, sixteen at a time.
            for next in 0..count {
                let number = turn[next];
                let view = &views[usize::from(number)];
                // One that is searched again is known to have several rings.
                if view.hits().own <= ONE_RING && !view.is_searched_again() {
                    group[grouped] = number;
                    grouped += 1;
                } else {
                    hard[hards] = number;
                    hards += 1;
                }
                if grouped == 0 || (grouped < LANES && next + 1 < count) {
                    continue;
                }
                let found = self.one_ring_each(views, hits, &group[..grouped], lanes);
                for (lane, &number) in group[..grouped].iter().enumerate() {
                    let view = &mut views[usize::from(number)];
                    let Some(ring) = found[lane] else {
                        hard[hards] = number;
                        hards += 1;
                        continue;
                    };
                    view.add(ring, |i| lanes.claimed(lane, i), hits, cfg, taken);
                    turn[left] = number;
                    left += usize::from(view.may_have_more(cfg, taken));
                }
                grouped = 0;
            }
            for group in hard[..hards].chunks(GROUP) {
                let found = self.strongest_each(views, hits, group, lanes);
                for (&number, found) in group.iter().zip(found) {
                    let Some((lane, ring)) = found else {
                        continue;
                    };
                    let view = &mut views[usize::from(number)];
                    view.add(ring, |i| lanes.claimed(lane, i), hits, cfg, taken);
                    turn[left] = number;
                    left += usize::from(view.may_have_more(cfg, taken));
                }
            }
            turn.truncate(left);
        }
    }

    /// For each view of a group the ring that nearly all of its hits agree on.
    #[inline(always)]
    fn one_ring_each(
        &self,
        views: &[View],
        hits: &mut Hits,
        group: &[u8],
        lanes: &mut PerLane,
    ) -> [Option<(Ring, usize)>; LANES] {
        let mut of = [Lane::default(); LANES];
        let mut needed = [f32::INFINITY; LANES];
        for ((of, needed), &number) in of.iter_mut().zip(&mut needed).zip(group) {
            *of = views[usize::from(number)].hits();
            // A fifth of the hits may be noise before the seeds are worth their time.
            *needed = (of.own - of.own / 5) as f32;
        }
        hits.spread::<V>(self.isa, &of, lanes);
        let start = fit_all(self.isa, lanes, false);
        let circles = self.narrow(start, lanes, &FROM_ALL);
        let claims = lanes.claim(self.isa, circles, self.cfg.road_mm);
        let enough = V::load(self.isa, &needed).le(claims.own);
        let good = V::bits(V::and(self.good(circles, &claims), enough));
        let ring = rings(circles, &claims);
        std::array::from_fn(|lane| (good >> lane & 1 == 1).then(|| ring(lane)))
    }

    /// For each view of a group the strongest ring among its hits.
    #[inline(always)]
    fn strongest_each(
        &self,
        views: &[View],
        hits: &mut Hits,
        group: &[u8],
        lanes: &mut PerLane,
    ) -> [Option<(usize, (Ring, usize))>; GROUP] {
        let mut of = [Lane::default(); LANES];
        let mut widths = &FROM_SEED[..];
        let [mut cx, mut cy, mut r] = [[0.0; LANES]; 3];
        for (place, &number) in group.iter().enumerate() {
            let view = &views[usize::from(number)];
            let unclaimed = view.unclaimed(hits);
            let proposed = if self.seeds.grid().is_empty() {
                self.by_triplets(&unclaimed)
            } else {
                widths = &FROM_ALL[..];
                self.by_grid(&unclaimed)
            };
            let circles = proposed.circles.store();
            for (candidate, lane) in proposed.first(self.isa).into_iter().enumerate() {
                let to = place * CANDIDATES + candidate;
                (cx[to], cy[to], r[to]) = (circles[lane].x, circles[lane].y, circles[lane].r);
                of[to] = view.hits();
            }
        }
        hits.spread::<V>(self.isa, &of, lanes);
        let load = |values| V::load(self.isa, values);
        let proposed = Circles::at(load(&cx), load(&cy), load(&r));
        let circles = self.narrow(proposed, lanes, widths);
        let claims = lanes.claim(self.isa, circles, self.cfg.road_mm);
        let scores = claims.score.only(self.good(circles, &claims)).store();
        let ring = rings(circles, &claims);
        let mut found = [None; GROUP];
        for (place, slot) in found.iter_mut().enumerate() {
            let mut most = 0.0;
            let lanes = scores.iter().enumerate().skip(place * CANDIDATES);
            for (lane, &score) in lanes.take(CANDIDATES) {
                if score > most {
                    most = score;
                    *slot = Some((lane, ring(lane)));
                }
            }
        }
        found
    }

    /// Fits to the hits in ever narrower roads.
    #[inline(always)]
    fn narrow(&self, start: Circles<V>, hits: &PerLane, widths: &[(f32, bool)]) -> Circles<V> {
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

    /// Which circles have a radius and a centre that rings may have.
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

    /// In each lane, of the circles through three hits the one that most hits lie near.
    #[inline(always)]
    fn by_triplets(&self, hits: &Alike) -> Best<V> {
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

    /// In each lane, of its centres the one around which most hits have one distance.
    #[inline(always)]
    fn by_grid(&self, hits: &Alike) -> Best<V> {
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
                    // The cast takes what is below to the first bin, which two more bins make up
                    // for at the end.
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

/// The rings that circles make of what is in their roads: that of a lane, of either disk, and how
/// many hits it claims.
#[inline(always)]
fn rings<V: Lanes>(
    circles: Circles<V>,
    claims: &Claims<V>,
) -> impl Fn(usize) -> (Ring, usize) + use<V> {
    let [hits, own, chi2] = [&claims.hits, &claims.own, &claims.chi2].map(|of| of.store());
    let [time, time_spread] = [claims.time.store(), claims.time_spread.store()];
    let [x, y, r] = [circles.x.store(), circles.y.store(), circles.r.store()];
    move |lane| {
        let ring = Ring {
            hits: hits[lane] as u16,
            x: x[lane],
            y: y[lane],
            r: r[lane],
            chi2: chi2[lane],
            time: time[lane],
            time_spread: time_spread[lane],
            ..Ring::default()
        };
        (ring, own[lane] as usize)
    }
}

/// The first of so many values as fit a table; of more, some that are evenly spread over all.
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

/// Bins of a histogram of distances; the first and the last take what is outside.
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

    /// The lanes with the best scores, the best first.
    #[inline(always)]
    fn first(&self, isa: V::Isa) -> [usize; CANDIDATES] {
        let number = V::load(isa, &std::array::from_fn(|i| i as f32));
        let mut scores = self.score;
        let mut first = [0; CANDIDATES];
        for slot in &mut first {
            let best = V::splat(isa, scores.largest()).le(scores);
            *slot = V::bits(best).trailing_zeros() as usize % LANES;
            let chosen = V::splat(isa, *slot as f32);
            let chosen = V::and(number.le(chosen), chosen.le(number));
            scores = V::splat(isa, -1.0).or_else(chosen, scores);
        }
        first
    }
}
