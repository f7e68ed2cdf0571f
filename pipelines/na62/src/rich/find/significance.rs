//! Significance of a ring: how unlikely its hits are by chance.
//!
//! The number of false alarms of the a contrario method (A. Desolneux, L. Moisan, J.-M. Morel,
//! "From Gestalt Theory to Image Analysis", Springer 2008, chapters 3 and 6). Of n hits at random
//! positions on the disk, any three define a circle, and each of the others is in its road with the
//! probability p, the road's share of the disk's area. So of C(n, 3) circles
//!
//! ```text
//! C(n, 3) P(at least k - 3 of n - 3 hits are in the road)
//! ```
//!
//! are expected to have k hits or more. The tail of the binomial distribution is replaced by its
//! bound by Chernoff and Hoeffding, exp(-N D), with N = n - 3, K = k - 3, q = K / N and D = q ln(q
//! / p) + (1 - q) ln((1 - q) / (1 - p)). The significance is minus the decimal logarithm of the
//! expected number.
//!
//! All arithmetic is defined by IEEE 754, and tables are computed with it. A library's logarithm
//! may differ between computers.

use std::f32::consts::LOG10_E;

use super::config::FinderConfig;
use crate::rich::geometry::PMS_PER_DISK;

/// Area of a disk over pi, in mm^2: the sum of its hexagonal cells, sqrt(3) / 2 of the pitch
/// squared each.
const DISK_MM2: f32 = 87_171.4;

/// Upper limit of a road's share of the disk.
const WIDEST: f32 = 0.5;

/// ln 6.
const LN_6: f32 = 1.791_759_5;

/// The bits of sqrt(1/2): the exponent above them is a power of two.
const SQRT_HALF: u32 = 0x3f35_04f3;

/// Natural logarithms of the whole numbers up to [`PMS_PER_DISK`]; 0 for zero, as in x ln x.
static LN: [f32; PMS_PER_DISK + 1] = {
    let mut table = [0.0; PMS_PER_DISK + 1];
    let mut n = 1;
    while n <= PMS_PER_DISK {
        table[n] = ln(n as f32);
        n += 1;
    }
    table
};

/// The natural logarithm of a normal positive number, accurate to about 1e-6 relative: ln m = 2
/// artanh((m - 1) / (m + 1)) for a mantissa between sqrt(1/2) and sqrt(2).
const fn ln(value: f32) -> f32 {
    let bits = value.to_bits().wrapping_sub(SQRT_HALF);
    let exponent = (bits as i32 >> 23) as f32;
    let m = f32::from_bits((bits & 0x007f_ffff) + SQRT_HALF);
    let t = (m - 1.0) / (m + 1.0);
    let t2 = t * t;
    let series = 1.0 + t2 * (1.0 / 3.0 + t2 * (1.0 / 5.0 + t2 * (1.0 / 7.0)));
    exponent * std::f32::consts::LN_2 + 2.0 * t * series
}

/// Bits of a mantissa that say its place in [`TANGENTS`].
const PLACE_BITS: u32 = 7;

/// Logarithm and slope in the middle of each interval of mantissas, which begin at sqrt(1/2).
static TANGENTS: [[f32; 2]; 1 << PLACE_BITS] = {
    let mut table = [[0.0; 2]; 1 << PLACE_BITS];
    let mut place = 0;
    while place < table.len() {
        let middle = middle(place as u32);
        table[place] = [ln(middle), 1.0 / middle];
        place += 1;
    }
    table
};

/// The middle of an interval of mantissas.
#[inline]
const fn middle(place: u32) -> f32 {
    const SHIFT: u32 = 23 - PLACE_BITS;
    f32::from_bits(SQRT_HALF + (place << SHIFT) + (1 << (SHIFT - 1)))
}

/// [`ln`] by the tangent of the interval, accurate to 1e-5: without its division and series, whose
/// operations wait for each other.
#[inline]
fn ln_by_tangent(value: f32) -> f32 {
    let bits = value.to_bits().wrapping_sub(SQRT_HALF);
    let exponent = (bits as i32 >> 23) as f32;
    let mantissa = bits & 0x007f_ffff;
    let place = mantissa >> (23 - PLACE_BITS);
    let [ln, slope] = TANGENTS[place as usize % TANGENTS.len()];
    let beyond = f32::from_bits(mantissa + SQRT_HALF) - middle(place);
    exponent * std::f32::consts::LN_2 + (ln + beyond * slope)
}

/// ln(n), for n up to [`PMS_PER_DISK`].
#[inline]
fn ln_of(n: usize) -> f32 {
    LN[n.min(PMS_PER_DISK)]
}

/// The significance of a ring of radius `r` mm with `alone` hits that no other ring has, where
/// `free` hits on the disk belong to no ring: minus the decimal logarithm of the number of such
/// rings that are expected by chance.
#[inline]
pub(super) fn significance(cfg: &FinderConfig, r: f32, alone: usize, free: usize) -> f32 {
    let n = alone + free;
    if alone < 3 {
        return f32::NEG_INFINITY;
    }
    let circles = ln_of(n) + ln_of(n - 1) + ln_of(n - 2) - LN_6;
    let (k, others) = ((alone - 3) as f32, (n - 3) as f32);
    // A road of width 2 w: its area 4 pi r w, over the disk's.
    let p = (4.0 * cfg.road_mm * r * (1.0 / DISK_MM2)).min(WIDEST);
    // Without other hits nothing is unlikely.
    if k <= others * p {
        return -circles * LOG10_E;
    }
    let inside = k * (ln_of(alone - 3) - ln_of(n - 3) - ln_by_tangent(p));
    let outside = free as f32 * (ln_of(free) - ln_of(n - 3) - ln_by_tangent(1.0 - p));
    (inside + outside - circles) * LOG10_E
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_those_of_the_library() {
        for n in 1..=PMS_PER_DISK {
            assert!((ln_of(n) - (n as f32).ln()).abs() < 3e-6, "{n}");
        }
        for value in [
            1e-6_f32, 0.07, 0.5, 0.707, 0.7072, 0.93, 1.0, 1.414, 1.415, 900.0,
        ] {
            assert!((ln(value) - value.ln()).abs() < 3e-6 * value.ln().abs().max(1.0));
        }
        for n in 1..=4000 {
            let value = n as f32 / 2000.0;
            let limit = 1e-5 + 3e-6 * value.ln().abs();
            assert!((ln_by_tangent(value) - value.ln()).abs() < limit, "{value}");
        }
    }

    /// Compared with the formula in double precision.
    #[test]
    fn the_significance_is_that_of_its_formula() {
        let cfg = FinderConfig::default();
        for (r, alone, free) in [
            (180.0, 14, 0),
            (140.0, 5, 5),
            (140.0, 7, 3),
            (190.0, 30, 200),
        ] {
            let ours = f64::from(significance(&cfg, r, alone, free));
            let (n, k) = ((alone + free) as f64, alone as f64);
            let p = f64::from(4.0 * r * 10.5) / (295.25_f64 * 295.25);
            let q = (k - 3.0) / (n - 3.0);
            let part = |a: f64, b: f64| if a > 0.0 { a * (a / b).ln() } else { 0.0 };
            let d = part(q, p) + part(1.0 - q, 1.0 - p);
            let d = if q > p { d } else { 0.0 };
            let expected = (n * (n - 1.0) * (n - 2.0) / 6.0).ln() - (n - 3.0) * d;
            let theirs = -expected / std::f64::consts::LN_10;
            assert!((ours - theirs).abs() < 2e-3, "{ours} {theirs}");
        }
    }

    #[test]
    fn more_hits_on_the_ring_are_more_and_more_beside_it_less_significant() {
        let cfg = FinderConfig::default();
        let at = |alone, free| significance(&cfg, 150.0, alone, free);
        for n in 5..30 {
            assert!(at(n + 1, 6) > at(n, 6));
            assert!(at(9, n + 1) < at(9, n));
        }
        // Five of ten stray hits are chance; five hits alone are a ring.
        assert!(at(5, 5) < 0.0 && at(5, 0) > 0.5 && at(14, 1) > 5.0);
        for (alone, free) in [(0, 0), (2, 9), (3, 0), (4, 0), (0, 976), (976, 976)] {
            assert!(!at(alone, free).is_nan());
        }
    }
}
