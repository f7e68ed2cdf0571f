#![allow(clippy::unwrap_used)]
use super::*;
use crate::config::Spill;

fn poisson() -> EmulatorConfig {
    EmulatorConfig {
        arrival: Arrival::Poisson,
        events: 0,
        ..EmulatorConfig::default()
    }
}

fn regular() -> EmulatorConfig {
    EmulatorConfig {
        arrival: Arrival::Regular,
        ..poisson()
    }
}

#[test]
fn regular_time_and_number_are_inverse() {
    let config = EmulatorConfig {
        events: 10,
        first_timestamp: 7,
        ..regular()
    };
    let ten = Timeline::of(&config);
    for n in 0..10 {
        assert_eq!(ten.event_number(ten.timestamp(n)), Some(n));
        assert_eq!(ten.event_number(ten.timestamp(n) + 1), None);
    }
    assert_eq!(ten.event_number(6), None);
    assert_eq!(ten.event_number(ten.timestamp(10)), None);
    assert_eq!(ten.time_of(9), Ns(90_000));
    let endless = Timeline::of(&regular());
    assert_eq!(
        endless.event_number(endless.timestamp(1 << 35)),
        Some(1 << 35)
    );
}

/// In order, backwards, and by jumps; and by a cursor the same as without.
#[test]
fn poisson_time_and_number_are_inverse() {
    let line = Timeline::of(&poisson());
    let mut cursor = line.cursor();
    let mut last = None;
    for n in 0..5000 {
        let moment = cursor.moment(n);
        assert!(last.is_none_or(|last| moment.timestamp > last));
        if let Some(last) = last
            && moment.timestamp > last + 1
        {
            assert_eq!(cursor.event_in_spill(0, last + 1), None);
        }
        assert_eq!(moment.time.0, (moment.timestamp - 1_000_000) * 25);
        assert_eq!(cursor.event_in_spill(0, moment.timestamp), Some(n));
        last = Some(moment.timestamp);
    }
    for n in (0..5000)
        .rev()
        .step_by(97)
        .chain([1 << 20, (1 << 36) - 1, 12345, 1 << 35])
    {
        let timestamp = line.timestamp(n);
        assert_eq!(cursor.moment(n), line.moment(n));
        assert_eq!(line.event_number(timestamp), Some(n));
        assert_eq!(cursor.event_in_spill(0, timestamp), Some(n));
    }
    assert_eq!(line.event_number(0), None);
    let few = Timeline::of(&EmulatorConfig {
        events: 10,
        ..poisson()
    });
    assert_eq!(few.event_number(few.timestamp(9)), Some(9));
    assert_eq!(few.event_number(few.timestamp(10)), None);
}

#[test]
fn seeds_have_times_of_their_own() {
    let other = EmulatorConfig {
        seed: 2,
        ..poisson()
    };
    let times = |config: &EmulatorConfig| {
        let line = Timeline::of(config);
        (0..100).map(|n| line.timestamp(n)).collect::<Vec<_>>()
    };
    assert_eq!(times(&poisson()), times(&poisson()));
    assert_ne!(times(&poisson()), times(&other));
}

/// Kolmogorov and Smirnov: the greatest distance of the distribution of gaps from the exponential
/// one, times the root of their number, is above 1.95 once in a thousand.
#[test]
fn gaps_are_exponential_behind_a_dead_slot() {
    for (seed, rate) in [(1, 10_000), (2, 10_000), (3, 2_000)] {
        let config = EmulatorConfig {
            seed,
            rate,
            ..poisson()
        };
        let (mut cursor, count) = (Timeline::of(&config).cursor(), 100_000);
        let mean = config.spacing() as f64 - 1.0;
        let mut last = cursor.moment(0).timestamp;
        let mut gaps: Vec<f64> = (1..=count)
            .map(|n| {
                let now = cursor.moment(n).timestamp;
                let gap = (now - last - 1) as f64;
                last = now;
                gap
            })
            .collect();
        let average = gaps.iter().sum::<f64>() / count as f64;
        assert!((average / mean - 1.0).abs() < 5.0 / (count as f64).sqrt());
        // Each gap is independent of the one before.
        let pairs = gaps
            .windows(2)
            .map(|pair| (pair[0] - average) * (pair[1] - average));
        let correlation = pairs.sum::<f64>() / count as f64 / (mean * mean);
        assert!(
            correlation.abs() < 5.0 / (count as f64).sqrt(),
            "{correlation}"
        );
        gaps.sort_by(f64::total_cmp);
        let distance = gaps
            .iter()
            .enumerate()
            .map(|(i, gap)| {
                // A whole number of slots is the middle of those that it stands for.
                let expected = 1.0 - (-gap / mean).exp();
                (expected - i as f64 / count as f64).abs()
            })
            .fold(0.0, f64::max);
        assert!(distance * (count as f64).sqrt() < 1.95, "{distance}");
    }
}

/// At any scale: windows of a few events, of a block, and of several blocks.
#[test]
fn counts_of_a_window_have_the_variance_of_their_mean() {
    // So slow that the dead slot is no matter.
    let config = EmulatorConfig {
        rate: 1000,
        ..poisson()
    };
    let (mut cursor, events) = (Timeline::of(&config).cursor(), 400_000);
    let times: Vec<u64> = (0..events).map(|n| cursor.moment(n).timestamp).collect();
    for mean in [4_u64, 100, 1000] {
        let window = mean * config.spacing();
        let count = (times[times.len() - 1] - 1_000_000) / window;
        let mut counts = vec![0.0; count as usize];
        for time in &times {
            if let Some(count) = counts.get_mut(((time - 1_000_000) / window) as usize) {
                *count += 1.0;
            }
        }
        let n = counts.len() as f64;
        let average = counts.iter().sum::<f64>() / n;
        let variance = counts.iter().map(|c| (c - average).powi(2)).sum::<f64>() / n;
        let off = (variance / average - 1.0) / (2.0 / n).sqrt();
        assert!(off.abs() < 5.0, "{mean}: {variance} {average}");
    }
}

#[test]
fn at_the_highest_rate_every_slot_has_an_event() {
    let config = EmulatorConfig {
        rate: 40_000_000,
        first_timestamp: 3,
        ..poisson()
    };
    let line = Timeline::of(&config);
    for n in [0, 1, 1000, 1 << 30] {
        assert_eq!(
            (line.timestamp(n), line.event_number(n + 3)),
            (n + 3, Some(n))
        );
    }
}

#[test]
fn time_stamps_begin_again_in_each_spill() {
    for arrival in [Arrival::Regular, Arrival::Poisson] {
        let config = EmulatorConfig {
            arrival,
            first_timestamp: 5,
            spill: Spill {
                length_ms: 2,
                gap_ms: 3,
                ..Spill::default()
            },
            ..poisson()
        };
        let line = Timeline::of(&config);
        let length = 2 * 40_000;
        assert_eq!(line.spill_slots(), Some(length));
        let (mut spills, mut last) = (0, Ns(0));
        for n in 0..2000 {
            let moment = line.moment(n);
            let Moment {
                spill, timestamp, ..
            } = moment;
            spills = spills.max(spill);
            assert!((5..5 + length).contains(&timestamp));
            // 2 ms with beam and 3 ms without.
            assert_eq!(
                moment.time,
                Ns(spill * 5_000_000 + (timestamp - 5) * 25),
                "{n}"
            );
            assert!(n == 0 || moment.time > last);
            last = moment.time;
            assert_eq!(line.event_in_spill(spill, timestamp), Some(n));
            assert_eq!(line.event_in_spill(spill, timestamp + length), None);
        }
        // 200 events a spill.
        assert!((8..=11).contains(&spills), "{spills}");
    }
}
