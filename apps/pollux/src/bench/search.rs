//! Search for the critical rate: selects the next rate and estimates the critical rate, as a pure
//! function of the outcomes of trials.
//!
//! A trial at rate r is assumed to be loss-free with probability 1 / (1 + (r / c)^(1 / w)): close
//! to 1 far below the critical rate c, one half at c, close to 0 far above it; w is the width of
//! the range between. Both are unknown, so each pair of them is given the probability that follows
//! from the trials so far (Bayes' rule), and the next rate is the median of c. For a port without
//! random losses this is bisection by ratio. With random losses no single trial misleads it, and
//! the result has an uncertainty.

/// Number of candidate widths.
const WIDTHS: usize = 8;

/// Greatest width, as a logarithm: more than a factor between the rates of a quarter and three
/// quarters.
const WIDEST: f64 = 0.5;

/// Candidates for the critical rate in each tolerance.
const FINENESS: f64 = 8.0;

/// Assumed share of trials that are independent of their rate, since the machine disturbed them.
const ASTRAY: f64 = 0.02;

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Critical {
    /// No trial was made.
    Unknown,
    /// The machine disturbed every trial at a rate, so the search cannot go on.
    Disturbed,
    /// Not above the lowest rate.
    BelowMin,
    /// Not below the highest rate.
    AboveMax,
    /// In the range: the median and the bounds of the 95 % interval.
    Within { rate: f64, low: f64, high: f64 },
}

/// A search for one critical rate.
pub(super) struct Search {
    min: f64,
    max: f64,
    tolerance: f64,
    /// Logarithms of the candidates' ratios to `min`, evenly spaced.
    step: f64,
    /// Logarithm of the probability of each candidate and width, up to a constant.
    beliefs: Vec<[f64; WIDTHS]>,
    widths: [f64; WIDTHS],
    /// Whether at least half of the trials were loss-free at the highest and at the lowest rate.
    top: Option<bool>,
    bottom: Option<bool>,
    rounds: usize,
}

impl Search {
    /// A search between two rates, to a relative tolerance.
    pub(super) fn new(min: f64, max: f64, tolerance: f64) -> Self {
        let step = tolerance / FINENESS;
        let candidates = ((max / min).ln() / step).ceil() as usize + 1;
        // From a width below the tolerance up to the greatest.
        let width = |i| step * (WIDEST / step).powf(i as f64 / (WIDTHS - 1) as f64);
        Self {
            min,
            max,
            tolerance,
            step,
            beliefs: vec![[0.0; WIDTHS]; candidates],
            widths: std::array::from_fn(width),
            top: None,
            bottom: None,
            rounds: 0,
        }
    }

    /// The rate to try next. `None` if the critical rate is known to the tolerance, lies outside
    /// the range, or cannot be found with a reasonable number of trials.
    pub(super) fn next(&self) -> Option<f64> {
        match (self.top, self.bottom) {
            (None, _) => return Some(self.max),
            (Some(true), _) | (_, Some(false)) => return None,
            (_, None) => return Some(self.min),
            (Some(false), Some(true)) => {}
        }
        let [low, median, high] = self.quantiles([0.025, 0.5, 0.975]);
        let known = high / low <= 1.0 + self.tolerance;
        (!known && self.rounds < self.most()).then_some(median)
    }

    /// Adds the outcomes of trials at a rate.
    pub(super) fn observe(&mut self, rate: f64, trials: u32, loss_free: u32) {
        let at = (rate / self.min).ln();
        for (i, beliefs) in self.beliefs.iter_mut().enumerate() {
            for (belief, width) in beliefs.iter_mut().zip(self.widths) {
                let fair = 1.0 / (1.0 + ((at - i as f64 * self.step) / width).exp());
                let chance = ASTRAY / 2.0 + (1.0 - ASTRAY) * fair;
                *belief += f64::from(loss_free) * chance.ln()
                    + f64::from(trials - loss_free) * (1.0 - chance).ln();
            }
        }
        let passed = 2 * loss_free >= trials;
        if rate >= self.max {
            self.top.get_or_insert(passed);
        } else if rate <= self.min {
            self.bottom.get_or_insert(passed);
        }
        self.rounds += 1;
    }

    /// The current estimate.
    pub(super) fn critical(&self) -> Critical {
        if self.rounds == 0 {
            return Critical::Unknown;
        }
        if self.top == Some(true) {
            return Critical::AboveMax;
        }
        if self.bottom == Some(false) {
            return Critical::BelowMin;
        }
        let [low, rate, high] = self.quantiles([0.025, 0.5, 0.975]);
        Critical::Within { rate, low, high }
    }

    /// Limit on rounds: twice those of a bisection.
    fn most(&self) -> usize {
        let parts = (self.max / self.min).ln() / self.tolerance;
        2 + 2 * parts.log2().ceil().max(1.0) as usize
    }

    /// Candidates at these cumulative probabilities, which ascend.
    fn quantiles<const N: usize>(&self, probabilities: [f64; N]) -> [f64; N] {
        let all = self.beliefs.iter().flatten();
        let best = all.copied().fold(f64::NEG_INFINITY, f64::max);
        let weight = |beliefs: &[f64; WIDTHS]| -> f64 {
            beliefs.iter().map(|belief| (belief - best).exp()).sum()
        };
        let weights: Vec<f64> = self.beliefs.iter().map(weight).collect();
        let total: f64 = weights.iter().sum();
        probabilities.map(|probability| {
            let mut below = 0.0;
            let found = weights.iter().position(|weight| {
                below += weight;
                below >= probability * total
            });
            let i = found.unwrap_or(weights.len() - 1);
            (self.min * (i as f64 * self.step).exp()).min(self.max)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use super::*;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// Runs a search on a simulated port; `is_free` decides whether a trial at a rate is loss-free.
    fn searched(
        (min, max): (f64, f64),
        tolerance: f64,
        trials: u32,
        mut port: impl FnMut(f64) -> bool,
    ) -> Search {
        let mut search = Search::new(min, max, tolerance);
        while let Some(rate) = search.next() {
            assert!((min..=max).contains(&rate));
            let loss_free = (0..trials).filter(|_| port(rate)).count();
            search.observe(rate, trials, loss_free as u32);
            assert!(search.rounds <= search.most());
        }
        search
    }

    /// A port with random losses: loss-free with probability one half at its critical rate.
    fn noisy(critical: f64, width: f64, seed: u64) -> impl FnMut(f64) -> bool {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        move |rate| rng.random_bool(1.0 / (1.0 + (rate / critical).powf(1.0 / width)))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_sharp_critical_rate_is_found_to_the_tolerance(
            min in 1.0..1e5_f64,
            decades in 0.5..5.0_f64,
            place in 0.01..0.99_f64,
            tolerance in 0.005..0.2_f64,
            trials in 1..20_u32,
        ) {
            let max = min * 10_f64.powf(decades);
            let true_rate = min * (max / min).powf(place);
            let search = searched((min, max), tolerance, trials, |rate| rate <= true_rate);
            let Critical::Within { rate, low, high } = search.critical() else {
                panic!("{:?}", search.critical());
            };
            // A single trial may be an outlier, so few trials for each rate need more rates.
            if trials >= 3 {
                prop_assert!(high / low <= 1.0 + tolerance, "{low} {high} {true_rate}");
            }
            let slack = 1.0 + 1.5 * tolerance;
            prop_assert!(low / slack <= true_rate && true_rate <= high * slack);
            prop_assert!((low..=high).contains(&rate));
        }
    }

    #[test]
    fn a_noisy_critical_rate_is_found_with_its_uncertainty() {
        let (mut covered, mut runs) = (0, 0);
        for width in [0.002, 0.01, 0.05, 0.2] {
            for seed in 0..12 {
                let critical = 1e4 * 300_f64.powf(seed as f64 / 12.0);
                let search = searched((1e3, 1e7), 0.02, 8, noisy(critical, width, seed));
                let Critical::Within { rate, low, high } = search.critical() else {
                    panic!("{:?}", search.critical());
                };
                let off = (rate / critical).ln().abs();
                assert!(off <= 0.02 + 3.0 * width, "{critical} {width}: {rate}");
                covered += u32::from((low..=high).contains(&critical));
                runs += 1;
            }
        }
        // 95 % intervals. Trials are few and not independent of each other, so the coverage is
        // slightly lower.
        assert!(covered * 100 >= runs * 85, "{covered} of {runs}");
    }

    #[test]
    fn a_trial_that_goes_astray_does_not_mislead() {
        for astray in 0..12 {
            let mut n = 0;
            let search = searched((1e3, 1e7), 0.01, 5, |rate| {
                n += 1;
                (rate <= 123_456.0) != (n == 5 * astray + 1)
            });
            let Critical::Within { rate, .. } = search.critical() else {
                panic!("{:?}", search.critical());
            };
            assert!((rate / 123_456.0).ln().abs() < 0.02, "{astray}: {rate}");
        }
    }

    #[test]
    fn what_is_out_of_range_is_known_at_once() {
        let search = searched((10.0, 1e6), 0.01, 4, |_| true);
        assert_eq!(search.critical(), Critical::AboveMax);
        assert_eq!(search.rounds, 1);
        let search = searched((10.0, 1e6), 0.01, 4, |_| false);
        assert_eq!(search.critical(), Critical::BelowMin);
        assert_eq!(search.rounds, 2);
        let search = Search::new(10.0, 1e6, 0.01);
        assert_eq!(search.critical(), Critical::Unknown);
    }

    #[test]
    fn a_search_that_is_cut_short_knows_its_range() {
        let mut search = Search::new(1e3, 1e6, 0.01);
        search.observe(1e6, 5, 0);
        let Critical::Within { low, high, .. } = search.critical() else {
            panic!("{:?}", search.critical());
        };
        assert!(low < 2e3 && high > 5e5 && high <= 1e6);
    }
}
