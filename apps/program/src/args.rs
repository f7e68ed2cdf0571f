//! Values on a command line.

use std::time::Duration;

/// Reads a duration in seconds, for clap's `value_parser`.
///
/// # Errors
/// Text that is no number, or not one above 0 and of at most 1e7 seconds, four months.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "not a number of seconds".to_owned())?;
    if seconds > 0.0 && seconds <= 1e7 {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("must be above 0, and at most 1e7".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_durations_are_taken() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for text in ["0", "-1", "nan", "inf", "1e300", "soon", ""] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
