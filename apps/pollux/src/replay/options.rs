//! Values of the options of `pollux replay`.

use std::fmt;
use std::time::Duration;

use pollux_app::time_up_to;
use pollux_faults::{Behind, BottleneckOptions};
use pollux_pmd::mempool::time::Ns;

/// Replay speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Speed {
    /// As fast as the port accepts frames.
    Max,
    /// Multiple of the recorded speed.
    Times(f64),
}

impl Speed {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        match text.parse() {
            Ok(times) if (1e-6..=1e6).contains(&times) => Ok(Self::Times(times)),
            _ => Err("write max, or a factor from 1e-6 to 1e6".into()),
        }
    }

    /// Due time of a frame that was recorded this long after the first.
    pub(super) fn scale(self, recorded: Ns) -> Ns {
        match self {
            // The time stamps stay those of the recording.
            Self::Max | Self::Times(1.0) => recorded,
            Self::Times(times) => Ns((recorded.0 as f64 / times) as u64),
        }
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Max => f.write_str("max"),
            Self::Times(times) => times.fmt(f),
        }
    }
}

/// A probability.
pub(super) fn probability(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(p) if (0.0..=1.0).contains(&p) => Ok(p),
        _ => Err("must be a probability, 0 to 1".into()),
    }
}

/// A bottleneck: `MBIT:MARK:CAPACITY`.
pub(super) fn bottleneck(text: &str) -> Result<BottleneckOptions, String> {
    let fields: Vec<_> = text.split(':').collect();
    let options = match fields[..] {
        [rate, mark_above, capacity] => (|| {
            Some(BottleneckOptions {
                rate: rate.parse::<f64>().ok()? * 1e6,
                mark_above: mark_above.parse().ok()?,
                capacity: capacity.parse().ok()?,
            })
        })(),
        _ => None,
    };
    let options = options
        .ok_or("write the rate in Mbit/s and two numbers of bytes, as in 1000:100000:400000")?;
    options.check().map_err(|error| error.to_string())?;
    Ok(options)
}

/// Probability of reordering, and its distance in frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reorder {
    pub(super) probability: f64,
    pub(super) behind: Behind,
}

impl Reorder {
    /// Parses `P` or `P:DISTANCE`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (p, distance) = text.split_once(':').unwrap_or((text, "1"));
        let distance = distance.parse().ok().filter(|&n| n > 0);
        Ok(Self {
            probability: probability(p)?,
            behind: Behind::Frames(distance.ok_or("the distance must be a number above 0")?),
        })
    }
}

/// Delay range, and probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Delay {
    pub(super) by: (Ns, Ns),
    /// `None`: all frames without another fault.
    pub(super) probability: Option<f64>,
}

impl Delay {
    /// Parses `TIME` or `MIN-MAX`, each with an optional `:P`. A unit behind MAX alone applies to
    /// both; without a unit, times are seconds.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (range, p) = match text.split_once(':') {
            Some((range, p)) => (range, Some(probability(p)?)),
            None => (text, None),
        };
        let (min, max) = range.split_once('-').unwrap_or((range, range));
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let unit = max.trim_start_matches(is_number);
        let min = match min.trim_start_matches(is_number) {
            "" => &format!("{min}{unit}"),
            _ => min,
        };
        Ok(Self {
            by: (time(min)?, time(max)?),
            probability: p,
        })
    }
}

fn time(text: &str) -> Result<Ns, String> {
    const LONGEST: Duration = Duration::from_hours(1);
    time_up_to(text, LONGEST).map(|time| Ns(time.as_nanos() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        assert_eq!(Speed::parse("2.5"), Ok(Speed::Times(2.5)));
        assert_eq!(Speed::Times(2.0).scale(Ns(1000)), Ns(500));
        let reorder = |probability, n| Reorder {
            probability,
            behind: Behind::Frames(n),
        };
        assert_eq!(Reorder::parse("0.1"), Ok(reorder(0.1, 1)));
        assert_eq!(Reorder::parse("1:40"), Ok(reorder(1.0, 40)));
        let delay = |min, max, probability| Delay {
            by: (Ns(min), Ns(max)),
            probability,
        };
        assert_eq!(Delay::parse("300us"), Ok(delay(300_000, 300_000, None)));
        let one_unit = delay(300_000, 2_000_000, Some(0.01));
        assert_eq!(Delay::parse("0.3-2ms:0.01"), Ok(one_unit));
        assert_eq!(
            Delay::parse("1-3s"),
            Ok(delay(1_000_000_000, 3_000_000_000, None))
        );
        // The syntax of all times.
        let second = 1_000_000_000;
        assert_eq!(Delay::parse("1-2"), Ok(delay(second, 2 * second, None)));
        assert_eq!(
            Delay::parse("1h"),
            Ok(delay(3600 * second, 3600 * second, None))
        );
        assert_eq!(Delay::parse("0-2ms"), Ok(delay(0, 2_000_000, None)));
        let some = delay(500, 2_000_000, Some(0.25));
        assert_eq!(Delay::parse("500ns-2ms:0.25"), Ok(some));
        for text in ["0", "-1", "fast", "inf", "nan", ""] {
            assert!(Speed::parse(text).is_err(), "{text}");
        }
        for text in ["2", "0.1:0", "0.1:", "x:1", ":1"] {
            assert!(Reorder::parse(text).is_err(), "{text}");
        }
        for text in [
            "5ms-",
            "-5ms",
            "1ms-2ms:2",
            "4000s",
            "1ms:",
            "",
            "-2ms",
            "1--2ms",
            "1.2.3-4ms",
        ] {
            assert!(Delay::parse(text).is_err(), "{text}");
        }
    }
}
