//! Joint judgement of the rings of a view, after the last of them was found.
//!
//! The ring that is found first had the hits of all others in its road, and later rings get the
//! rest. Where rings cross, that can produce circles that each have hits of two rings. Such a ring
//! has few hits of its own, or many hits near it that no ring explains: its [significance] is low.
//! The circles of such a view are fitted jointly. If that does not help, the view is searched
//! again, from other candidates. Of all searches, the rings that explain the hits best are kept,
//! where a further ring must explain [`PER_RING`] hits more.
//!
//! In the end, rings with too little significance are dropped, the least significant first: their
//! hits are then free, or belong to one other ring alone.

use pollux_pipelines::simd::{LANES, Lanes};

use super::config::FinderConfig;
use super::ring::Ring;
use super::significance::significance;
use super::view::{Hits, PLACES_FOR_RINGS, RingCounts, Vectors, View};
use crate::rich::fit::Circle;
use crate::rich::geometry::PMS_PER_DISK;
use crate::rich::lanes::{Circles, Judge};

/// Score of a hit in the middle of a road is 1. A further ring must improve the score by this.
const PER_RING: f32 = 5.0;
/// Rings are not in doubt if all of several have at least this significance.
const SURE: f32 = 1.0;
/// The same after a joint fit: another search rarely finds better rings.
const SETTLED: f32 = 0.5;
/// A ring with this significance is kept when the others are searched for again.
const KEPT: f32 = 3.0;
/// Distance from a circle up to which hits count for it, in mm, in each step of the joint fit. The
/// weight (1 - (distance / reach)^2)^4 is close to a Gaussian whose width is a third of the reach.
/// The first reach is large: it draws a circle with hits of two rings to the missing one.
const REACHES_MM: [f32; 4] = [70.0, 50.0, 35.0, 25.0];
/// The first reach for a view that is searched again. A larger one would draw its circles back to
/// the result of the first search.
const LATE: usize = 2;
/// Reach of the single step for rings that are not in doubt. Their hits are now known better than
/// during the search, when each ring had the hits of all others in its road.
const SURE_REACH_MM: [f32; 1] = [35.0];
/// Weight of the hypothesis that a hit belongs to no ring: that of a ring so far away that the hit
/// is unlikely to be its own.
const BACKGROUND: f32 = 0.05;
/// Minimum radius of a circle in a step, in mm; a smaller one is not a ring.
const LEAST_MM: f32 = 1.0;
/// Maximum change of a circle in one step, in mm.
const STEP_MM: f32 = 10.0;

/// Ends the search of a view with a single ring: sets its significance, or drops it if that is too
/// low.
#[inline(always)]
pub(super) fn judge_one(cfg: &FinderConfig, view: &mut View) {
    let free = view.hits().own;
    if let [ring] = view.found.rings_mut() {
        let of = significance(cfg, ring.r, ring.hits.into(), free);
        ring.set_significance(of);
        if of < cfg.min_significance {
            view.found.remove(0);
        }
    }
}

/// Ends a search of a view. Returns the search's score if the view needs another search. Otherwise
/// sets the significance of its rings and drops those with too little.
#[inline(always)]
pub(super) fn judge<V: Lanes>(
    isa: V::Isa,
    cfg: &FinderConfig,
    view: &mut View,
    hits: &mut Hits,
    last: bool,
) -> Option<Doubt> {
    if view.found.rings().is_empty() && !view.is_searched_again() {
        return None;
    }
    let of = hits.vectors(view.hits());
    let mut doubt = false;
    if view.found.rings().len() > 1 {
        doubt = is_in_doubt(
            cfg,
            view.found.rings(),
            &sole::<V>(isa, cfg, view.found.rings(), &of),
            SURE,
        );
        let reaches = match (doubt, view.is_searched_again()) {
            (false, _) => &SURE_REACH_MM[..],
            (true, false) => &REACHES_MM,
            (true, true) => &REACHES_MM[LATE..],
        };
        refit::<V>(isa, view.found.rings_mut(), &of, reaches);
    }
    let mut is_ended = false;
    loop {
        let shares = HitShares::of::<V>(isa, cfg, view.found.rings(), &of);
        if !is_ended {
            // A result that was found twice would be found again.
            let same = last || view.had(shares.score);
            if doubt && !same && is_in_doubt(cfg, view.found.rings(), &shares.sole(), SETTLED) {
                let rings = view.found.rings().iter().zip(&shares.each).enumerate();
                let sure = rings.filter(|(_, (ring, share))| {
                    significance(cfg, ring.r, share.alone, shares.free) >= KEPT
                });
                return Some(Doubt {
                    score: shares.score,
                    sure: sure.fold(0, |bits, (i, _)| bits | 1 << i),
                });
            }
            is_ended = true;
            if view.end(shares.score) {
                continue;
            }
        }
        let mut least = (f32::INFINITY, 0);
        let rings = view.found.rings_mut().iter_mut();
        for (i, (ring, share)) in rings.zip(&shares.each).enumerate() {
            share.set_fields_of(ring);
            let mut of = significance(cfg, ring.r, share.alone, shares.free);
            ring.set_significance(of);
            if !cfg.allows(ring) {
                of = f32::NEG_INFINITY;
            }
            // The last of equal ones.
            if of <= least.0 {
                least = (of, i);
            }
        }
        if least.0 >= cfg.min_significance {
            return None;
        }
        view.found.remove(least.1);
    }
}

/// Why a view is searched again.
pub(super) struct Doubt {
    /// How well its rings explain the hits.
    score: f32,
    /// The rings that are kept, one bit each.
    sure: u8,
}

/// Starts another search of a view, with the rings that are kept.
#[inline(always)]
pub(super) fn search_again<V: Lanes>(
    isa: V::Isa,
    cfg: &FinderConfig,
    view: &mut View,
    doubt: &Doubt,
    hits: &mut Hits,
    ring_counts: &mut RingCounts,
) {
    view.again(doubt.score, doubt.sure, hits, ring_counts);
    if doubt.sure == 0 {
        return;
    }
    let of = hits.vectors(view.hits());
    let mut claimed = [0; PMS_PER_DISK.div_ceil(LANES)];
    for ((claimed, x), y) in claimed.iter_mut().zip(of.x).zip(of.y) {
        let (x, y) = (V::load(isa, x), V::load(isa, y));
        for ring in view.found.rings() {
            let (z, judge) = seen::<V>(isa, cfg, ring, x, y);
            *claimed |= V::bits(judge.has(z));
        }
    }
    view.claim(&claimed, hits);
}

/// Fits the circles of a view jointly, with one step per reach. The number of circles is a constant
/// of each instance, so that the sums stay in registers.
#[inline(always)]
fn refit<V: Lanes>(isa: V::Isa, rings: &mut [Ring], of: &Vectors, reaches: &[f32]) {
    const { assert!(PLACES_FOR_RINGS == 5) };
    match rings.len() {
        2 => steps::<V, 2>(isa, rings, of, reaches),
        3 => steps::<V, 3>(isa, rings, of, reaches),
        4 => steps::<V, 4>(isa, rings, of, reaches),
        5 => steps::<V, 5>(isa, rings, of, reaches),
        _ => {}
    }
}

/// The same for `N` circles. In each step a hit counts for a ring by its distance from that ring
/// and from the others, and each circle makes one Gauss-Newton step.
#[inline(always)]
fn steps<V: Lanes, const N: usize>(isa: V::Isa, rings: &mut [Ring], of: &Vectors, reaches: &[f32]) {
    let Some(rings) = rings.first_chunk_mut::<N>() else {
        return;
    };
    let mut circles = [Circle::default(); N];
    for (circle, ring) in circles.iter_mut().zip(&*rings) {
        (circle.x, circle.y, circle.r) = (ring.x, ring.y, ring.r);
    }
    for &reach in reaches {
        let sums = shared_sums::<V, N>(isa, &circles, of, reach);
        for (circle, sums) in circles.iter_mut().zip(&sums) {
            step(circle, totals(sums));
        }
    }
    for (circle, ring) in circles.iter().zip(rings) {
        (ring.x, ring.y, ring.r) = (circle.x, circle.y, circle.r);
    }
}

/// For each circle, the sums over the hits of their weights w, of w c, w s, w c^2, w c s, w d, w c
/// d and w s d, where d is a hit's distance from the circle, and c and s are the cosine and the
/// sine of its direction from the centre.
///
/// (d^2 - r^2) / 2r replaces the distance d - r, as in [`scores`](crate::rich::lanes::scores), and
/// r replaces the distance from the centre. This needs neither a square root nor a division per hit
/// and ring.
#[inline(always)]
fn shared_sums<V: Lanes, const N: usize>(
    isa: V::Isa,
    circles: &[Circle; N],
    of: &Vectors,
    reach: f32,
) -> [[V; 8]; N] {
    let c = |value: f32| V::splat(isa, value);
    let (zero, one) = (c(0.0), c(1.0));
    let narrow = c(1.0 / (reach * reach));
    let mut sums = [[zero; 8]; N];
    let mut near = [[zero; 4]; N];
    for (x, y) in of.x.iter().zip(of.y) {
        let (x, y) = (V::load(isa, x), V::load(isa, y));
        let mut all = c(BACKGROUND);
        for (near, circle) in near.iter_mut().zip(circles) {
            let r = circle.r.max(LEAST_MM);
            let per = c(1.0 / r);
            let (dx, dy) = (x - c(circle.x), y - c(circle.y));
            let d = (dx * dx + dy * dy) * c(0.5 / r) - c(0.5 * r);
            let close = (one - d * d * narrow).max(zero);
            let close = close * close;
            let close = close * close;
            all = all + close;
            *near = [close, d, dx * per, dy * per];
        }
        let per = one / all;
        for (sums, &[close, d, cos, sin]) in sums.iter_mut().zip(&near) {
            let w = close * per;
            let (wc, ws) = (w * cos, w * sin);
            let terms = [w, wc, ws, wc * cos, wc * sin, w * d, wc * d, ws * d];
            for (sum, term) in sums.iter_mut().zip(terms) {
                *sum = *sum + term;
            }
        }
    }
    sums
}

/// Moves a circle by the [sums](shared_sums) of its hits, if there are enough.
#[inline(always)]
fn step(circle: &mut Circle, [n, c, s, cc, cs, d, dc, ds]: [f32; 8]) {
    let ss = n - cc;
    // Cramer's rule for (cc cs c; cs ss s; c s n) (dx dy dr) = (dc ds d).
    let (m0, m1, m2) = (ss * n - s * s, s * c - cs * n, cs * s - ss * c);
    let determinant = cc * m0 + cs * m1 + c * m2;
    // 1 for four evenly spaced hits.
    if n < 3.0 || determinant < 0.02 {
        return;
    }
    let per = 1.0 / determinant;
    let step = |value: f32| (value * per).clamp(-STEP_MM, STEP_MM);
    circle.x += step(dc * m0 + ds * m1 + d * m2);
    circle.y += step(dc * m1 + ds * (cc * n - c * c) + d * (c * cs - cc * s));
    circle.r += step(dc * m2 + ds * (c * cs - cc * s) + d * (cc * ss - cs * cs));
}

/// The sums of all lanes. `map` of arrays is not reliably compiled with the vector instructions.
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
struct RingShare {
    /// Number of hits that belong to it alone.
    alone: usize,
    /// Number of hits in its road.
    hits: usize,
    /// Sums over these: squared distance, time, and squared time.
    squares: f32,
    time: f32,
    time2: f32,
}

impl RingShare {
    /// Sets the fields of a ring that its hits determine.
    fn set_fields_of(&self, ring: &mut Ring) {
        let per = 1.0 / self.hits.max(1) as f32;
        ring.hits = self.hits as u16;
        ring.chi2 = self.squares * per;
        ring.time = self.time * per;
        ring.time_spread = (self.time2 * per - ring.time * ring.time).max(0.0).sqrt();
    }
}

/// Distribution of the hits of a view over its rings.
struct HitShares {
    each: [RingShare; PLACES_FOR_RINGS],
    /// Number of hits that belong to no ring.
    free: usize,
    /// How well the hits are explained: the sum over the hits of 1 - (distance / road)^2 for the
    /// nearest ring that has them in its road, less [`PER_RING`] for each ring.
    score: f32,
}

/// Number of exclusive hits of each ring, and number of hits that belong to no ring.
type ExclusiveHits = ([usize; PLACES_FOR_RINGS], usize);

/// Whether other rings may explain the hits better.
fn is_in_doubt(
    cfg: &FinderConfig,
    rings: &[Ring],
    &(alone, free): &ExclusiveHits,
    sure: f32,
) -> bool {
    let unsure = |(ring, alone): (&Ring, usize)| significance(cfg, ring.r, alone, free) < sure;
    rings.iter().zip(alone).any(unsure)
}

/// Exclusive hits of the rings of a view.
#[inline(always)]
fn sole<V: Lanes>(isa: V::Isa, cfg: &FinderConfig, rings: &[Ring], of: &Vectors) -> ExclusiveHits {
    match rings.len() {
        2 => sole_of::<V, 2>(isa, cfg, rings, of),
        3 => sole_of::<V, 3>(isa, cfg, rings, of),
        4 => sole_of::<V, 4>(isa, cfg, rings, of),
        _ => sole_of::<V, 5>(isa, cfg, rings, of),
    }
}

#[inline(always)]
fn sole_of<V: Lanes, const N: usize>(
    isa: V::Isa,
    cfg: &FinderConfig,
    rings: &[Ring],
    of: &Vectors,
) -> ExclusiveHits {
    let (mut each, mut free) = ([0; PLACES_FOR_RINGS], of.n);
    let Some(rings) = rings.first_chunk::<N>() else {
        return (each, free);
    };
    for (x, y) in of.x.iter().zip(of.y) {
        let (x, y) = (V::load(isa, x), V::load(isa, y));
        let (mut any, mut several, mut inside) = (0, 0, [0_u16; N]);
        for (inside, ring) in inside.iter_mut().zip(rings) {
            let (z, judge) = seen::<V>(isa, cfg, ring, x, y);
            *inside = V::bits(judge.has(z));
            several |= any & *inside;
            any |= *inside;
        }
        for (alone, inside) in each.iter_mut().zip(inside) {
            *alone += (inside & !several).count_ones() as usize;
        }
        free -= any.count_ones() as usize;
    }
    (each, free)
}

/// Squared distances of hits from a ring's centre, and the ring's road.
#[inline(always)]
fn seen<V: Lanes>(isa: V::Isa, cfg: &FinderConfig, ring: &Ring, x: V, y: V) -> (V, Judge<V>) {
    let c = |value: f32| V::splat(isa, value);
    let circle = Circles::at(c(ring.x), c(ring.y), c(ring.r));
    let (dx, dy) = (x - circle.x, y - circle.y);
    (dx * dx + dy * dy, Judge::new(isa, circle, cfg.road_mm))
}

impl HitShares {
    /// Exclusive hits of the rings.
    fn sole(&self) -> ExclusiveHits {
        (self.each.map(|share| share.alone), self.free)
    }

    #[inline(always)]
    fn of<V: Lanes>(isa: V::Isa, cfg: &FinderConfig, rings: &[Ring], of: &Vectors) -> Self {
        match rings.len() {
            0 => Self::of_some::<V, 0>(isa, cfg, rings, of),
            1 => Self::of_some::<V, 1>(isa, cfg, rings, of),
            2 => Self::of_some::<V, 2>(isa, cfg, rings, of),
            3 => Self::of_some::<V, 3>(isa, cfg, rings, of),
            4 => Self::of_some::<V, 4>(isa, cfg, rings, of),
            _ => Self::of_some::<V, 5>(isa, cfg, rings, of),
        }
    }

    #[inline(always)]
    fn of_some<V: Lanes, const N: usize>(
        isa: V::Isa,
        cfg: &FinderConfig,
        rings: &[Ring],
        of: &Vectors,
    ) -> Self {
        let zero = V::splat(isa, 0.0);
        let mut shares = Self {
            each: [RingShare::default(); PLACES_FOR_RINGS],
            free: of.n,
            score: 0.0,
        };
        let Some(rings) = rings.first_chunk::<N>() else {
            return shares;
        };
        let mut explained = zero;
        let mut sums = [[zero; 3]; N];
        for ((x, y), time) in of.x.iter().zip(of.y).zip(of.time) {
            let (x, y) = (V::load(isa, x), V::load(isa, y));
            let time = V::load(isa, time);
            let mut nearest = zero;
            let (mut any, mut several, mut inside) = (0, 0, [0_u16; N]);
            for ((inside, sums), ring) in inside.iter_mut().zip(&mut sums).zip(rings) {
                let (z, judge) = seen::<V>(isa, cfg, ring, x, y);
                let d = z.sqrt() - V::splat(isa, ring.r);
                let there = judge.has(z);
                for (sum, term) in sums.iter_mut().zip([d * d, time, time * time]) {
                    *sum = sum.plus(there, term);
                }
                *inside = V::bits(there);
                several |= any & *inside;
                any |= *inside;
                nearest = nearest.max(judge.fits(z));
            }
            explained = explained + nearest;
            for (share, inside) in shares.each.iter_mut().zip(inside) {
                share.alone += (inside & !several).count_ones() as usize;
                share.hits += inside.count_ones() as usize;
            }
            shares.free -= any.count_ones() as usize;
        }
        for (share, sums) in shares.each.iter_mut().zip(&sums) {
            let [squares, time, time2] = totals(sums);
            (share.squares, share.time, share.time2) = (squares, time, time2);
        }
        shares.score = explained.sum() - PER_RING * N as f32;
        shares
    }
}
