//! `image-stream convert`: raw frames of a JUNGFRAU module to photons.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use pollux_app::{Failure, NamedFile, Overwrite, print_with};
use pollux_images::Shape;
use pollux_images::calibration::{
    Calibration, Fit, FitOptions, Gain, Map, MapError, Pair, Reading, fit_gains,
};
use pollux_images::convert::Converter;
use zerocopy::IntoBytes as _;

use super::files;

/// Convert raw frames of a JUNGFRAU module to photons
///
/// Raw frames are 16 bits a pixel, little endian; maps and results 32-bit floating point numbers,
/// little endian; all without a header, row by row. A bad pixel becomes NaN, a saturated one
/// infinity. The result of DIR/NAME.bin is called NAME.f32.
///
/// Examples:
///   image-stream convert --raw run/*.bin --pedestal g0.bin g1.bin g2.bin --gain gains.bin --out photons
///   image-stream convert --raw new.bin --pedestal g0.bin g1.bin g2.bin --fit-gain old.bin:old.f32 --out photons
#[derive(clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Exit status: 0, 1 when a file cannot be read or written, 2 on a wrong option or file."
)]
pub struct Args {
    /// Raw frames
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    raw: Vec<PathBuf>,

    /// Pedestals of gains G0, G1 and G2, in ADU
    #[arg(long, value_names = ["G0", "G1", "G2"], num_args = 3, required = true)]
    pedestal: Vec<PathBuf>,

    /// Gains in ADU per photon: the maps of G0, G1 and G2 one after another (G1 and G2 are negative)
    #[arg(long, value_name = "FILE", required_unless_present = "fit_gain")]
    gain: Option<PathBuf>,

    /// Fit the gains to raw frames whose photons are known: RAW:PHOTONS pairs
    ///
    /// A pixel with too little signal at a gain has the mean gain of the module. G1 or G2 in which no
    /// pixel has signal has its usual ratio to G0.
    #[arg(long, value_name = "RAW:CONV,...", value_delimiter = ',', conflicts_with = "gain", value_parser = pair)]
    fit_gain: Vec<(PathBuf, PathBuf)>,

    /// Mask of bad pixels: one byte a pixel, not 0 for a bad one
    #[arg(long, value_name = "FILE")]
    mask: Option<PathBuf>,

    /// Folder of the results; created if it is missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Rows and columns of the module
    #[arg(long, value_name = "ROWSxCOLUMNS", default_value = "512x1024", value_parser = files::shape)]
    shape: Shape,

    #[command(flatten)]
    overwrite: Overwrite,
}

fn pair(text: &str) -> Result<(PathBuf, PathBuf), String> {
    let parts = text.split_once(':');
    let parts = parts.filter(|(raw, photons)| !raw.is_empty() && !photons.is_empty());
    let (raw, photons) = parts.ok_or("must be RAW:PHOTONS, two files with a colon between them")?;
    Ok((raw.into(), photons.into()))
}

/// Runs the sub-command.
///
/// # Errors
/// Files that cannot be read or written, or do not fit together.
pub fn run(args: &Args) -> Result<(), Failure> {
    let shape = args.shape;
    let outputs = files::results(&args.raw, args.maps(), &args.out, ".f32", args.overwrite);
    let outputs = outputs.map_err(Failure::Usage)?;
    let converter = Converter::new(&args.calibration(shape)?);
    let mut photons = vec![0.0_f32; shape.pixels()];
    for (path, output) in args.raw.iter().zip(&outputs) {
        let raw: Vec<u16> = files::read("--raw", path, shape)?;
        let converted = converter.convert(0, raw.as_bytes(), &mut photons);
        converted.with_context(|| path.display().to_string())?;
        output.write(photons.as_bytes())?;
        tell(output.path(), &raw)?;
    }
    Ok(())
}

/// A pedestal map.
fn pedestals(path: &Path, shape: Shape) -> Result<Map, Failure> {
    Map::read(path, shape).map_err(|error| {
        let kind = match &error {
            MapError::Read { error, .. } => error.kind(),
            MapError::Size { .. } => ErrorKind::InvalidInput,
        };
        files::unreadable(kind, anyhow::Error::new(error).context("--pedestal"))
    })
}

impl Args {
    /// All files that are read beside the raw frames.
    fn maps(&self) -> Vec<NamedFile> {
        let pairs = self.fit_gain.iter();
        let pairs = pairs.flat_map(|(raw, photons)| [("--fit-gain", raw), ("--fit-gain", photons)]);
        let pedestals = self.pedestal.iter().map(|path| ("--pedestal", path));
        let gain = self.gain.iter().map(|path| ("--gain", path));
        let mask = self.mask.iter().map(|path| ("--mask", path));
        let all = pedestals.chain(gain).chain(mask).chain(pairs);
        all.map(|(option, path)| NamedFile::read(option, path))
            .collect()
    }

    fn calibration(&self, shape: Shape) -> Result<Calibration, Failure> {
        let maps = self.pedestal.iter().map(|path| pedestals(path, shape));
        let maps = maps.collect::<Result<Vec<Map>, Failure>>()?;
        // The command line has three.
        let pedestals: [Map; 3] = maps
            .try_into()
            .map_err(|_| Failure::Usage(anyhow!("--pedestal: give three files")))?;
        let gains = match &self.gain {
            Some(path) => gain_maps(path, shape)?,
            None => self.fit(&pedestals, shape)?,
        };
        let bad = match &self.mask {
            Some(path) => {
                let mask: Vec<u8> = files::read("--mask", path, shape)?;
                mask.into_iter().map(|byte| byte != 0).collect()
            }
            None => vec![false; shape.pixels()],
        };
        Calibration::new(shape, pedestals, gains, bad).map_err(Failure::usage)
    }

    fn fit(&self, pedestals: &[Map; 3], shape: Shape) -> Result<[Map; 3], Failure> {
        let read = |(raw, photons): &(PathBuf, PathBuf)| {
            let raw = files::read("--fit-gain", raw, shape)?;
            Ok((raw, files::read("--fit-gain", photons, shape)?))
        };
        let frames = self.fit_gain.iter().map(read);
        let frames = frames.collect::<Result<Vec<(Vec<u16>, Vec<f32>)>, Failure>>()?;
        let pairs: Vec<Pair> = frames
            .iter()
            .map(|(raw, photons)| Pair { raw, photons })
            .collect();
        let fit = fit_gains(pedestals, &pairs, FitOptions::default());
        let fit = fit.context("--fit-gain").map_err(Failure::Usage)?;
        for gain in Gain::ALL {
            let of = gain as usize;
            if fit.fitted[of] == 0 {
                pollux_app::user_message(format_args!(
                    "gain {gain}: no pixel has enough signal: {:.4} ADU per photon, by its usual ratio \
                     to G0; give frames with more signal, or --gain, where pixels are in {gain}",
                    fit.means[of]
                ));
                continue;
            }
            pollux_app::user_message(format_args!(
                "gain {gain}: mean {:.4} ADU per photon, fitted for {} of {} pixels",
                fit.means[of],
                fit.fitted[of],
                shape.pixels()
            ));
            warn(&fit, gain);
        }
        Ok(fit.gains)
    }
}

/// Warns of gains that are none.
fn warn(fit: &Fit, gain: Gain) {
    let of = gain as usize;
    if fit.is_implausible(gain) {
        tracing::warn!(
            "--fit-gain: gain {gain} is implausible: {:.4} ADU per photon, and {} of {} pixels with enough \
             signal are far from the median: check that each RAW:PHOTONS pair is of one frame, and that the \
             pedestals are of this module",
            fit.means[of],
            fit.far[of],
            fit.far[of] + fit.fitted[of]
        );
    }
}

/// Reads the maps of G0, G1 and G2 from one file.
fn gain_maps(path: &Path, shape: Shape) -> Result<[Map; 3], Failure> {
    let values: Vec<f32> = files::read_several("--gain", path, shape, Gain::ALL.len())?;
    Ok(Gain::ALL.map(|gain| {
        let first = gain as usize * shape.pixels();
        let name = format!("map {gain} of {}", path.display());
        Map::new(name, values[first..first + shape.pixels()].to_vec())
    }))
}

/// Prints what the pixels of a frame were.
fn tell(path: &Path, raw: &[u16]) -> Result<()> {
    let mut gains = [0; 3];
    let (mut saturated, mut invalid) = (0, 0);
    for &pixel in raw {
        match Reading::from(pixel) {
            Reading::Adu(gain, _) => gains[gain as usize] += 1,
            Reading::Saturated => saturated += 1,
            Reading::Invalid => invalid += 1,
        }
    }
    let [g0, g1, g2] = gains;
    let path = path.display();
    print_with(|out| {
        writeln!(
            out,
            "{path}: {g0} pixels in G0, {g1} in G1, {g2} in G2, {saturated} saturated, {invalid} invalid"
        )
    })?;
    Ok(())
}
