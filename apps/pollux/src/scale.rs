//! Numbers with an SI prefix for output: 250 k, 1.50 M, 10.0 G.

/// Three digits, a space and the prefix; the unit follows. Whole numbers below a thousand have no
/// decimals.
pub(crate) fn scaled(n: f64) -> String {
    // Rounded first, so that 999.7 is 1.00 k and not 1000.
    let figure = 10_f64.powf(n.abs().log10().floor() - 2.0);
    let n = if n == 0.0 {
        n
    } else {
        (n / figure).round() * figure
    };
    let (n, prefix) = match n {
        n if n < 1e3 => (n, ""),
        n if n < 1e6 => (n / 1e3, "k"),
        n if n < 1e9 => (n / 1e6, "M"),
        n => (n / 1e9, "G"),
    };
    let digits = match n {
        n if n >= 100.0 || prefix.is_empty() && n.fract() == 0.0 => 0,
        n if n >= 10.0 => 1,
        _ => 2,
    };
    format!("{n:.digits$} {prefix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_figures() {
        for (n, text) in [
            (0.0, "0 "),
            (0.35, "0.35 "),
            (1.5, "1.50 "),
            (12.34, "12.3 "),
            (50.0, "50 "),
            (999.0, "999 "),
            (999.7, "1.00 k"),
            (1500.0, "1.50 k"),
            (14_880_952.0, "14.9 M"),
            (999_999_999.0, "1.00 G"),
            (1e11, "100 G"),
        ] {
            assert_eq!(scaled(n), text);
        }
    }
}
