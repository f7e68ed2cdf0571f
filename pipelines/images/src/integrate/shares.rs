//! Shares of a pixel in the bins of a curve.

use std::f64::consts::{PI, TAU};

/// Bins of equal width, in the unit that positions are in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bins {
    low: f64,
    width: f64,
    number: usize,
}

impl Bins {
    /// `None` if the width is not a positive number.
    pub(super) fn new(low: f64, high: f64, number: usize) -> Option<Self> {
        // As in pyFAI, the last value belongs to the last bin: the range ends one step of single
        // precision further.
        let step = 1.0 + f64::from(f32::EPSILON);
        let high = if high > 0.0 { high * step } else { high / step };
        let width = (high - low) / number as f64;
        (width > 0.0 && width.is_finite()).then_some(Self { low, width, number })
    }

    /// Middle of a bin.
    pub(super) fn centre(&self, bin: usize) -> f64 {
        self.low + (bin as f64 + 0.5) * self.width
    }

    /// Position in units of bins.
    fn position(&self, value: f64) -> f64 {
        (value - self.low) / self.width
    }

    /// The bin that a value is in.
    pub(super) fn bin(&self, value: f64) -> Option<usize> {
        let position = self.position(value);
        (position >= 0.0 && position < self.number as f64).then_some(position as usize)
    }
}

/// A corner of a pixel: radial coordinate and azimuth, in single precision as in pyFAI.
pub(super) type Corner = [f32; 2];

/// Computes shares of pixels by their area.
pub(super) struct Splitter {
    bins: Bins,
    /// Area in each bin, zero between pixels. pyFAI has single precision here.
    areas: Vec<f32>,
}

impl Splitter {
    pub(super) fn new(bins: Bins) -> Self {
        Self {
            bins,
            areas: vec![0.0; bins.number],
        }
    }

    /// Passes the bins that a quadrilateral covers, and the part of its area that is in each of
    /// them, relative to that in all bins. Corners follow each other around it.
    pub(super) fn split(&mut self, corners: [Corner; 4], mut share: impl FnMut(usize, f32)) {
        let corners = across_discontinuity(corners.map(|corner| corner.map(f64::from)));
        let corners = corners.map(|[radial, azimuth]| [self.bins.position(radial), azimuth]);
        let radial = corners.map(|[radial, _]| radial);
        let first = radial.into_iter().fold(f64::INFINITY, f64::min).floor();
        let last = radial.into_iter().fold(f64::NEG_INFINITY, f64::max);
        if last < 0.0 || first >= self.bins.number as f64 {
            return;
        }
        let end = (last as usize + 1).min(self.bins.number);
        if first >= last.floor() {
            share(first as usize, 1.0);
            return;
        }
        let first = first.max(0.0) as usize;
        for side in 0..4 {
            self.add_area(corners[side], corners[(side + 1) % 4]);
        }
        let areas = &mut self.areas[first..end];
        let all: f64 = areas.iter().copied().map(f64::from).sum();
        let per_area = 1.0 / all;
        for (bin, area) in (first..).zip(areas) {
            let part = (f64::from(*area) * per_area) as f32;
            *area = 0.0;
            if part != 0.0 && part.is_finite() {
                share(bin, part);
            }
        }
    }

    /// Adds the area between a side and azimuth 0 to each bin that the side crosses; it is negative
    /// if the side goes towards lower bins. The sum over all sides is the area that they enclose.
    fn add_area(&mut self, [from, from_azimuth]: Corner64, [to, to_azimuth]: Corner64) {
        let length = to - from;
        if length.abs() <= 0.0 {
            return;
        }
        let slope = (to_azimuth - from_azimuth) / length;
        let intercept = from_azimuth - slope * from;
        let (left, right) = (from.min(to), from.max(to));
        let first = left.floor().max(0.0) as usize;
        let end = (right.floor() + 1.0).clamp(0.0, self.bins.number as f64) as usize;
        for bin in first..end {
            let (start, stop) = (left.max(bin as f64), right.min((bin + 1) as f64));
            let area = (stop - start) * (0.5 * slope * (stop + start) + intercept);
            let area = if to < from { -area } else { area };
            self.areas[bin] = (f64::from(self.areas[bin]) + area) as f32;
        }
    }
}

type Corner64 = [f64; 2];

/// Moves a pixel that crosses the discontinuity of the azimuth, at 180 degrees, to one side of it.
///
/// It is recognised, as in pyFAI, by the sign of an area: half the product of the diagonals'
/// first and second components less that of their second and first. Other pixels have a negative one.
fn across_discontinuity([a, b, c, d]: [Corner64; 4]) -> [Corner64; 4] {
    let area = 0.5 * ((c[0] - a[0]) * (d[1] - b[1])) - (c[1] - a[1]) * (d[0] - b[0]);
    if area <= 0.0 {
        return [a, b, c, d];
    }
    let positive = [a, b, c, d].map(|[radial, azimuth]| {
        let turn = if azimuth < 0.0 { TAU } else { 0.0 };
        [radial, azimuth + turn]
    });
    let [a, b, c, d] = positive.map(|[_, azimuth]| azimuth);
    let centre = 0.25 * (a + b + c + d);
    let turn = if centre > PI { TAU } else { 0.0 };
    positive.map(|[radial, azimuth]| [radial, azimuth - turn])
}
