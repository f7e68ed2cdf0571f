//! Line plots as SVG.

use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
/// Plot area inside the axes.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 500.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 300.0;
/// Colours that are distinguishable with any colour vision (Okabe and Ito, 2008).
const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];

/// A curve: its name, and points (x, y), with y in per cent.
pub(super) type Curve = (String, Vec<(f64, f64)>);

/// A plot of curves.
pub(super) struct Plot {
    pub(super) title: String,
    pub(super) x_axis: &'static str,
    /// Range of the x axis; by default 0 and the greatest x.
    pub(super) x: Option<[f64; 2]>,
    /// Range of the y axis in per cent.
    pub(super) y: [f64; 2],
}

impl Plot {
    /// Renders the plot.
    pub(super) fn svg(&self, curves: &[Curve]) -> String {
        let mut out = String::new();
        let most = curves.iter().flat_map(|(_, points)| points);
        let most = most.map(|&(x, _)| x).fold(1e-9, f64::max);
        let ([left, right], [low, high]) = (self.x.unwrap_or([0.0, most]), self.y);
        let place = |(x, y): (f64, f64)| {
            let share = ((y - low) / (high - low)).clamp(0.0, 1.0);
            (
                LEFT + (RIGHT - LEFT) * (x - left) / (right - left),
                BOTTOM - (BOTTOM - TOP) * share,
            )
        };
        // Writing to a string cannot fail.
        let _ = write(&mut out, &self.title, self.x_axis, self.y, curves, place);
        out
    }
}

fn write(
    out: &mut String,
    title: &str,
    x_axis: &str,
    [low, high]: [f64; 2],
    curves: &[Curve],
    place: impl Fn((f64, f64)) -> (f64, f64),
) -> std::fmt::Result {
    writeln!(
        out,
        r#"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">
<title>{title}</title>
<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>
<text x="{LEFT}" y="24" font-size="15">{title}</text>"#
    )?;
    for step in 0..=5 {
        let value = low + (high - low) * f64::from(step) / 5.0;
        let (_, y) = place((0.0, value));
        writeln!(
            out,
            r##"<path d="M{LEFT} {y:.1}H{RIGHT}" stroke="#dddddd"/><text x="{}" y="{:.1}" text-anchor="end">{value:.0} %</text>"##,
            LEFT - 8.0,
            y + 4.0
        )?;
    }
    for &(mark, _) in curves.iter().take(1).flat_map(|(_, points)| points) {
        let (x, _) = place((mark, low));
        writeln!(
            out,
            r#"<text x="{x:.1}" y="{}" text-anchor="middle">{mark}</text>"#,
            BOTTOM + 18.0
        )?;
    }
    writeln!(
        out,
        r#"<path d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}" fill="none" stroke="black"/>
<text x="{}" y="{}" text-anchor="middle">{x_axis}</text>"#,
        f64::midpoint(LEFT, RIGHT),
        BOTTOM + 42.0
    )?;
    for (i, ((name, points), colour)) in curves.iter().zip(COLOURS.iter().cycle()).enumerate() {
        let places: Vec<String> = points
            .iter()
            .map(|&point| place(point))
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let y = TOP + 12.0 + 22.0 * i as f64;
        writeln!(
            out,
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="1.5"/>
<rect x="{}" y="{}" width="12" height="12" fill="{colour}"/><text x="{}" y="{y}">{name}</text>"#,
            places.join(" "),
            RIGHT + 16.0,
            y - 11.0,
            RIGHT + 34.0
        )?;
    }
    writeln!(out, "</svg>")
}
