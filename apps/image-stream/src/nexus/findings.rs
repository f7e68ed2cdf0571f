//! What stages found in the images of a file: Bragg peaks, and radial curves.

use hdf5_metno::{Group, Result};
use pollux_images::integrate::RadialUnit;
use pollux_images::peaks::Peak;
use pollux_images::stages::RadialAxis;

use super::column::{Column, attribute, describe, group};
use super::rows::Rows;
use crate::image::Found;

/// Numbers that are gathered before they are appended.
const GATHERED: usize = 1 << 20;

/// What stages find in images, for their file.
#[derive(Clone, Debug, Default)]
pub struct FindingsInfo {
    /// Largest number of Bragg peaks of an image; none if peaks are not looked for.
    pub max_peaks: Option<usize>,
    /// Radial coordinate of the curves, if there are any.
    pub axis: Option<RadialAxis>,
}

/// The datasets of peaks and curves.
pub(super) struct Findings {
    peaks: Option<PeakRows>,
    curves: Option<Curves>,
    /// Numbers that wait.
    waiting: usize,
}

impl Findings {
    pub(super) fn create(entry: &Group, info: &FindingsInfo) -> Result<Self> {
        let peaks = info.max_peaks.map(|most| PeakRows::create(entry, most));
        let curves = info.axis.as_ref().map(|axis| Curves::create(entry, axis));
        Ok(Self {
            peaks: peaks.transpose()?,
            curves: curves.transpose()?,
            waiting: 0,
        })
    }

    /// Adds what was found in the next image.
    pub(super) fn push(&mut self, found: Option<&dyn Found>) -> Result<()> {
        if let Some(peaks) = &mut self.peaks {
            let list = found.map_or(&[][..], Found::peaks);
            self.waiting += 1 + list.len() * PEAK_ROWS.len();
            peaks.push(list);
        }
        if let Some(curves) = &mut self.curves {
            let curve = found.map_or([&[][..]; 2], Found::curve);
            self.waiting += 2 + 2 * curve[0].len();
            curves.push(curve);
        }
        if self.waiting < GATHERED {
            return Ok(());
        }
        self.flush()
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.waiting = 0;
        if let Some(peaks) = &mut self.peaks {
            peaks.flush()?;
        }
        self.curves.as_mut().map_or(Ok(()), Curves::flush)
    }
}

/// The rows of peaks: name, unit, meaning, and the number of a peak.
type PeakRow = (&'static str, &'static str, &'static str, fn(&Peak) -> f32);

/// Names as in CXI files (Cheetah, OnDA): CrystFEL reads the first three.
const PEAK_ROWS: [PeakRow; 8] = [
    (
        "peakXPosRaw",
        "pixel",
        "Column of the centre of mass; 0 is the centre of the first",
        |peak| peak.column,
    ),
    (
        "peakYPosRaw",
        "pixel",
        "Row of the centre of mass; 0 is the centre of the first",
        |peak| peak.row,
    ),
    (
        "peakTotalIntensity",
        "photons",
        "Sum of the pixels less the background",
        |peak| peak.intensity,
    ),
    ("peakMaxIntensity", "photons", "Largest pixel", |peak| {
        peak.maximum
    }),
    (
        "peakSNR",
        "",
        "Intensity / (sqrt(pixels) sigma of the background)",
        |peak| peak.snr,
    ),
    (
        "peakBackground",
        "photons",
        "Mean of the background of a pixel",
        |peak| peak.background,
    ),
    ("peakNPixels", "", "Number of pixels", |peak| {
        peak.pixels as f32
    }),
    ("peakNSaturated", "", "Number of saturated pixels", |peak| {
        peak.saturated as f32
    }),
];

/// The group `peaks`, in the layout of CXI.
struct PeakRows {
    number: Column<i32>,
    rows: [Rows; PEAK_ROWS.len()],
}

impl PeakRows {
    fn create(entry: &Group, most: usize) -> Result<Self> {
        let at = &group(entry, "peaks", "NXcollection")?;
        let number = Column::create(at, "nPeaks", "", "Number of Bragg peaks")?;
        let rows = PEAK_ROWS
            .map(|(name, units, what, _)| Rows::create(at, (name, units, what), most, 0.0));
        let [a, b, c, d, e, f, g, h] = rows;
        let rows = [a?, b?, c?, d?, e?, f?, g?, h?];
        Ok(Self { number, rows })
    }

    fn push(&mut self, peaks: &[Peak]) {
        self.number.push(peaks.len() as i32);
        for (rows, (.., of)) in self.rows.iter_mut().zip(PEAK_ROWS) {
            rows.push(peaks.iter().map(of));
        }
    }

    fn flush(&mut self) -> Result<()> {
        for rows in &mut self.rows {
            rows.flush()?;
        }
        self.number.flush()
    }
}

/// The group `integration`: a curve for each image.
struct Curves {
    mean: Rows,
    errors: Rows,
}

impl Curves {
    fn create(entry: &Group, axis: &RadialAxis) -> Result<Self> {
        let at = &group(entry, "integration", "NXdata")?;
        attribute(at, "signal", "mean")?;
        let (name, units, what) = names(axis.unit);
        attribute(at, "axes", &format!(". {name}"))?;
        let set = at
            .new_dataset_builder()
            .with_data(&axis.values)
            .create(name)?;
        describe(&set, units, what)?;
        let bins = axis.values.len();
        let mean = (
            "mean",
            "photons",
            "Mean of the pixels of a bin; NaN if not integrated",
        );
        let errors = (
            "mean_errors",
            "photons",
            "Standard error of the mean (Poisson)",
        );
        Ok(Self {
            mean: Rows::create(at, mean, bins, f32::NAN)?,
            errors: Rows::create(at, errors, bins, f32::NAN)?,
        })
    }

    fn push(&mut self, [mean, sigma]: [&[f32]; 2]) {
        self.mean.push(mean.iter().copied());
        self.errors.push(sigma.iter().copied());
    }

    fn flush(&mut self) -> Result<()> {
        self.mean.flush()?;
        self.errors.flush()
    }
}

/// Name, unit and meaning of a radial coordinate.
fn names(unit: RadialUnit) -> (&'static str, &'static str, &'static str) {
    match unit {
        RadialUnit::QPerNm => ("q", "1/nm", "Scattering vector"),
        RadialUnit::QPerAngstrom => ("q", "1/angstrom", "Scattering vector"),
        RadialUnit::TwoThetaRad => ("two_theta", "rad", "Scattering angle"),
        RadialUnit::TwoThetaDeg => ("two_theta", "deg", "Scattering angle"),
        RadialUnit::RadiusMm => ("r", "mm", "Distance from the beam"),
    }
}
