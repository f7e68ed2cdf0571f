//! Circle fits for up to sixteen events at once, one circle per event.

use pollux_pipelines::simd::{Kernel, LANES, Lanes, Simd, TABLE};

use super::fit::{Circle, Fit};
use super::lanes::{Lane, PerLane, Quality, fit_all};

/// Maximum number of events in a batch.
pub const EVENTS: usize = LANES;
/// Maximum number of points of an event; further points are ignored.
pub const POINTS: usize = TABLE;

/// The points of up to [`EVENTS`] events.
#[derive(Debug)]
pub struct Batch {
    lanes: PerLane,
    counts: [usize; EVENTS],
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// An empty batch, with all memory allocated.
    #[must_use]
    pub fn new() -> Self {
        Self {
            lanes: PerLane::with_room(POINTS),
            counts: [0; EVENTS],
        }
    }

    /// Sets the points (x, y) of the events, in mm; events beyond [`EVENTS`] are ignored.
    #[inline]
    pub fn fill<'a>(&mut self, events: &[(&'a [f32], &'a [f32])]) {
        let mut lanes = [Lane::default(); EVENTS];
        for (lane, &(x, y)) in lanes.iter_mut().zip(events) {
            lane.total = x.len().min(y.len()).min(POINTS);
            lane.own = lane.total;
        }
        self.counts = lanes.map(|lane| lane.own);
        self.lanes.begin(&lanes);
        self.lanes.empty();
        for (lane, &(x, y)) in (0..EVENTS).zip(events) {
            self.lanes.column(lane, x, y);
        }
    }

    /// Fits a circle to the points of each event by Taubin's method. `None` for fewer than three
    /// points, and for points that coincide or lie on a line.
    #[inline]
    #[must_use]
    pub fn fit(&self, simd: Simd) -> [Option<Fit>; EVENTS] {
        simd.run(FitAll(self))
    }
}

struct FitAll<'a>(&'a Batch);

impl Kernel for FitAll<'_> {
    type Out = [Option<Fit>; EVENTS];

    #[inline(always)]
    fn run<V: Lanes>(self, isa: V::Isa) -> Self::Out {
        let Batch { lanes, counts } = self.0;
        let circles = fit_all::<V>(isa, lanes, true);
        let chi2 = Quality::of(isa, lanes, circles, EVERYWHERE_MM).chi2.store();
        let mut fits = [None; EVENTS];
        for (lane, circle) in circles.store().into_iter().enumerate() {
            let fit = Fit {
                circle,
                chi2: chi2[lane],
                n: counts[lane],
            };
            fits[lane] = (circle != Circle::default() && circle.r > 0.0).then_some(fit);
        }
        fits
    }
}

/// A road that contains all points, and no empty place.
const EVERYWHERE_MM: f32 = 1e4;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::f32::consts::TAU;

    use proptest::prelude::*;

    use super::*;
    use crate::rich::fit::fit;
    use crate::rich::geometry::POSITIONS;

    /// Hits of a ring: one per angle, each with an error of a few mm.
    fn ring(circle: Circle, angles: &[(f32, f32)]) -> (Vec<f32>, Vec<f32>) {
        let point = |&(angle, error): &(f32, f32)| {
            let (sin, cos) = angle.sin_cos();
            let r = circle.r + error;
            (circle.x + r * cos, circle.y + r * sin)
        };
        angles.iter().map(point).unzip()
    }

    fn slices(events: &[(Vec<f32>, Vec<f32>)]) -> Vec<(&[f32], &[f32])> {
        let slice = |(x, y)| (Vec::as_slice(x), Vec::as_slice(y));
        events.iter().map(|(x, y)| slice((x, y))).collect()
    }

    fn fits(events: &[(Vec<f32>, Vec<f32>)], simd: Simd) -> [Option<Fit>; EVENTS] {
        let mut batch = Batch::new();
        batch.fill(&slices(events));
        batch.fit(simd)
    }

    #[test]
    fn points_that_define_no_circle_give_none() {
        let line = |n: usize| (0..n).map(|i| i as f32 * 3.0 - 20.0).collect::<Vec<_>>();
        let flat = |n: usize, at: f32| vec![at; n];
        let events = [
            (vec![], vec![]),
            (line(1), flat(1, 7.0)),
            (line(2), flat(2, 7.0)),
            (line(40), flat(40, -90.0)),
            (flat(64, 250.0), line(64)),
            (line(30), line(30).iter().map(|v| 3.0 - 2.0 * v).collect()),
            (flat(2000, 200.0), flat(2000, -180.0)),
            // Two positions, whatever the number of points.
            ([10.0, 70.0].repeat(9), [20.0, -90.0].repeat(9)),
        ];
        for simd in Simd::all() {
            assert_eq!(fits(&events, simd), [None; EVENTS], "{simd:?}");
        }
    }

    proptest! {
        /// Compared with the fit in double precision, which handles one event at a time.
        #[test]
        fn fits_are_those_of_double_precision(
            rings in prop::collection::vec(
                ((-125f32..125.0, -125f32..125.0, 60f32..250.0),
                 prop::collection::vec((0f32..TAU, -9f32..9.0), 8..40)), 1..20)
        ) {
            let events: Vec<_> = rings
                .iter()
                .map(|((x, y, r), angles)| ring(Circle { x: *x, y: *y, r: *r }, angles))
                .collect();
            let best = fits(&events, Simd::best());
            for simd in Simd::all() {
                prop_assert_eq!(&fits(&events, simd), &best);
            }
            for (((x, y), ours), ((_, _, radius), _)) in events.iter().zip(best).zip(&rings) {
                let (Some(theirs), Some(ours)) = (fit(x, y), ours) else {
                    continue;
                };
                // Where the points determine the circle badly, single precision loses its last
                // digits too, and both fits are farther from the ring than its points.
                let is_near = (theirs.circle.r - radius).abs() < 9.0;
                if theirs.chi2 < 40.0 && is_near {
                    let distance = |a: f32, b: f32| (a - b).abs();
                    prop_assert!(distance(theirs.circle.r, ours.circle.r) < 0.1, "{:?} {:?}", theirs, ours);
                    prop_assert!(distance(theirs.circle.x, ours.circle.x) < 0.1);
                    prop_assert!(distance(theirs.circle.y, ours.circle.y) < 0.1);
                    // This fit takes (d^2 - r^2) / 2r for the distance d - r of a point
                    // ([`scores`]); the relative difference is (d - r) / 2r.
                    let Circle { x: cx, y: cy, r } = theirs.circle;
                    let off = |(&x, &y): (&f32, &f32)| ((x - cx).hypot(y - cy) - r).abs() / (2.0 * r);
                    let most = x.iter().zip(y).map(off).fold(0.0, f32::max);
                    let allowed = ((1.0 + most).powi(2) - 1.0) * theirs.chi2 + 0.1;
                    prop_assert!(distance(theirs.chi2, ours.chi2) < allowed, "{:?} {:?}", theirs, ours);
                }
            }
        }

        #[test]
        fn any_hits_give_numbers(
            sets in prop::collection::vec(prop::collection::vec(0..POSITIONS.len(), 0..70), 0..17)
        ) {
            let place = |&pm: &usize| (POSITIONS[pm][0], POSITIONS[pm][1]);
            let events: Vec<_> = sets
                .iter()
                .map(|set| set.iter().map(place).unzip())
                .collect();
            let best = fits(&events, Simd::best());
            for fit in best.into_iter().flatten() {
                let Circle { x, y, r } = fit.circle;
                prop_assert!([x, y, r, fit.chi2].iter().all(|v| v.is_finite()));
            }
            for simd in Simd::all() {
                prop_assert_eq!(&fits(&events, simd), &best);
            }
        }
    }
}
