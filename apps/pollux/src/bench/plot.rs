//! Plot of the loss curves as SVG 1.1. It consists of few shapes, so no library is used.

use std::fmt::Write;

use super::report::SizeReport;
use crate::scale::scaled;

/// Size of the picture.
const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 480.0;

/// Plot area inside the axes.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 410.0;

/// Colours that are distinguishable with any colour vision (Okabe and Ito, 2008).
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
];

/// Axis of rates: logarithmic, from one mark to another.
struct Axis {
    min: f64,
    max: f64,
}

impl Axis {
    /// The axis that contains all these rates.
    fn around(rates: impl Iterator<Item = f64>) -> Self {
        let (min, max) = rates.fold((f64::MAX, 0.0_f64), |(min, max), rate| {
            (min.min(rate), max.max(rate))
        });
        let (min, max) = if min > max { (1.0, 10.0) } else { (min, max) };
        let marks: Vec<f64> = Self::all_marks().collect();
        let below = marks.iter().rev().find(|&&mark| mark < min);
        let above = marks.iter().find(|&&mark| mark > max);
        Self {
            min: below.copied().unwrap_or(min),
            max: above.copied().unwrap_or(max),
        }
    }

    /// 1, 2 and 5 times each power of ten.
    fn all_marks() -> impl Iterator<Item = f64> {
        (-1..12).flat_map(|exponent| [1.0, 2.0, 5.0].map(|n| n * 10_f64.powi(exponent)))
    }

    /// Labelled marks: those at powers of ten alone, if there are many.
    fn marks(&self) -> impl Iterator<Item = f64> {
        let decades = (self.max / self.min).log10();
        let step = if decades > 3.0 { 3 } else { 1 };
        let marks = Self::all_marks().step_by(step);
        marks.filter(|mark| (self.min..=self.max).contains(mark))
    }

    fn x(&self, rate: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (rate / self.min).ln() / (self.max / self.min).ln()
    }
}

/// Vertical position of a share of trials.
fn y(share: f64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * share
}

/// Renders the plot: share of loss-free trials by rate, one curve for each size. A vertical line
/// marks the critical rate, and a band its uncertainty.
pub(super) fn svg(sizes: &[SizeReport]) -> String {
    let rates = sizes.iter().flat_map(|size| &size.rates);
    let axis = Axis::around(rates.map(|rate| rate.rate_pps));
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_svg(&mut out, &axis, sizes);
    out
}

fn write_svg(out: &mut String, axis: &Axis, sizes: &[SizeReport]) -> std::fmt::Result {
    writeln!(
        out,
        r#"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">
<title>Loss-free trials by rate</title>
<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>"#
    )?;
    write_axes(out, axis)?;
    for ((i, size), colour) in sizes.iter().enumerate().zip(COLOURS.iter().cycle()) {
        write_curve(out, axis, size, colour)?;
        write_legend(out, i, size, colour)?;
    }
    writeln!(out, "</svg>")
}

fn write_axes(out: &mut String, axis: &Axis) -> std::fmt::Result {
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let y = y(share);
        writeln!(
            out,
            r##"<path d="M{LEFT} {y}H{RIGHT}" stroke="#dddddd"/>
<text x="{}" y="{}" text-anchor="end">{share}</text>"##,
            LEFT - 8.0,
            y + 4.0
        )?;
    }
    for mark in axis.marks() {
        let x = axis.x(mark);
        writeln!(
            out,
            r##"<path d="M{x:.1} {TOP}V{BOTTOM}" stroke="#dddddd"/>
<text x="{x:.1}" y="{}" text-anchor="middle">{}</text>"##,
            BOTTOM + 18.0,
            scaled(mark).trim_end()
        )?;
    }
    writeln!(
        out,
        r#"<path d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}" fill="none" stroke="black"/>
<text x="{}" y="{}" text-anchor="middle">packets per second</text>
<text transform="translate(22 {}) rotate(-90)" text-anchor="middle">share of loss-free trials</text>"#,
        f64::midpoint(LEFT, RIGHT),
        BOTTOM + 42.0,
        f64::midpoint(TOP, BOTTOM)
    )
}

fn write_curve(out: &mut String, axis: &Axis, size: &SizeReport, colour: &str) -> std::fmt::Result {
    if let Some(critical) = size.critical {
        let (low, high) = (axis.x(critical.low_pps), axis.x(critical.high_pps));
        let x = axis.x(critical.pps);
        writeln!(
            out,
            r#"<rect x="{low:.1}" y="{TOP}" width="{:.1}" height="{}" fill="{colour}" opacity="0.15"/>
<path d="M{x:.1} {TOP}V{BOTTOM}" stroke="{colour}" stroke-dasharray="4 4"/>"#,
            high - low,
            BOTTOM - TOP
        )?;
    }
    let places = size
        .rates
        .iter()
        .map(|rate| (axis.x(rate.rate_pps), y(rate.share())));
    let places: Vec<(f64, f64)> = places.collect();
    let line: Vec<_> = places
        .iter()
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    writeln!(
        out,
        r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="1.5"/>"#,
        line.join(" ")
    )?;
    for (x, y) in places {
        writeln!(
            out,
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{colour}"/>"#
        )?;
    }
    Ok(())
}

fn write_legend(out: &mut String, i: usize, size: &SizeReport, colour: &str) -> std::fmt::Result {
    let y = TOP + 10.0 + 36.0 * i as f64;
    let critical = size
        .critical
        .map(|critical| format!("{}pps", scaled(critical.pps)));
    writeln!(
        out,
        r#"<rect x="{}" y="{}" width="12" height="12" fill="{colour}"/>
<text x="{}" y="{y}">{} bytes</text>
<text x="{}" y="{}" font-size="11">critical: {}</text>"#,
        RIGHT + 20.0,
        y - 11.0,
        RIGHT + 38.0,
        size.size,
        RIGHT + 38.0,
        y + 15.0,
        critical.as_deref().unwrap_or(size.critical_is)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_holds_all_rates_between_two_marks() {
        let axis = Axis::around([1500.0, 3e6].into_iter());
        assert_eq!((axis.min, axis.max), (1e3, 5e6));
        assert_eq!(axis.marks().collect::<Vec<_>>(), [1e3, 1e4, 1e5, 1e6]);
        assert!((axis.x(1e3) - LEFT).abs() < 1e-9 && (axis.x(5e6) - RIGHT).abs() < 1e-9);
        let narrow = Axis::around([1e6].into_iter());
        assert_eq!(narrow.marks().collect::<Vec<_>>(), [5e5, 1e6, 2e6]);
        assert!(Axis::around(std::iter::empty()).x(5.0).is_finite());
    }
}
