use std::path::{Path, PathBuf};

use super::*;
use crate::Shape;

const SHAPE: Shape = Shape {
    rows: 2,
    columns: 3,
};

/// Recorded frames of a module: raw, pedestals, and photons of another program.
pub(crate) struct Recorded {
    pub(crate) raw: Vec<Vec<u16>>,
    pub(crate) pedestals: [Map; 3],
    pub(crate) photons: Vec<Map>,
}

impl Recorded {
    /// Reads the frames; `None` where the data is not available.
    pub(crate) fn read() -> Option<Self> {
        let data = std::env::var_os("POLLUX_DATA").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
            PathBuf::from,
        );
        let folder = data.join("jungfrau");
        if !folder.is_dir() {
            println!("skipped: no recorded data at {}", data.display());
            return None;
        }
        let map = |name: String| Map::read(&folder.join(name), Shape::JUNGFRAU_MODULE).unwrap();
        let raw = |n| {
            let bytes = std::fs::read(folder.join(format!("mod5_raw{n}.bin"))).unwrap();
            let (raw, _) = bytes.as_chunks();
            raw.iter().map(|&raw| u16::from_le_bytes(raw)).collect()
        };
        Some(Self {
            raw: (0..4).map(raw).collect(),
            pedestals: [0, 1, 2].map(|gain| map(format!("mod5_pedeG{gain}.bin"))),
            photons: (0..4).map(|n| map(format!("mod5_conv{n}.bin"))).collect(),
        })
    }

    /// A fit of the gains on some of the frames.
    pub(crate) fn fit(&self, frames: &[usize]) -> Fit {
        let pairs = frames.iter().map(|&n| Pair {
            raw: &self.raw[n],
            photons: self.photons[n].values(),
        });
        let pairs: Vec<_> = pairs.collect();
        fit_gains(&self.pedestals, &pairs, FitOptions::default()).unwrap()
    }
}

/// The same values for all pixels.
fn maps(values: [f32; 3]) -> [Map; 3] {
    values.map(|value| Map::new("map", vec![value; SHAPE.pixels()]))
}

/// A calibration of which one value differs, of a pixel that may be bad.
fn with(gain: Gain, pedestal: Option<f32>, value: Option<f32>, bad: bool) -> Result<(), String> {
    let mut pedestals = maps([2400.0, 13500.0, 14100.0]);
    let mut gains = maps([507.0, -17.9, -1.43]);
    let mut mask = vec![false; SHAPE.pixels()];
    mask[4] = bad;
    for (maps, value) in [(&mut pedestals, pedestal), (&mut gains, value)] {
        if let Some(value) = value {
            let mut values = maps[gain as usize].values().to_vec();
            values[4] = value;
            maps[gain as usize] = Map::new("odd.bin", values);
        }
    }
    Calibration::new(SHAPE, pedestals, gains, mask)
        .map(|_| ())
        .map_err(|error| error.to_string())
}

#[test]
fn values_that_make_no_sense_are_refused() {
    let numbers = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    for gain in Gain::ALL {
        assert_eq!(with(gain, None, None, false), Ok(()));
        for value in numbers.into_iter().chain([-0.5, 16383.5]) {
            let error = with(gain, Some(value), None, false).unwrap_err();
            let place = format!("pedestal {gain} of the pixel in row 1, column 1 is {value} ADU");
            assert!(error.starts_with(&place), "{error}");
            assert!(error.contains("in odd.bin"), "{error}");
            assert_eq!(with(gain, Some(value), None, true), Ok(()));
        }
        let sign = if gain == Gain::G0 { 1.0 } else { -1.0 };
        for value in numbers
            .into_iter()
            .chain([0.0, -sign, sign * 1e-7, sign * 1e7])
        {
            let error = with(gain, None, Some(value), false).unwrap_err();
            let place = format!("gain {gain} of the pixel in row 1, column 1 is {value} ADU");
            assert!(error.starts_with(&place), "{error}");
            assert!(error.contains("in odd.bin"), "{error}");
            assert_eq!(with(gain, None, Some(value), true), Ok(()));
        }
    }
    let error = with(Gain::G1, None, Some(0.0), false).unwrap_err();
    assert!(
        error.ends_with(
            "not a negative number of magnitude 1e-6 to 1e6: correct it, or mark the pixel as bad"
        ),
        "{error}"
    );
}

#[test]
fn maps_of_another_shape_are_refused() {
    for wrong in 0..7 {
        let map = |n: usize, value| {
            let pixels = SHAPE.pixels() + usize::from(n == wrong);
            Map::new(format!("map {n}"), vec![value; pixels])
        };
        let pedestals = [0, 1, 2].map(|n| map(n, 1000.0));
        let gains = [map(3, 500.0), map(4, -17.0), map(5, -1.4)];
        let bad = vec![false; SHAPE.pixels() + usize::from(wrong == 6)];
        let error = Calibration::new(SHAPE, pedestals, gains, bad).unwrap_err();
        let name = match wrong {
            6 => "the mask of bad pixels".to_owned(),
            n => format!("map {n}"),
        };
        assert_eq!(
            error.to_string(),
            format!(
                "{name} has 7 pixels instead of 6, as an image of 2 x 3 has: give the map of this \
                 module"
            )
        );
    }
}

#[test]
fn maps_are_read_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gain.bin");
    let values: Vec<f32> = (0..6).map(|i| i as f32 - 2.5).collect();
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    std::fs::write(&path, &bytes).unwrap();
    let map = Map::read(&path, SHAPE).unwrap();
    assert_eq!(map.values(), values);
    assert_eq!(map.name(), path.display().to_string());

    for length in [0, 23, 25, 48] {
        std::fs::write(&path, vec![0; length]).unwrap();
        let error = Map::read(&path, SHAPE).unwrap_err().to_string();
        let sizes = format!("has {length} bytes instead of 24 (f32 LE, 2 x 3)");
        assert!(error.contains(&sizes), "{error}");
    }
    for path in [folder.path().join("none.bin"), folder.path().to_owned()] {
        let error = Map::read(&path, SHAPE).unwrap_err().to_string();
        assert!(error.contains(&path.display().to_string()), "{error}");
    }
}

#[test]
fn every_raw_value_has_one_meaning() {
    let mut counts = [0; 5];
    for raw in 0..=u16::MAX {
        counts[match Reading::from(raw) {
            Reading::Adu(gain, adu) => {
                let bits = [0b00, 0b01, 0b11][gain as usize];
                assert_eq!(raw, bits << 14 | adu);
                gain as usize
            }
            Reading::Saturated => 3,
            Reading::Invalid => 4,
        }] += 1;
    }
    assert_eq!(Reading::from(0xC000), Reading::Saturated);
    assert_eq!(Reading::from(0xC001), Reading::Adu(Gain::G2, 1));
    for invalid in [0x4000, 0xFFFF, 0x8000, 0xBFFF] {
        assert_eq!(Reading::from(invalid), Reading::Invalid);
    }
    assert_eq!(counts, [16384, 16383, 16382, 1, 16384 + 2]);
}
