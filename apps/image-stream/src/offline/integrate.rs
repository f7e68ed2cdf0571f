//! `image-stream integrate`: images of photons to radial curves.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use clap::ValueEnum;
use pollux_app::{Failure, NamedFile, Overwrite, print};
use pollux_images::Shape;
use pollux_images::integrate::{
    Curve, Geometry, IntegrationConfig, Integrator, RadialUnit, Split, Variance,
};

use super::{files, poni};

/// Integrate images azimuthally
///
/// Images are 32-bit floating point numbers, little endian, without a header, as `image-stream
/// convert` writes them; NaN is a bad pixel, infinity a saturated one. The geometry is that of a
/// PONI file, as pyFAI writes it. Results are tables with a comma between columns, a line a bin:
/// radial coordinate, mean, its standard error, then the sums that they come from. They go to DIR
/// under the name of the image, with the suffix .csv, or to standard output.
///
/// Examples:
///   image-stream integrate photons/mod5.f32 --poni detector.poni --bins 500
///   image-stream integrate photons/*.f32 --poni detector.poni --split full --unit 2th_deg --out curves
#[derive(clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Exit status: 0, 1 when a file cannot be read or written, 2 on a wrong option or file."
)]
pub struct Args {
    /// Images
    #[arg(value_name = "FILE", required = true)]
    images: Vec<PathBuf>,

    /// Geometry of the detector
    #[arg(long, value_name = "FILE")]
    poni: PathBuf,

    /// Number of bins
    #[arg(long, value_name = "N", default_value_t = 1000)]
    bins: usize,

    /// Radial coordinate
    #[arg(long, value_enum, default_value_t = Unit::QPerNm)]
    unit: Unit,

    /// First and last value of the radial coordinate [default: those of the image]
    #[arg(long, value_names = ["LOW", "HIGH"], num_args = 2, allow_negative_numbers = true)]
    range: Vec<f64>,

    /// Bins that a pixel counts for: that of its centre, or each by the part of the pixel in it
    #[arg(long, value_enum, default_value_t = Splitting::No)]
    split: Splitting,

    /// Polarisation factor of the beam, -1 to 1 [default: no correction]
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true)]
    polarisation: Option<f64>,

    /// Leave out the correction for the solid angle of a pixel
    #[arg(long)]
    no_solid_angle: bool,

    /// Variance of the pixels: an image of the same shape [default: that of counted photons]
    #[arg(long, value_name = "FILE")]
    variance: Option<PathBuf>,

    /// Mask of bad pixels: one byte a pixel, not 0 for a bad one
    #[arg(long, value_name = "FILE")]
    mask: Option<PathBuf>,

    /// Folder of the results; created if it is missing [default: standard output]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Rows and columns of the images
    #[arg(long, value_name = "ROWSxCOLUMNS", default_value = "512x1024", value_parser = files::shape)]
    shape: Shape,

    #[command(flatten)]
    overwrite: Overwrite,
}

/// Radial coordinate, by the names of pyFAI.
#[derive(Clone, Copy, ValueEnum)]
enum Unit {
    #[value(name = "q_nm^-1")]
    QPerNm,
    #[value(name = "q_A^-1")]
    QPerAngstrom,
    #[value(name = "2th_rad")]
    TwoThetaRad,
    #[value(name = "2th_deg")]
    TwoThetaDeg,
    #[value(name = "r_mm")]
    RadiusMm,
}

#[derive(Clone, Copy, ValueEnum)]
enum Splitting {
    No,
    Full,
}

impl From<Unit> for RadialUnit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::QPerNm => Self::QPerNm,
            Unit::QPerAngstrom => Self::QPerAngstrom,
            Unit::TwoThetaRad => Self::TwoThetaRad,
            Unit::TwoThetaDeg => Self::TwoThetaDeg,
            Unit::RadiusMm => Self::RadiusMm,
        }
    }
}

impl Args {
    fn config(&self) -> IntegrationConfig {
        IntegrationConfig {
            unit: self.unit.into(),
            bins: self.bins,
            range: self.range.first().copied().zip(self.range.get(1).copied()),
            split: match self.split {
                Splitting::No => Split::No,
                Splitting::Full => Split::Full,
            },
            solid_angle: !self.no_solid_angle,
            polarisation: self.polarisation,
        }
    }

    fn integrator(&self, geometry: &Geometry) -> Result<Integrator, Failure> {
        let mask = match &self.mask {
            Some(path) => {
                let bytes: Vec<u8> = files::read("--mask", path, self.shape)?;
                Some(bytes.into_iter().map(|byte| byte != 0).collect::<Vec<_>>())
            }
            None => None,
        };
        let integrator = Integrator::new(self.shape, geometry, &self.config(), mask.as_deref());
        let integrator = integrator.map_err(Failure::usage)?;
        if let ([low, high], true) = (&self.range[..], integrator.is_empty()) {
            let error = anyhow!(
                "--range {low} {high}: no pixel is there: check --unit, --poni and --mask, or leave the \
                 range out"
            );
            return Err(Failure::Usage(error));
        }
        Ok(integrator)
    }

    /// All files that are read beside the images.
    fn inputs(&self) -> Vec<NamedFile> {
        let mask = self.mask.iter().map(|path| ("--mask", path));
        let variance = self.variance.iter().map(|path| ("--variance", path));
        let all = [("--poni", &self.poni)].into_iter();
        all.chain(mask)
            .chain(variance)
            .map(|(option, path)| NamedFile::read(option, path))
            .collect()
    }
}

/// Runs the sub-command.
///
/// # Errors
/// Files that cannot be read or written, or do not fit together.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.out.is_none() && args.images.len() > 1 {
        let error = anyhow!("several images: give a folder for their results with --out");
        return Err(Failure::Usage(error));
    }
    let geometry = poni::read(&args.poni, args.shape).context("--poni")?;
    let mut integrator = args.integrator(&geometry)?;
    let outputs = match &args.out {
        Some(folder) => {
            let outputs =
                files::results(&args.images, args.inputs(), folder, ".csv", args.overwrite);
            outputs.map_err(Failure::Usage)?
        }
        None => Vec::new(),
    };
    let variance = args.variance.as_ref();
    let variance = variance.map(|path| files::read("--variance", path, args.shape));
    let variance: Option<Vec<f32>> = variance.transpose()?;
    if let Some((pixel, value)) = negative(variance.as_deref().unwrap_or_default()) {
        let (row, column) = (pixel / args.shape.columns, pixel % args.shape.columns);
        let error = anyhow!(
            "--variance: {value} in row {row}, column {column}: a variance is 0 or more, or NaN for a \
             bad pixel"
        );
        return Err(Failure::Usage(error));
    }
    let variance = variance
        .as_deref()
        .map_or(Variance::Poisson, Variance::Image);
    let radial = integrator.radial().to_vec();
    for (n, path) in args.images.iter().enumerate() {
        let image: Vec<f32> = files::read("image", path, args.shape)?;
        let curve = integrator.integrate(&image, variance);
        let curve = curve.with_context(|| path.display().to_string())?;
        let text = table(args.unit, &radial, curve);
        match outputs.get(n) {
            Some(output) => output.write(text.as_bytes())?,
            None => print(text)?,
        }
    }
    Ok(())
}

/// The first negative value, and its pixel.
fn negative(variance: &[f32]) -> Option<(usize, f32)> {
    let mut values = variance.iter().copied().enumerate();
    values.find(|&(_, value)| value < 0.0)
}

/// A curve as text. Numbers have as many digits as tell them apart.
fn table(unit: Unit, radial: &[f64], curve: &Curve) -> String {
    let unit = unit.to_possible_value();
    let name = unit.as_ref().map_or("radial", |unit| unit.get_name());
    let mut text = format!("{name},mean,sigma,signal,normalisation,variance,count\n");
    for (bin, radial) in radial.iter().enumerate() {
        let columns = [
            &curve.mean,
            &curve.sigma,
            &curve.signal,
            &curve.normalisation,
            &curve.variance,
            &curve.count,
        ];
        let _ = write!(text, "{radial}");
        for column in columns {
            let _ = write!(text, ",{}", column.get(bin).copied().unwrap_or_default());
        }
        text.push('\n');
    }
    text
}
