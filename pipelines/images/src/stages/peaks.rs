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
    /// Row and column of the beam from the first pixel of each module, instead of `beam`: for modules
    /// that are one below the other in the image and elsewhere in the detector.
    pub module_beams: Vec<(f64, f64)>,
    /// Images with fewer peaks are vetoed.
    pub min_peaks: usize,
    /// Criteria of a peak.
    pub criteria: PeakConfig,
}

/// Where the beam is.
struct Beams {
    /// Rows of the parts of the image that have a beam of their own.
    rows: usize,
    of_parts: Vec<(f64, f64)>,
}

impl Beams {
    fn new(options: &PeakOptions, env: &ImagesEnv) -> Result<Self, String> {
        let PeakOptions {
            beam, module_beams, ..
        } = options;
        let shape = env.shape;
        let middle = |side: usize| (side as f64 - 1.0) / 2.0;
        let modules = shape.rows / env.module_rows.max(1);
        let beams = if module_beams.is_empty() {
            Self {
                rows: shape.rows,
                of_parts: vec![beam.unwrap_or((middle(shape.rows), middle(shape.columns)))],
            }
        } else if beam.is_some() {
            return Err("beam and module_beams: give one of them".into());
        } else if module_beams.len() == modules {
            Self {
                rows: env.module_rows,
                of_parts: module_beams.clone(),
            }
        } else {
            return Err(format!(
                "module_beams has {} positions for {modules} modules: give one for each",
                module_beams.len()
            ));
        };
        let wrong = |&&(row, column): &&(f64, f64)| !(row.is_finite() && column.is_finite());
        if let Some((row, column)) = beams.of_parts.iter().find(wrong) {
            return Err(format!(
                "beam [{row}, {column}]: give the row and the column, in pixels"
            ));
        }
        Ok(beams)
    }

    /// Distance of a pixel from the beam.
    fn distance(&self, row: usize, column: usize) -> f64 {
        let part = self.of_parts.get(row / self.rows);
        part.map_or(f64::NAN, |&(of_row, of_column)| {
            distance_from(of_row, of_column)(row % self.rows, column)
        })
    }
}

pub(super) struct FindPeaks<P> {
    finder: PeakFinder,
    min_peaks: usize,
    pixel: PhantomData<fn(P)>,
}

impl<P> FindPeaks<P> {
    pub(super) fn new(options: &PeakOptions, env: &ImagesEnv) -> Result<Self, String> {
        let shape = env.shape;
        let beams = Beams::new(options, env)?;
        let most = options.criteria.max_peaks;
        if options.min_peaks > most {
            return Err(format!(
                "min_peaks is {}: at most max_peaks, which is {most}, since no more are found",
                options.min_peaks
            ));
        }
        let radius = |row: usize, column: usize| match &env.mask {
            Some(mask) if mask.get(row * shape.columns + column) == Some(&true) => f64::NAN,
            _ => beams.distance(row, column),
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Shape;
    use crate::peaks::Peak;

    const MODULE: Shape = Shape {
        rows: 64,
        columns: 128,
    };
    /// The beam of both modules.
    const BEAM: (f64, f64) = (-20.0, 50.0);

    /// Pixels of a module: a steep background around the beam, and peaks.
    fn module() -> Vec<i16> {
        let distance = distance_from(BEAM.0, BEAM.1);
        let pixels = (0..MODULE.pixels()).map(|pixel| {
            let (row, column) = (pixel / MODULE.columns, pixel % MODULE.columns);
            let ring = 4000.0 / (1.0 + distance(row, column).floor());
            let noise = ((pixel * 7919) >> 3) % 3;
            let peak = if row % 20 / 2 == 5 && column % 30 / 2 == 7 {
                300
            } else {
                0
            };
            ring as i16 + noise as i16 + peak
        });
        pixels.collect()
    }

    fn find(options: &PeakOptions, image: &[i16]) -> Vec<Peak> {
        let shape = Shape {
            rows: image.len() / MODULE.columns,
            ..MODULE
        };
        let env = ImagesEnv::new(shape, MODULE.rows);
        let mut stage = FindPeaks::<i16>::new(options, &env).unwrap();
        stage.finder.find(image).unwrap().list().to_vec()
    }

    /// Two copies of a module, one below the other: each has the peaks that it has alone.
    #[test]
    fn each_module_has_a_beam_of_its_own() {
        let module = module();
        let beam = |beam, module_beams| PeakOptions {
            beam,
            module_beams,
            ..PeakOptions::default()
        };
        let alone = find(&beam(Some(BEAM), Vec::new()), &module);
        assert!(alone.len() > 5, "{}", alone.len());
        let both = find(&beam(None, vec![BEAM; 2]), &[&module[..], &module].concat());
        assert_eq!(both.len(), 2 * alone.len());
        for (n, peak) in both.iter().enumerate() {
            let (of, shift) = (&alone[n % alone.len()], n / alone.len());
            let rows = (shift * MODULE.rows) as f32;
            assert_eq!(usize::from(peak.module), shift);
            assert!((peak.row - rows - of.row).abs() < 0.01, "{peak:?} {of:?}");
            assert!((peak.column - of.column).abs() < 0.01 && peak.pixels == of.pixels);
        }
    }

    #[test]
    fn beams_that_do_not_fit_are_refused() {
        let env = ImagesEnv::new(
            Shape {
                rows: 128,
                ..MODULE
            },
            MODULE.rows,
        );
        let cases = [
            (Some(BEAM), vec![BEAM; 2], "give one of them"),
            (None, vec![BEAM; 3], "3 positions for 2 modules"),
            (None, vec![BEAM, (0.0, f64::NAN)], "beam [0, NaN]"),
            (Some((f64::INFINITY, 0.0)), Vec::new(), "beam [inf, 0]"),
        ];
        for (beam, module_beams, expected) in cases {
            let options = PeakOptions {
                beam,
                module_beams,
                ..PeakOptions::default()
            };
            let error = FindPeaks::<i16>::new(&options, &env).err().unwrap();
            assert!(error.contains(expected), "{error}");
        }
    }
}
