//! Judges the rings of a view together, when the last of them has been found.
//!
//! A ring that was found first had the hits of all others in its road, and those found later get
//! what it left. Where rings cross, that may end in circles that each have hits of two rings. It
//! shows in a ring that has few hits for itself alone, or many beside it that no ring explains: its
//! [significance] is low. The circles of such a view are fitted together, and if that does not help,
//! it is searched again, from other circles; of all searches the rings that explain the hits best are
//! taken, where a further ring has to explain [`PER_RING`] hits more.
//!
//! In the end the rings that have too little significance are dropped, the least significant first:
//! what they had is free then, or another's alone.

use pollux_pipelines::simd::Lanes;

use super::significance::significance;
use super::view::{Hits, PLACES_FOR_RINGS, Vectors, View};
use super::{FinderConfig, Ring};
use crate::rich::lanes::{Circles, Judge};

/// Score of a hit in the middle of a road: 1. A further ring has to explain so much more.
const PER_RING: f32 = 5.0;
/// Where several rings are all as significant as this, they are not in doubt.
const SURE: f32 = 2.0;
/// Where they are after they have been fitted together, another search hardly finds better ones.
const SETTLED: f32 = 1.0;
/// How far from a circle a hit counts for it, in mm, in each step by which the circles of a view are
/// fitted together: the weight (1 - (distance / reach)^2)^4 is about that of a Gaussian of a third of
/// the reach. Far at first: a circle that has hits of two rings is drawn to the one that is
/// missing.
const REACHES_MM: [f32; 5] = [40.0, 35.0, 30.0, 25.0, 21.0];
/// The first reach for a view that is searched again: one that reaches further would draw its circles
/// back to where those of the first search ended.
const LATE: usize = 2;
/// That of the one step for rings that are not in doubt, whose hits are known to be theirs better than
/// to the fit that found them: each of these had the hits of all others in its road.
const SURE_REACH_MM: [f32; 1] = [25.0];
/// The weight of no ring: that of a ring that is so far off that the hit is not likely its own.
const BACKGROUND: f32 = 0.05;
/// Largest change of a circle in one step, in mm.
const STEP_MM: f32 = 10.0;

/// Ends a search of a view: its score, if it should be searched again. Else its rings have their
/// significance, and those that have too little are gone.
#[inline(always)]
pub(super) fn judge<V: Lanes>(
    isa: V::Isa,
    cfg: &FinderConfig,
    view: &mut View,
    hits: &mut Hits,
    last: bool,
) -> Option<f32> {
    match view.found.rings() {
        [] | [_] if !view.is_searched_again() => {
            let free = view.hits().own;
            if let [ring] = view.found.rings_mut() {
                let of = significance(cfg, ring.r, ring.hits.into(), free);
                ring.set_significance(of);
                if of < cfg.min_significance {
                    view.found.remove(0);
                }
            }
            None
        }
        _ => several::<V>(isa, cfg, view, hits, last),
    }
}

/// The same for a view of several rings, or one that is searched again.
#[inline(always)]
fn several<V: Lanes>(
    isa: V::Isa,
    cfg: &FinderConfig,
    view: &mut View,
    hits: &mut Hits,
    last: bool,
) -> Option<f32> {
    let of = hits.vectors(view.hits());
    let mut shares = Shares::of::<V>(isa, cfg, view.found.rings(), &of);
    if view.found.rings().len() > 1 {
        let doubt = shares.are_in_doubt(cfg, view.found.rings(), SURE);
        let reaches = match (doubt, view.is_searched_again()) {
            (false, _) => &SURE_REACH_MM[..],
            (true, false) => &REACHES_MM,
            (true, true) => &REACHES_MM[LATE..],
        };
        refit::<V>(isa, view.found.rings_mut(), &of, reaches);
        shares = Shares::of::<V>(isa, cfg, view.found.rings(), &of);
        // What is found a second time would be found again.
        let same = last || view.had(shares.score);
        if doubt && !same && shares.are_in_doubt(cfg, view.found.rings(), SETTLED) {
            return Some(shares.score);
        }
    }
    if view.end(shares.score) {
        shares = Shares::of::<V>(isa, cfg, view.found.rings(), &of);
    }
    loop {
        let mut least = (f32::INFINITY, 0);
        let rings = view.found.rings_mut().iter_mut();
        for (i, (ring, share)) in rings.zip(&shares.each).enumerate() {
            share.tell(ring);
            let mut of = significance(cfg, ring.r, share.alone, shares.free);
            ring.set_significance(of);
            if !cfg.allows(ring) {
                of = f32::NEG_INFINITY;
            }
            // Of equal ones the last.
            if of <= least.0 {
                least = (of, i);
            }
        }
        if least.0 >= cfg.min_significance {
            return None;
        }
        view.found.remove(least.1);
        shares = Shares::of::<V>(isa, cfg, view.found.rings(), &of);
    }
}

/// Fits the circles of a view together, in a step for each reach. How many there are is known where
/// the step is compiled: so its sums are in registers.
#[inline(always)]
fn refit<V: Lanes>(isa: V::Isa, rings: &mut [Ring], of: &Vectors, reaches: &[f32]) {
    const { assert!(PLACES_FOR_RINGS == 5) };
    for &reach in reaches {
        match rings.len() {
            2 => step::<V, 2>(isa, rings, of, reach),
            3 => step::<V, 3>(isa, rings, of, reach),
            4 => step::<V, 4>(isa, rings, of, reach),
            5 => step::<V, 5>(isa, rings, of, reach),
            _ => {}
        }
    }
}

/// Each hit counts for a ring by how near it is to that one and how far from the others, and each
/// circle goes a step of Gauss and Newton's method.
#[inline(always)]
fn step<V: Lanes, const N: usize>(isa: V::Isa, rings: &mut [Ring], of: &Vectors, reach: f32) {
    let Some(rings) = rings.first_chunk_mut::<N>() else {
        return;
    };
    let c = |value: f32| V::splat(isa, value);
    let zero = c(0.0);
    let mut sums = [[zero; 8]; N];
    let mut near = [[zero; 4]; N];
    for (x, y) in of.x.iter().zip(of.y) {
        let (x, y) = (V::load(isa, x), V::load(isa, y));
        let mut all = c(BACKGROUND);
        for (near, ring) in near.iter_mut().zip(&*rings) {
            let (dx, dy) = (x - c(ring.x), y - c(ring.y));
            let distance = (dx * dx + dy * dy).sqrt().max(c(1e-3));
            let per = c(1.0) / distance;
            let d = distance - c(ring.r);
            let close = (c(1.0) - d * d * c(1.0 / (reach * reach))).max(zero);
            let close = close * close;
            let close = close * close;
            all = all + close;
            *near = [close, d, dx * per, dy * per];
        }
        let per = c(1.0) / all;
        for (sums, &[close, d, cos, sin]) in sums.iter_mut().zip(&near) {
            let w = close * per;
            let (wc, ws) = (w * cos, w * sin);
            let terms = [w, wc, ws, wc * cos, wc * sin, w * d, wc * d, ws * d];
            for (sum, term) in sums.iter_mut().zip(terms) {
                *sum = *sum + term;
            }
        }
    }
    for (ring, sums) in rings.iter_mut().zip(&sums) {
        let [n, c, s, cc, cs, d, dc, ds] = totals(sums);
        let ss = n - cc;
        // Cramer's rule for (cc cs c; cs ss s; c s n) (dx dy dr) = (dc ds d).
        let (m0, m1, m2) = (ss * n - s * s, s * c - cs * n, cs * s - ss * c);
        let determinant = cc * m0 + cs * m1 + c * m2;
        // Of four hits all around it is 1.
        if n < 3.0 || determinant < 0.02 {
            continue;
        }
        let step = |value: f32| (value / determinant).clamp(-STEP_MM, STEP_MM);
        ring.x += step(dc * m0 + ds * m1 + d * m2);
        ring.y += step(dc * m1 + ds * (cc * n - c * c) + d * (c * cs - cc * s));
        ring.r += step(dc * m2 + ds * (c * cs - cc * s) + d * (cc * ss - cs * cs));
    }
}

/// The sums of all lanes. `map` of arrays is no loop that is compiled with the instructions of the
/// lanes for sure.
#[inline(always)]
fn totals<V: Lanes, const N: usize>(sums: &[V; N]) -> [f32; N] {
    let mut totals = [0.0; N];
    for (total, sum) in totals.iter_mut().zip(sums) {
        *total = sum.sum();
    }
    totals
}

/// The hits of one ring of several.
#[derive(Clone, Copy, Default)]
struct Share {
    /// Those that it alone has.
    alone: usize,
    /// All that are in its road.
    hits: usize,
    /// Sums over these: of the squares of their distances, their times, and the squares of these.
    squares: f32,
    time: f32,
    time2: f32,
}

impl Share {
    /// Notes in a ring what its hits say.
    fn tell(&self, ring: &mut Ring) {
        let per = 1.0 / self.hits.max(1) as f32;
        ring.hits = self.hits as u16;
        ring.chi2 = self.squares * per;
        ring.time = self.time * per;
        ring.time_spread = (self.time2 * per - ring.time * ring.time).max(0.0).sqrt();
    }
}

/// How the hits of a view are shared out.
struct Shares {
    each: [Share; PLACES_FOR_RINGS],
    /// Hits that no ring has.
    free: usize,
    /// How well they are explained: the sum over the hits of 1 - (distance / road)^2 of the nearest
    /// ring, where it is in its road, less [`PER_RING`] for each ring.
    score: f32,
}

impl Shares {
    /// Whether other rings may well explain the hits better.
    fn are_in_doubt(&self, cfg: &FinderConfig, rings: &[Ring], sure: f32) -> bool {
        let unsure = |(ring, share): (&Ring, &Share)| {
            significance(cfg, ring.r, share.alone, self.free) < sure
        };
        rings.iter().zip(&self.each).any(unsure)
    }

    #[inline(always)]
    fn of<V: Lanes>(isa: V::Isa, cfg: &FinderConfig, rings: &[Ring], of: &Vectors) -> Self {
        let c = |value: f32| V::splat(isa, value);
        let zero = c(0.0);
        let mut shares = Self {
            each: [Share::default(); PLACES_FOR_RINGS],
            free: of.n,
            score: 0.0,
        };
        let mut explained = zero;
        let mut sums = [[zero; 3]; PLACES_FOR_RINGS];
        for ((x, y), time) in of.x.iter().zip(of.y).zip(of.time) {
            let (x, y) = (V::load(isa, x), V::load(isa, y));
            let time = V::load(isa, time);
            let mut nearest = zero;
            let (mut any, mut several, mut inside) = (0, 0, [0_u16; PLACES_FOR_RINGS]);
            for ((inside, sums), ring) in inside.iter_mut().zip(&mut sums).zip(rings) {
                let circle = Circles::at(c(ring.x), c(ring.y), c(ring.r));
                let judge = Judge::new(isa, circle, cfg.road_mm);
                let (dx, dy) = (x - circle.x, y - circle.y);
                let z = dx * dx + dy * dy;
                let d = z.sqrt() - circle.r;
                let there = d.max(zero - d).le(judge.road);
                for (sum, term) in sums.iter_mut().zip([d * d, time, time * time]) {
                    *sum = sum.plus(there, term);
                }
                *inside = V::bits(there);
                several |= any & *inside;
                any |= *inside;
                nearest = nearest.max(judge.one - judge.off(z));
            }
            explained = explained + nearest;
            for (share, inside) in shares.each.iter_mut().zip(inside) {
                share.alone += (inside & !several).count_ones() as usize;
                share.hits += inside.count_ones() as usize;
            }
            shares.free -= any.count_ones() as usize;
        }
        for (share, sums) in shares.each.iter_mut().zip(&sums[..rings.len()]) {
            let [squares, time, time2] = totals(sums);
            (share.squares, share.time, share.time2) = (squares, time, time2);
        }
        shares.score = explained.sum() - PER_RING * rings.len() as f32;
        shares
    }
}
