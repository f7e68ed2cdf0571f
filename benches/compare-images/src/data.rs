//! The frames that all rows take: recorded ones of a JUNGFRAU module, or emulated ones.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use pollux_emulator::images::config::ImagesConfig;
use pollux_emulator::images::order::StackImage;
use pollux_emulator::images::synthesis::Synthesis;
use pollux_images::Shape;
use pollux_images::calibration::{Calibration, FitOptions, Map, Pair, fit_gains};
use pollux_images::convert::{Converter, Output};
use zerocopy::IntoBytes as _;

/// The images are of one module.
pub(crate) const SHAPE: Shape = Shape::JUNGFRAU_MODULE;

/// Recorded frames in a folder.
const RECORDED: usize = 4;

/// Raw frames of a module, and its calibration.
pub(crate) struct Data {
    /// What they are.
    pub(crate) name: String,
    /// Frames one after another, each in memory of its own: more than the caches hold, as those of a
    /// detector, unless few were asked for.
    pub(crate) frames: Vec<Vec<u16>>,
    pub(crate) calibration: Calibration,
}

impl Data {
    /// Recorded frames in a folder, or emulated ones without it; as many as are asked for, by copies.
    pub(crate) fn new(folder: Option<&Path>, count: usize) -> Result<Self> {
        let mut data = match folder {
            Some(folder) => recorded(folder)?,
            None => emulated()?,
        };
        let different = data.frames.len();
        for n in different..count {
            data.frames.push(data.frames[n % different].clone());
        }
        data.frames.truncate(count);
        Ok(data)
    }

    /// The frames converted by ours.
    pub(crate) fn photons<P: Output>(&self) -> Result<Vec<Vec<P>>> {
        let converter = Converter::new(&self.calibration);
        let convert = |raw: &Vec<u16>| {
            let mut photons = vec![P::BAD; raw.len()];
            converter.convert(0, raw.as_bytes(), &mut photons)?;
            Ok(photons)
        };
        self.frames.iter().map(convert).collect()
    }
}

/// Frames of another project's tests, with gains that are fitted to its conversions.
fn recorded(folder: &Path) -> Result<Data> {
    let map = |name: String| Map::read(&folder.join(name), SHAPE);
    let mut pedestals = Vec::new();
    for gain in 0..3 {
        pedestals.push(map(format!("mod5_pedeG{gain}.bin"))?);
    }
    let pedestals: [Map; 3] = pedestals.try_into().ok().context("three pedestals")?;
    let (mut frames, mut photons) = (Vec::new(), Vec::new());
    for n in 0..RECORDED {
        let path = folder.join(format!("mod5_raw{n}.bin"));
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let (pixels, _) = bytes.as_chunks();
        ensure!(
            pixels.len() == SHAPE.pixels(),
            "{} is no frame of a module",
            path.display()
        );
        let pixels = pixels.iter().map(|&pixel| u16::from_le_bytes(pixel));
        frames.push(pixels.collect::<Vec<_>>());
        photons.push(map(format!("mod5_conv{n}.bin"))?);
    }
    let pairs = frames.iter().zip(&photons).map(|(raw, photons)| Pair {
        raw,
        photons: photons.values(),
    });
    let pairs: Vec<_> = pairs.collect();
    let fit = fit_gains(&pedestals, &pairs, FitOptions::default())?;
    let bad = vec![false; SHAPE.pixels()];
    Ok(Data {
        name: "recorded frames of a JUNGFRAU module".into(),
        calibration: Calibration::new(SHAPE, pedestals, fit.gains, bad)?,
        frames,
    })
}

/// Frames of the emulated detector, with its true calibration.
fn emulated() -> Result<Data> {
    let config = ImagesConfig {
        stack: RECORDED as u32,
        ..ImagesConfig::default()
    };
    let synthesis = Synthesis::new(&config)?;
    let response = synthesis.response(0);
    let maps = |what: &str, of: &dyn Fn(usize) -> Vec<f32>| {
        std::array::from_fn(|gain| Map::new(format!("emulated {what} G{gain}"), of(gain)))
    };
    let pedestals = maps("pedestals", &|gain| response.pedestals(gain).to_vec());
    let gains = maps("gains", &|gain| response.gains(gain).to_vec());
    let bad = response.mask().iter().map(|&bad| bad != 0).collect();
    let mut photons = vec![0; SHAPE.pixels()];
    let frames = (0..config.stack).map(|n| {
        let mut raw = vec![0; SHAPE.pixels()];
        synthesis.module(StackImage::Light(n), 0, &response, &mut photons, &mut raw);
        raw
    });
    Ok(Data {
        name: "emulated frames of a JUNGFRAU module".into(),
        frames: frames.collect(),
        calibration: Calibration::new(SHAPE, pedestals, gains, bad)?,
    })
}
