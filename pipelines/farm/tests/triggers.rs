//! Sources of triggers.

#![allow(clippy::expect_used)]

use pollux_farm::time::Time;
use pollux_farm::trigger::{
    Bunches, CROSSING, CROSSINGS, FILLED, Poisson, RateError, Regular, is_filled,
};

/// Gaps between triggers, in picoseconds.
fn gaps(source: impl Iterator<Item = Time>, n: usize) -> Vec<f64> {
    let times: Vec<u64> = source.take(n + 1).map(Time::ps).collect();
    assert!(times.is_sorted());
    let gaps = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64);
    gaps.collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn regular_triggers_have_equal_gaps() {
    let mut times = Regular::new(3e6).expect("a rate");
    assert_eq!(times.next(), Some(Time::ZERO));
    assert_eq!(times.next(), Some(Time::from_ps(333_333)));
    // No error adds up.
    let mut late = Regular::new(3e6).expect("a rate").skip(3_000_000);
    assert_eq!(late.next(), Some(Time::from_ps(1_000_000_000_000)));
}

#[test]
fn gaps_of_a_poisson_process_are_exponential() {
    let gaps = gaps(Poisson::new(1e6, 1).expect("a rate"), 100_000);
    let mean = mean(&gaps);
    assert!((mean / 1e6 - 1.0).abs() < 0.02, "{mean}");
    // The standard deviation equals the mean, and exp(-2) of the gaps are above two means.
    let squares = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>();
    let deviation = (squares / gaps.len() as f64).sqrt();
    assert!((deviation / mean - 1.0).abs() < 0.02, "{deviation}");
    let long = gaps.iter().filter(|&&gap| gap > 2.0 * mean).count();
    let share = long as f64 / gaps.len() as f64;
    assert!((share - (-2.0_f64).exp()).abs() < 0.01, "{share}");
    let same = Poisson::new(1e6, 1).expect("a rate");
    let other = Poisson::new(1e6, 2).expect("a rate");
    assert!(
        same.clone()
            .take(9)
            .eq(Poisson::new(1e6, 1).expect("a rate").take(9))
    );
    assert!(!same.take(9).eq(other.take(9)));
}

/// The nominal scheme, written as a list of trains: 3 and 4 trains of 72 bunches, with 8 empty
/// crossings between trains, 38 and 39 between fills, and 119 at the end of the turn.
#[test]
fn the_filling_scheme_is_the_nominal_one() {
    let mut scheme = Vec::new();
    for batches in [[3, 3, 4], [3, 3, 4], [3, 3, 4], [3, 3, 3]] {
        for trains in batches {
            for _ in 0..trains {
                scheme.extend([true; 72]);
                scheme.extend([false; 8]);
            }
            let kicker = if trains == 4 { 31 } else { 30 };
            scheme.extend(vec![false; kicker]);
        }
    }
    scheme.extend([false; 81]);
    assert_eq!(scheme.len(), CROSSINGS as usize);
    let filled: Vec<bool> = (0..CROSSINGS).map(is_filled).collect();
    assert_eq!(filled, scheme);
    let count = filled.iter().filter(|&&filled| filled).count();
    assert_eq!(count, FILLED as usize);
    assert!(!is_filled(CROSSINGS) && !is_filled(u32::MAX));
}

#[test]
fn bunches_trigger_in_filled_crossings_at_the_rate() {
    let source = Bunches::new(1e6, 3).expect("a rate");
    let times: Vec<u64> = source.take(50_000).map(Time::ps).collect();
    for time in &times {
        assert_eq!(time % CROSSING.ps(), 0);
        assert!(is_filled(
            (time / CROSSING.ps() % u64::from(CROSSINGS)) as u32
        ));
    }
    let rate = times.len() as f64 / (times[times.len() - 1] as f64 / 1e12);
    assert!((rate / 1e6 - 1.0).abs() < 0.02, "{rate}");
}

#[test]
fn rates_that_cannot_be_are_refused() {
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let refused = Regular::new(rate).err();
        assert!(matches!(refused, Some(RateError::NotPositive(_))), "{rate}");
        assert!(Poisson::new(rate, 0).is_err() && Bunches::new(rate, 0).is_err());
    }
    // 2808 bunches at 11.245 kHz.
    let refused = Bunches::new(31.6e6, 0).err();
    assert!(matches!(refused, Some(RateError::TooHigh { .. })));
    assert!(Bunches::new(31.5e6, 0).is_ok());
    assert!(Regular::new(1e13).is_err());
}
