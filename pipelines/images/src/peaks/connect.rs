//! Candidates that touch, and the measures of the peak that they are.

use pollux_pipelines::simd::LANES;

use super::background::{Background, Sums};
use super::candidates::Candidates;
use super::config::{MIN_SAMPLES, PeakConfig};
use super::peak::{Peak, Peaks};
use super::rings::Rings;
use crate::{Pixel, Shape};

/// Indices of a pixel.
type Place = (u16, u16);

/// Connects candidates and measures peaks: steps 5 to 7 of the [method](super).
#[derive(Debug)]
pub(super) struct Connect {
    columns: usize,
    module_rows: usize,
    config: PeakConfig,
    /// Pixels of a group of candidates. Each candidate of an image is in one group, so that the
    /// number of pixels is enough.
    pixels: Vec<Place>,
    /// Distances of the pixels of the local background from the maximum: rows and columns.
    annulus: Vec<(isize, isize)>,
}

/// An image, and the background of its pixels.
#[derive(Clone, Copy)]
struct View<'a, P> {
    image: &'a [P],
    columns: usize,
    rings: &'a Rings,
    background: &'a Background,
}

impl<P: Pixel> View<'_, P> {
    /// Value of a pixel, and its ring.
    #[inline(always)]
    fn at(&self, row: usize, column: usize) -> Option<(f32, u16)> {
        let pixel = row * self.columns + column;
        Some((
            self.image.get(pixel)?.photons(),
            *self.rings.of_pixel().get(pixel)?,
        ))
    }
}

/// Sums over the pixels of a group.
#[derive(Default)]
struct Group {
    pixels: u32,
    saturated: u32,
    sum: f64,
    /// Sum of the excess over the background of the ring, and of its products with row and column.
    weight: f64,
    rows: f64,
    columns: f64,
    maximum: f64,
    at: Place,
    ring: u16,
}

impl Connect {
    pub(super) fn new(shape: Shape, module_rows: usize, config: &PeakConfig) -> Self {
        let reach = isize::from(config.local_outer.cast_signed());
        let (inner, outer) = (i32::from(config.local_inner), i32::from(config.local_outer));
        let places = (-reach..=reach).flat_map(|row| (-reach..=reach).map(move |c| (row, c)));
        let annulus = places.filter(|&(row, column)| {
            let squared = (row * row + column * column) as i32;
            inner * inner < squared && squared <= outer * outer
        });
        Self {
            columns: shape.columns,
            module_rows,
            config: *config,
            pixels: vec![(0, 0); shape.pixels()],
            annulus: annulus.collect(),
        }
    }

    /// Finds the peaks among the candidates, which are used up.
    pub(super) fn run<P: Pixel>(
        &mut self,
        image: &[P],
        rings: &Rings,
        background: &Background,
        candidates: &mut Candidates,
        peaks: &mut Peaks,
    ) {
        let view = View {
            image,
            columns: self.columns,
            rings,
            background,
        };
        peaks.clear();
        for n in 0..candidates.groups() {
            while let Some((group, place)) = candidates.take_first(n) {
                let row = group / candidates.groups_per_row;
                let column = group % candidates.groups_per_row * LANES + place;
                let group = self.connect(&view, (row as u16, column as u16), candidates);
                peaks.candidates += group.pixels;
                if group.pixels < self.config.min_pixels {
                    peaks.small += 1;
                } else if group.pixels > self.config.max_pixels {
                    peaks.large += 1;
                } else if let Some(peak) = self.measure(&view, &group) {
                    peaks.add(peak);
                } else {
                    peaks.weak += 1;
                }
            }
        }
    }

    /// Rows of the module that a row is in: the first, and that after the last.
    #[inline(always)]
    fn module(&self, row: usize) -> (usize, usize) {
        let first = row - row % self.module_rows;
        (first, first + self.module_rows)
    }

    /// Takes all candidates that are connected to the one at `first`.
    #[inline]
    fn connect<P: Pixel>(
        &mut self,
        view: &View<'_, P>,
        first: Place,
        candidates: &mut Candidates,
    ) -> Group {
        let (top, bottom) = self.module(first.0.into());
        let mut group = Group::default();
        let (mut done, mut found) = (0, self.note(0, first));
        while done < found {
            let Some(&(row, column)) = self.pixels.get(done) else {
                break;
            };
            done += 1;
            group.add(view, (row, column), self.config.saturation);
            let (row, column) = (usize::from(row), usize::from(column));
            for r in row.saturating_sub(1).max(top)..(row + 2).min(bottom) {
                for c in column.saturating_sub(1)..(column + 2).min(self.columns) {
                    if candidates.take(r, c) {
                        found = self.note(found, (r as u16, c as u16));
                    }
                }
            }
        }
        group
    }

    /// Adds a pixel to the `found` pixels of a group; returns their number.
    #[inline(always)]
    fn note(&mut self, found: usize, place: Place) -> usize {
        match self.pixels.get_mut(found) {
            Some(pixel) => {
                *pixel = place;
                found + 1
            }
            None => found,
        }
    }

    /// The peak that a group is; `None` if it is not significant.
    #[inline]
    fn measure<P: Pixel>(&self, view: &View<'_, P>, group: &Group) -> Option<Peak> {
        let (background, sigma) = self.local_background(view, group);
        let n = f64::from(group.pixels);
        let intensity = group.sum - n * background;
        let snr = intensity / (sigma * n.sqrt());
        // The weight is 0 where the noise is lost in the rounding of a threshold.
        (snr >= self.config.min_snr && group.weight > 0.0).then(|| Peak {
            row: (group.rows / group.weight) as f32,
            column: (group.columns / group.weight) as f32,
            intensity: intensity as f32,
            background: background as f32,
            sigma: sigma as f32,
            snr: snr as f32,
            maximum: group.maximum as f32,
            pixels: group.pixels,
            saturated: group.saturated,
            module: (usize::from(group.at.0) / self.module_rows) as u16,
        })
    }

    /// Mean and standard deviation around the maximum of a group.
    #[inline]
    fn local_background<P: Pixel>(&self, view: &View<'_, P>, group: &Group) -> (f64, f64) {
        let (row, column) = (usize::from(group.at.0), usize::from(group.at.1));
        let (top, bottom) = self.module(row);
        let mut sums = Sums::default();
        for &(rows, columns) in &self.annulus {
            let (row, column) = (
                row.wrapping_add_signed(rows),
                column.wrapping_add_signed(columns),
            );
            // Below 0 is far above the end.
            if !(top..bottom).contains(&row) || column >= self.columns {
                continue;
            }
            if let Some((value, ring)) = view.at(row, column)
                && value < view.background.of(ring).threshold
            {
                sums.add(value);
            }
        }
        if sums.n >= MIN_SAMPLES {
            return sums.moments(self.config.noise);
        }
        let ring = view.background.of(group.ring);
        (ring.mean, ring.sigma)
    }
}

impl Group {
    /// Adds a pixel.
    #[inline(always)]
    fn add<P: Pixel>(&mut self, view: &View<'_, P>, place: Place, saturation: f64) {
        let (row, column) = (usize::from(place.0), usize::from(place.1));
        let Some((value, ring)) = view.at(row, column) else {
            return;
        };
        let background = view.background.of(ring);
        let is_saturated = !value.is_finite();
        let value = if is_saturated {
            saturation.max(background.threshold.into())
        } else {
            value.into()
        };
        let excess = value - background.mean;
        self.pixels += 1;
        self.saturated += u32::from(is_saturated);
        self.sum += value;
        self.weight += excess;
        self.rows += excess * f64::from(place.0);
        self.columns += excess * f64::from(place.1);
        let is_first = value >= self.maximum && place < self.at;
        if self.pixels == 1 || value > self.maximum || is_first {
            (self.maximum, self.at, self.ring) = (value, place, ring);
        }
    }
}
