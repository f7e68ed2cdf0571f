//! Stage `peaks`: finds Bragg peaks, and vetoes images with too few of them.

use std::marker::PhantomData;

use pollux_pipelines::{Batch, Output, Stage};
use serde::{Deserialize, Serialize};

use super::env::ImagesEnv;
use super::pixel::StagePixel;
use super::work::Work;
use crate::peaks::{PeakConfig, PeakFinder, distance_from};

/// Options of the stage `peaks`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeakOptions {
    /// Row and column of the beam, in pixels; the middle of the image by default. It may be outside.
    pub beam: Option<(f64, f64)>,
    /// Images with fewer peaks are vetoed.
    pub min_peaks: usize,
    /// Criteria of a peak.
    pub criteria: PeakConfig,
}

pub(super) struct FindPeaks<P> {
    finder: PeakFinder,
    min_peaks: usize,
    pixel: PhantomData<fn(P)>,
}

impl<P> FindPeaks<P> {
    pub(super) fn new(options: &PeakOptions, env: &ImagesEnv) -> Result<Self, String> {
        let shape = env.shape;
        let middle = |side: usize| (side as f64 - 1.0) / 2.0;
        let (row, column) = options
            .beam
            .unwrap_or((middle(shape.rows), middle(shape.columns)));
        if !(row.is_finite() && column.is_finite()) {
            return Err(format!(
                "beam = [{row}, {column}]: give the row and the column, in pixels"
            ));
        }
        let most = options.criteria.max_peaks;
        if options.min_peaks > most {
            return Err(format!(
                "min_peaks is {}: at most max_peaks, which is {most}, since no more are found",
                options.min_peaks
            ));
        }
        let distance = distance_from(row, column);
        let radius = |row: usize, column: usize| match &env.mask {
            Some(mask) if mask.get(row * shape.columns + column) == Some(&true) => f64::NAN,
            _ => distance(row, column),
        };
        let finder = PeakFinder::new(shape, env.module_rows, radius, options.criteria);
        Ok(Self {
            finder: finder.map_err(|error| error.to_string())?,
            min_peaks: options.min_peaks,
            pixel: PhantomData,
        })
    }
}

impl<P: StagePixel> Stage for FindPeaks<P> {
    type In = Work<P>;
    type Out = Work<P>;

    const GATHERED: usize = 1;

    fn process(&mut self, batch: &mut Batch<Work<P>>, out: &mut impl Output<Work<P>>) {
        for mut work in batch.drain() {
            // The finder was made for the shape of these images.
            if !work.findings.vetoed
                && let Ok(peaks) = self.finder.find(work.image.pixels())
            {
                let found = peaks.list();
                work.findings.peaks.clear();
                work.findings.peaks.extend_from_slice(found);
                work.findings.more_peaks = peaks.beyond;
                work.findings.vetoed = found.len() < self.min_peaks;
            }
            out.push(work);
        }
    }
}
