//! `image-stream peaks`: Bragg peaks in images of photons.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use pollux_app::{Failure, NamedFile, Output, Overwrite, expect_distinct, print, user_message};
use pollux_images::Shape;
use pollux_images::peaks::{PeakConfig, PeakFinder, Peaks, distance_from};

use super::files;

/// Find the Bragg peaks in images
///
/// Images are 32-bit floating point numbers, little endian, without a header, as `image-stream
/// convert` writes them; NaN is a bad pixel, infinity a saturated one. The result is a table with a
/// comma between columns, a line a peak: the image, the centre of mass (row and column of pixels,
/// whose centres are at whole numbers), photons above the background, and what the finder measured.
///
/// Examples:
///   image-stream peaks photons/mod5.f32 --beam 530.5,512
///   image-stream peaks photons/*.f32 --beam 530.5,512 --criteria peaks.toml --out peaks.csv
#[derive(clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Exit status: 0, 1 when a file cannot be read or written, 2 on a wrong option or file."
)]
pub struct Args {
    /// Images
    #[arg(value_name = "FILE", required = true)]
    images: Vec<PathBuf>,

    /// Row and column of the beam, in pixels; it may be outside of the image [default: the middle]
    #[arg(
        long,
        value_name = "ROW,COLUMN",
        value_delimiter = ',',
        num_args = 1,
        allow_hyphen_values = true
    )]
    beam: Vec<f64>,

    /// Criteria of a peak, in TOML; the keys are those of the stage `peaks`
    #[arg(long, value_name = "FILE")]
    criteria: Option<PathBuf>,

    /// The table of peaks [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Rows and columns of the images
    #[arg(long, value_name = "ROWSxCOLUMNS", default_value = "512x1024", value_parser = files::shape)]
    shape: Shape,

    /// Rows of a module: no peak lies across the border of two modules [default: those of the image]
    #[arg(long, value_name = "N")]
    module_rows: Option<usize>,

    #[command(flatten)]
    overwrite: Overwrite,
}

impl Args {
    fn finder(&self) -> Result<PeakFinder, Failure> {
        let (row, column) = match self.beam[..] {
            [] => (
                (self.shape.rows as f64 - 1.0) / 2.0,
                (self.shape.columns as f64 - 1.0) / 2.0,
            ),
            [row, column] if row.is_finite() && column.is_finite() => (row, column),
            _ => {
                let error =
                    anyhow!("--beam: give the row and the column, two numbers with a comma");
                return Err(Failure::Usage(error));
            }
        };
        let config = match &self.criteria {
            Some(path) => criteria(path).map_err(Failure::Usage)?,
            None => PeakConfig::default(),
        };
        let rows = self.module_rows.unwrap_or(self.shape.rows);
        PeakFinder::new(self.shape, rows, distance_from(row, column), config)
            .map_err(Failure::usage)
    }
}

fn criteria(path: &Path) -> Result<PeakConfig> {
    let name = || format!("--criteria {}", path.display());
    let text = pollux_app::read_text(path).with_context(name)?;
    toml::from_str(&text).with_context(name)
}

/// Runs the sub-command.
///
/// # Errors
/// Files that cannot be read or written, or do not fit together.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut finder = args.finder()?;
    let output = args.out.as_ref();
    let output = output.map(|path| Output::new("--out", path, args.overwrite));
    let output = output.transpose().map_err(Failure::Usage)?;
    let criteria = args.criteria.iter().map(|path| ("--criteria", path));
    let images = args.images.iter().map(|path| ("image", path));
    let read = images.chain(criteria);
    let read = read.map(|(option, path)| NamedFile::read(option, path));
    let files: Vec<_> = read.chain(output.iter().map(Output::file)).collect();
    expect_distinct(&files).map_err(Failure::Usage)?;
    let mut text = String::from(HEAD);
    for path in &args.images {
        let image: Vec<f32> = files::read("image", path, args.shape)?;
        let peaks = finder.find(&image);
        let peaks = peaks.with_context(|| path.display().to_string())?;
        list(&mut text, path, peaks);
        tell(path, peaks);
    }
    match output {
        Some(output) => output.write(text.as_bytes())?,
        None => print(text)?,
    }
    Ok(())
}

/// Columns of the table.
const HEAD: &str =
    "image,row,column,intensity,background,sigma,snr,maximum,pixels,saturated,module\n";

fn list(text: &mut String, path: &Path, peaks: &Peaks) {
    let image = path.display();
    for peak in peaks.list() {
        let _ = writeln!(
            text,
            "{image},{},{},{},{},{},{},{},{},{},{}",
            peak.row,
            peak.column,
            peak.intensity,
            peak.background,
            peak.sigma,
            peak.snr,
            peak.maximum,
            peak.pixels,
            peak.saturated,
            peak.module
        );
    }
}

/// Says how many groups of pixels are peaks, and why others are none.
fn tell(path: &Path, peaks: &Peaks) {
    user_message(format_args!(
        "{}: {} peaks; not peaks: {} groups too small, {} too large, {} too weak; {} beyond max_peaks",
        path.display(),
        peaks.list().len(),
        peaks.small,
        peaks.large,
        peaks.weak,
        peaks.beyond
    ));
}
