//! Fit of one circle to points, without a start value and without iteration over the points.
//!
//! With z = x^2 + y^2 and all coordinates relative to the centroid, every quantity below is a
//! function of six second moments, so one pass over the points suffices. Source of both fits: N.
//! Chernov, "Circular and Linear Regression" (2010), sections 5.1 (Kasa) and 5.9 (Taubin's fit by
//! Newton's method); the latter after G. Taubin, IEEE Trans. PAMI 13 (1991) 1115.

/// A circle; lengths in mm.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Circle {
    /// Centre, first coordinate.
    pub x: f32,
    /// Centre, second coordinate.
    pub y: f32,
    /// Radius.
    pub r: f32,
}

impl Circle {
    /// Mean squared distance of the points from the circle, in mm^2; 0 for no points.
    #[must_use]
    pub fn mean_square_residual(&self, xs: &[f32], ys: &[f32]) -> f32 {
        let sum: f32 = xs
            .iter()
            .zip(ys)
            .map(|(&x, &y)| {
                let (dx, dy) = (x - self.x, y - self.y);
                let d = (dx * dx + dy * dy).sqrt() - self.r;
                d * d
            })
            .sum();
        sum / xs.len().max(1) as f32
    }
}

/// The result of [`fit`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The fitted circle.
    pub circle: Circle,
    /// Mean squared distance of the points from it, in mm^2.
    pub chi2: f32,
    /// Number of points.
    pub n: usize,
}

/// Fits a circle to the points (`xs[i]`, `ys[i]`), in mm, by Taubin's method.
///
/// `None` if the points do not define a circle: fewer than three, all in one position, on a line,
/// or not finite.
#[must_use]
pub fn fit(xs: &[f32], ys: &[f32]) -> Option<Fit> {
    let circle = Moments::of(xs, ys)?.taubin()?;
    Some(Fit {
        circle,
        chi2: circle.mean_square_residual(xs, ys),
        n: xs.len().min(ys.len()),
    })
}

/// Second moments of points about their centroid, each divided by the number of points.
///
/// Double precision: the fits subtract products of fourth order in the radius, for which single
/// precision has too few digits.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    mean_x: f64,
    mean_y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
    xz: f64,
    yz: f64,
    zz: f64,
}

impl Moments {
    /// Moments of the points (`xs[i]`, `ys[i]`); `None` for fewer than three.
    #[must_use]
    #[inline]
    pub fn of(xs: &[f32], ys: &[f32]) -> Option<Self> {
        let n = xs.len().min(ys.len());
        if n < 3 {
            return None;
        }
        let (xs, ys) = (&xs[..n], &ys[..n]);
        let per = 1.0 / n as f64;
        let mean = |vs: &[f32]| vs.iter().map(|&v| f64::from(v)).sum::<f64>() * per;
        let (mean_x, mean_y) = (mean(xs), mean(ys));
        let mut m = Self {
            mean_x,
            mean_y,
            xx: 0.0,
            yy: 0.0,
            xy: 0.0,
            xz: 0.0,
            yz: 0.0,
            zz: 0.0,
        };
        for (&x, &y) in xs.iter().zip(ys) {
            let (x, y) = (f64::from(x) - mean_x, f64::from(y) - mean_y);
            let z = x * x + y * y;
            m.xx += x * x;
            m.yy += y * y;
            m.xy += x * y;
            m.xz += x * z;
            m.yz += y * z;
            m.zz += z * z;
        }
        for sum in [
            &mut m.xx, &mut m.yy, &mut m.xy, &mut m.xz, &mut m.yz, &mut m.zz,
        ] {
            *sum *= per;
        }
        Some(m)
    }

    /// Kasa's fit: the least squares of x^2 + y^2 - 2ax - 2by - c, a linear problem. Fast, but
    /// on a short arc the radius comes out too small.
    #[must_use]
    pub fn kasa(&self) -> Option<Circle> {
        self.circle(0.0)
    }

    /// Taubin's fit: Kasa's function over the mean square of its gradient, which removes most of
    /// the bias. Its minimum is the smallest root of a cubic polynomial that falls monotonically
    /// from 0 to that root, so Newton's method from 0 converges.
    #[must_use]
    #[inline]
    pub fn taubin(&self) -> Option<Circle> {
        let &Self {
            xx,
            yy,
            xy,
            xz,
            yz,
            zz,
            ..
        } = self;
        let z = xx + yy;
        let cov = xx * yy - xy * xy;
        let var_z = zz - z * z;
        let a3 = 4.0 * z;
        let a2 = -3.0 * z * z - zz;
        let a1 = var_z * z + 4.0 * cov * z - xz * xz - yz * yz;
        let a0 = xz * (xz * yy - yz * xy) + yz * (yz * xx - xz * xy) - var_z * cov;
        let mut root = 0.0f64;
        let mut last = f64::INFINITY;
        // Quadratic convergence: four or five steps if the points lie near a circle.
        for _ in 0..20 {
            let value = a0 + root * (a1 + root * (a2 + root * a3));
            if value.abs() >= last {
                break;
            }
            last = value.abs();
            let slope = a1 + root * (2.0 * a2 + 3.0 * root * a3);
            let next = root - value / slope;
            // Also false for NaN: a flat polynomial leaves the root unchanged.
            if !(next >= 0.0 && next < z) {
                break;
            }
            let step = (next - root).abs();
            root = next;
            if step <= 1e-9 * root {
                break;
            }
        }
        self.circle(root)
    }

    /// The circle for `root`; 0 gives Kasa's.
    #[inline]
    fn circle(&self, root: f64) -> Option<Circle> {
        let &Self {
            mean_x,
            mean_y,
            xx,
            yy,
            xy,
            xz,
            yz,
            ..
        } = self;
        let z = xx + yy;
        // The product of the squared half axes of the points' ellipse, relative to z^2: 1/4 on a
        // complete circle, 0 on a line or in a point.
        let det = root * root - root * z + (xx * yy - xy * xy);
        let on_a_circle = det.abs() > 1e-9 * z * z;
        if !on_a_circle {
            return None;
        }
        let half = 0.5 / det;
        let x = (xz * (yy - root) - yz * xy) * half;
        let y = (yz * (xx - root) - xz * xy) * half;
        let r = (x * x + y * y + z).sqrt();
        let circle = Circle {
            x: (x + mean_x) as f32,
            y: (y + mean_y) as f32,
            r: r as f32,
        };
        (circle.x.is_finite() && circle.y.is_finite() && circle.r.is_finite()).then_some(circle)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::f32::consts::TAU;

    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_distr::{Distribution, Normal};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    fn points(circle: Circle, angles: impl Iterator<Item = f32>) -> (Vec<f32>, Vec<f32>) {
        angles
            .map(|a| (circle.x + circle.r * a.cos(), circle.y + circle.r * a.sin()))
            .unzip()
    }

    fn close(a: Circle, b: Circle, tolerance: f32) -> bool {
        (a.x - b.x).abs() < tolerance
            && (a.y - b.y).abs() < tolerance
            && (a.r - b.r).abs() < tolerance
    }

    const RING: Circle = Circle {
        x: 31.0,
        y: -74.0,
        r: 190.0,
    };

    #[test]
    fn exact_points_give_the_exact_circle() {
        for n in 3..40usize {
            for arc in [TAU, 2.0, 0.7] {
                let (xs, ys) = points(RING, (0..n).map(|i| arc * i as f32 / n as f32));
                let fit = fit(&xs, &ys).unwrap();
                assert!(close(fit.circle, RING, 0.05), "{n} {arc} {:?}", fit.circle);
                assert!(fit.chi2 < 1e-6 && fit.n == n);
                assert!(close(
                    Moments::of(&xs, &ys).unwrap().kasa().unwrap(),
                    RING,
                    0.05
                ));
            }
        }
    }

    #[test]
    fn points_that_define_no_circle_give_none() {
        let line: Vec<f32> = (0..10).map(|i| i as f32).collect();
        let zero = [0.0; 10];
        let tilted: Vec<f32> = line.iter().map(|v| 3.0 - 2.0 * v).collect();
        for (xs, ys) in [
            (&[][..], &[][..]),
            (&line[..2], &zero[..2]),
            (&line, &zero),
            (&zero, &line),
            (&line, &tilted),
            (&zero, &zero),
            (&[f32::NAN, 1.0, 2.0], &line[..3]),
            (&[f32::INFINITY, 1.0, 2.0], &line[..3]),
            // Two positions, whatever the number of points.
            (&[1.0, 1.0, 4.0, 4.0], &[2.0, 2.0, 9.0, 9.0]),
        ] {
            assert_eq!(fit(xs, ys), None, "{xs:?} {ys:?}");
        }
    }

    proptest! {
        /// Few positions, so that points coincide and lie on lines, near zero and far from it.
        #[test]
        fn any_points_have_a_finite_circle_or_none(
            points in prop::collection::vec((0..5_i8, 0..5_i8), 0..40),
            step in prop::sample::select(vec![1e-30_f32, 1e-3, 18.0, 1e4, 1e30]),
            (x, y) in (-1e5_f32..1e5, -1e5_f32..1e5),
        ) {
            let (xs, ys): (Vec<_>, Vec<_>) = points
                .iter()
                .map(|&(i, j)| (x + step * f32::from(i), y + step * f32::from(j)))
                .unzip();
            let kasa = Moments::of(&xs, &ys).and_then(|moments| moments.kasa());
            for circle in fit(&xs, &ys).map(|fit| fit.circle).into_iter().chain(kasa) {
                prop_assert!([circle.x, circle.y, circle.r].iter().all(|v| v.is_finite()));
                prop_assert!(circle.r >= 0.0);
            }
            prop_assert!(fit(&xs, &ys).is_none_or(|fit| !fit.chi2.is_nan()));
        }
    }

    /// Points on half a ring, with the resolution of the photomultipliers.
    fn noisy(rng: &mut Xoshiro256PlusPlus, n: usize, arc: f32) -> (Vec<f32>, Vec<f32>) {
        let blur = Normal::new(0.0f32, 4.7).unwrap();
        let (mut xs, mut ys) = points(RING, (0..n).map(|_| arc * rng.random::<f32>()));
        xs.iter_mut()
            .chain(&mut ys)
            .for_each(|v| *v += blur.sample(rng));
        (xs, ys)
    }

    #[test]
    fn noisy_rings_are_fitted_without_bias_and_with_the_expected_spread() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let (trials, n) = (4000, 17);
        let (mut sum, mut square, mut chi2) = (0.0, 0.0, 0.0);
        for _ in 0..trials {
            let (xs, ys) = noisy(&mut rng, n, TAU);
            let fit = fit(&xs, &ys).unwrap();
            let error = f64::from(fit.circle.r - RING.r);
            sum += error;
            square += error * error;
            chi2 += f64::from(fit.chi2);
        }
        let trials = f64::from(trials);
        let (mean, spread) = (sum / trials, (square / trials).sqrt());
        // sigma / sqrt(n) = 1.14 mm, and slightly more for unevenly distributed angles; the radius
        // of any least-squares circle is biased by some sigma^2 / (2 r) = 0.06 mm.
        assert!(mean.abs() < 0.2, "{mean}");
        assert!((1.0..1.5).contains(&spread), "{spread}");
        // Three parameters are fitted: (n - 3) / n of the variance remains.
        let expected = 4.7 * 4.7 * (n as f64 - 3.0) / n as f64;
        assert!(
            (chi2 / trials / expected - 1.0).abs() < 0.05,
            "{}",
            chi2 / trials
        );
    }

    #[test]
    fn taubin_is_less_biased_than_kasa_on_an_arc() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let (mut taubin, mut kasa) = (0.0, 0.0);
        for _ in 0..2000 {
            let (xs, ys) = noisy(&mut rng, 20, 1.6);
            let moments = Moments::of(&xs, &ys).unwrap();
            taubin += moments.taubin().unwrap().r - RING.r;
            kasa += moments.kasa().unwrap().r - RING.r;
        }
        assert!(taubin.abs() < 0.3 * kasa.abs(), "{taubin} {kasa}");
    }

    #[test]
    fn the_fit_moves_and_turns_with_its_points() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        for _ in 0..200 {
            let (xs, ys) = noisy(&mut rng, 12, TAU);
            let fitted = fit(&xs, &ys).unwrap().circle;
            let (dx, dy) = (
                rng.random_range(-500.0..500.0f32),
                rng.random_range(-500.0..500.0f32),
            );
            let (sin, cos) = rng.random_range(0.0..TAU).sin_cos();
            let turn = |x: f32, y: f32| (cos * x - sin * y + dx, sin * x + cos * y + dy);
            let (txs, tys): (Vec<f32>, Vec<f32>) =
                xs.iter().zip(&ys).map(|(&x, &y)| turn(x, y)).unzip();
            let (x, y) = turn(fitted.x, fitted.y);
            assert!(close(
                fit(&txs, &tys).unwrap().circle,
                Circle { x, y, ..fitted },
                0.02
            ));
        }
    }
}
